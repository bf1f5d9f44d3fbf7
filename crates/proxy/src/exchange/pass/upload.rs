//! Sends the body of a request to the origin.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use foxy_http1::{BodyFraming, BodyReader, Reject};

use crate::http::connection::{last_chunk, write_piece};
use crate::http::net::{BodyError, Io, ReadBuf, Ticks, Transport, next_piece};
use crate::state::ledger::Pressure;
use crate::state::local::Local;

/// The progress of the request's body. Both directions of an exchange share it.
pub(super) struct Upload {
    /// True while the client waits for a 100 response.
    held: Cell<bool>,
    waker: Cell<Option<Waker>>,
    done: Cell<bool>,
    moved: Cell<Ticks>,
    answering: Cell<bool>,
}

/// Reason why a body did not reach the origin.
#[derive(Debug)]
pub(super) enum UploadError {
    /// The client has left or stalled.
    Client,
    /// The framing of the body is broken, so its end is unknown.
    Framing(Reject),
    /// The origin does not accept the body. It may have answered nevertheless.
    Origin,
}

impl Upload {
    pub(super) fn new(local: &Local, held: bool, done: bool) -> Self {
        Self {
            held: Cell::new(held),
            waker: Cell::new(None),
            done: Cell::new(done),
            moved: Cell::new(local.sweep.now()),
            answering: Cell::new(false),
        }
    }

    /// True if all of the body is sent, or the rest will never be sent.
    pub(super) fn is_done(&self) -> bool {
        self.done.get()
    }

    pub(super) fn finish(&self) {
        self.done.set(true);
    }

    /// Notes that bytes of an answer are being sent to the client (`true`). No other answer can begin then.
    /// After an interim answer, this function is called with `false`.
    pub(super) fn answering(&self, answering: bool) {
        self.answering.set(answering);
    }

    /// True if no other answer can begin, because bytes of an answer are being sent or were sent.
    pub(super) fn is_answering(&self) -> bool {
        self.answering.get()
    }

    /// Notes that a 100 response was sent to the client, so the client sends the body now.
    pub(super) fn release(&self) {
        self.held.set(false);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Returns true if the upload is in progress, or ended so recently that the silence of the origin is no
    /// failure yet.
    pub(super) fn excuses(&self, local: &Local, timeout: Ticks) -> bool {
        !self.done.get() || local.sweep.now().since(self.moved.get()) < timeout
    }

    async fn released(&self) {
        poll_fn(|cx| {
            if self.held.get() {
                self.waker.set(Some(cx.waker().clone()));
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }
}

/// Copies the body from the client to the origin.
pub(super) async fn send_body<T: Transport, U: Transport>(
    local: &Local,
    io: &Io<T>,
    buf: &mut ReadBuf,
    framing: BodyFraming,
    (origin, origin_timeout): (&Io<U>, Ticks),
    upload: &Upload,
) -> Result<(), UploadError> {
    if buf.is_empty() {
        // A client that waits for a 100 may begin to send without it after some time (RFC 9110 section
        // 10.1.1).
        let begins = io.readable(io.deadline(local.timeouts.progress));
        tokio::select! {
            () = upload.released() => {}
            begun = begins => begun.map_err(|_| UploadError::Client)?,
        }
    }
    if local.proxy.config.limits.receive_bytes().is_some()
        && io.ledger().pressure() < Pressure::Spent
    {
        io.widen_receive();
    }
    let mut reader = BodyReader::new(framing, &local.limits);
    let chunks = framing == BodyFraming::Chunked;
    let client_timeout = local.timeouts.progress;
    loop {
        let piece = next_piece(io, buf, &mut reader, client_timeout)
            .await
            .map_err(|error| match error {
                BodyError::Framing(reject) => UploadError::Framing(reject),
                BodyError::Io(_) => UploadError::Client,
            })?;
        upload.moved.set(local.sweep.now());
        let data = &buf.filled()[piece.range];
        if piece.end {
            if chunks {
                let last = last_chunk(local, data);
                let sent = origin.write(&last, origin_timeout).await;
                sent.map_err(|_| UploadError::Origin)?;
            }
            buf.consume(piece.consumed);
            return Ok(());
        }
        let sent = write_piece(origin, &[], data, chunks, origin_timeout).await;
        sent.map_err(|_| UploadError::Origin)?;
        buf.consume(piece.consumed);
    }
}
