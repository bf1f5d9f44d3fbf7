//! Passes a body from the origin into the store and to the followers (the requests that share the fetch).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use foxy_http1::BodyReader;

use super::keep::Keeper;
use super::pace::Pace;
use super::{FillHead, ReadableBody};
use crate::fill::FillWriter;
use crate::http::net::{Piece, Ticks};
use crate::mirrors::Edit;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// The end of a body.
#[derive(Debug)]
pub(super) enum Ended {
    /// The body is complete. The value is the text of its trailer fields.
    Whole(Bytes),
    /// The body ends early, because another fill fetches the rest.
    Overtaken,
}

/// Returns the result of `work`; `None` if all followers leave before `work` has ended.
pub(super) async fn unless_abandoned<F: Future + Unpin>(
    writer: &FillWriter<FillHead>,
    mut work: F,
) -> Option<F::Output> {
    let mut abandoned = pin!(writer.abandoned());
    poll_fn(|cx| match Pin::new(&mut work).poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => abandoned.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// A body that goes to the followers and into the store.
pub(super) struct Body<'a> {
    /// True if the fetch continues even if no follower is left.
    pub(super) background: bool,
    /// Largest permitted length of the body, in bytes. A longer body is an error.
    pub(super) most: u64,
    /// Longest time for which the origin may be silent.
    pub(super) timeout: Ticks,
    pub(super) leased: &'a mut Leased,
    pub(super) reader: &'a mut BodyReader,
    pub(super) keeper: &'a mut Keeper,
    /// The changes made to the body, if it is rewritten.
    pub(super) edit: Option<&'a mut Edit>,
}

impl Body<'_> {
    pub(super) async fn run(
        &mut self,
        local: &Local,
        writer: &FillWriter<FillHead>,
    ) -> Result<Ended, UpstreamError> {
        let mut pace = None;
        loop {
            let piece = self.next(local, writer).await?;
            let up = &mut self.leased.up;
            let bytes = Bytes::copy_from_slice(&up.buf.filled()[piece.range]);
            up.buf.consume(piece.consumed);
            if let Some(edit) = self.edit.take() {
                let send = |bytes| self.push(local, writer, bytes);
                let edited = match piece.end {
                    true => edit.finish(&local.proxy, local.index, send),
                    false => edit.push(&bytes, send),
                };
                self.edit = Some(edit);
                edited?;
                if piece.end {
                    // The trailers are dropped, because they describe the body before rewriting.
                    return Ok(Ended::Whole(Bytes::new()));
                }
            } else {
                if piece.end {
                    return Ok(Ended::Whole(bytes));
                }
                if writer.pushed() + bytes.len() as u64 > self.most {
                    return Err(UpstreamError::BadResponse("part-too-long"));
                }
                self.push(local, writer, bytes);
            }
            if writer.is_overtaken() {
                return Ok(Ended::Overtaken);
            }
            if writer.followers() > 0 {
                self.keeper.followed();
            } else if !self.background {
                self.keeper.worth_finishing(local, writer.pushed())?;
            }
            writer.room(local.proxy.config.fill.lag).await;
            if self.keeper.streams() {
                let pace = pace.get_or_insert_with(Pace::new);
                if local.proxy.engine.is_congested() {
                    Box::pin(pace.between_pieces(local)).await;
                }
            }
        }
    }

    /// Returns the next piece. Fails if all followers leave meanwhile and the body is not worth finishing.
    async fn next(
        &mut self,
        local: &Local,
        writer: &FillWriter<FillHead>,
    ) -> Result<Piece, UpstreamError> {
        let mut piece = pin!(self.leased.up.next_piece(self.reader, self.timeout));
        if !self.background {
            let abandoned = unless_abandoned(writer, piece.as_mut()).await;
            match abandoned {
                Some(piece) => return noted(local, piece),
                None => self.keeper.worth_finishing(local, writer.pushed())?,
            }
        }
        noted(local, piece.await)
    }

    /// Puts bytes first into the store, then into the window (the bytes in memory). If a follower is behind
    /// the window, it reads the bytes before the window from the store.
    fn push(&mut self, local: &Local, writer: &FillWriter<FillHead>, bytes: Bytes) {
        let outgrown = self.keeper.push(local, writer.fill(), &bytes);
        if outgrown {
            writer.grown(self.keeper.readable_body());
        }
        writer.push(bytes);
        if let Some(offset) = self.keeper.readable() {
            writer.readable(offset);
        }
        if outgrown {
            writer.keep(self.keeper.window());
        }
    }
}

/// Counts an error if the origin failed to send the complete body.
fn noted(local: &Local, piece: Result<Piece, UpstreamError>) -> Result<Piece, UpstreamError> {
    piece.inspect_err(|error| local.origin_failed(*error))
}

impl FillWriter<FillHead> {
    /// Called when the fill no longer keeps all bytes of the body in memory. If `readable_body` is set,
    /// followers can read the body back from the store from now on.
    fn grown(&self, readable_body: Option<ReadableBody>) {
        if let Some(head) = self.published()
            && let Some(readable_body) = readable_body
        {
            let _ = head.readable_body.set(readable_body);
        }
    }
}
