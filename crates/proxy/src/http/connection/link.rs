//! A client's connection and its buffers.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use foxy_base::MonoTime;
use foxy_http1::{FieldSlots, HeadScanner, RequestHead, RequestParts};

use super::room::ACTIVE_BYTES;
use crate::Event;
use crate::access::gatekeeper::Counted;
use crate::http::net::{Io, ReadBuf, Transport};
use crate::http::reply::Scratch;
use crate::state::ledger::{Entry, Pressure, Use};
use crate::state::local::Local;

/// The connection of one client.
#[derive(Debug)]
pub(crate) struct Link<T> {
    pub(super) io: Io<T>,
    pub(super) buf: ReadBuf,
    pub(super) slots: FieldSlots,
    pub(super) scanner: HeadScanner,
    pub(super) scratch: Scratch,
    /// The connection's entry in the ledger (the count of the memory for requests), without its read buffer.
    pub(super) memory: Entry,
    /// The numbers of received and sent bytes that were already added to the counters.
    counted: (u64, u64),
    /// True if the last answer was truncated. The connection then ends with a reset.
    aborted: Cell<bool>,
}

/// The received bytes, from the head of the present request on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'l> {
    bytes: &'l [u8],
    slots: &'l FieldSlots,
}

impl<'l> Received<'l> {
    pub(crate) fn head(&self, parts: &RequestParts) -> RequestHead<'l> {
        parts.head(self.bytes, self.slots)
    }

    /// Returns the bytes, and the positions of the fields in them.
    pub(crate) const fn parts(&self) -> (&'l [u8], &'l FieldSlots) {
        (self.bytes, self.slots)
    }
}

/// Both directions of a connection, borrowed at the same time.
#[derive(Debug)]
pub(crate) struct Ends<'l, T> {
    pub(crate) received: Received<'l>,
    pub(crate) io: &'l Io<T>,
    pub(crate) scratch: &'l mut Scratch,
}

impl<T: Transport> Link<T> {
    /// Makes the link of a connection. `closed` becomes true when the listener of the connection is closed.
    pub(crate) fn new(local: &Local, transport: T, closed: &Rc<Cell<bool>>) -> Self {
        let mut io = Io::new(transport, &local.sweep);
        io.set_closed(closed);
        if local.details {
            io.time_answers(&local.proxy.clock);
        }
        Self {
            io,
            buf: ReadBuf::new(),
            slots: FieldSlots::new(),
            scanner: HeadScanner::new(),
            scratch: Scratch::default(),
            memory: local.proxy.ledger.take(Use::Connections, ACTIVE_BYTES),
            counted: (0, 0),
            aborted: Cell::new(false),
        }
    }

    pub(crate) fn io(&self) -> &Io<T> {
        &self.io
    }

    /// Sets the number that distinguishes the client from other clients. 0 means that the client is not
    /// counted.
    pub(crate) fn set_client(&self, client: u64) {
        self.io.set_client(client);
    }

    /// Slows all later answers down to the rates that these limits permit.
    pub(crate) fn slow(&self, by: Option<Rc<Counted>>) {
        self.io.slow(by);
    }

    /// Returns the head of the present request.
    pub(crate) fn head(&self, parts: &RequestParts) -> RequestHead<'_> {
        parts.head(self.buf.filled(), &self.slots)
    }

    pub(crate) fn received(&self) -> Received<'_> {
        Received {
            bytes: self.buf.filled(),
            slots: &self.slots,
        }
    }

    pub(crate) fn ends(&mut self) -> Ends<'_, T> {
        Ends {
            received: Received {
                bytes: self.buf.filled(),
                slots: &self.slots,
            },
            io: &self.io,
            scratch: &mut self.scratch,
        }
    }

    /// Returns the sending side, and the buffer with the body of the present request. The caller has already
    /// consumed the head of the request.
    pub(crate) fn upload(&mut self) -> (&Io<T>, &mut Scratch, &mut ReadBuf) {
        (&self.io, &mut self.scratch, &mut self.buf)
    }

    /// Returns the bytes that arrived after the head of a request. Called only if the connection carries no
    /// further request.
    pub(crate) fn after(&self, parts: &RequestParts) -> &[u8] {
        &self.buf.filled()[parts.len()..]
    }

    /// Marks the head of a request as used.
    pub(crate) fn consume(&mut self, parts: &RequestParts) {
        self.buf.consume(parts.len());
    }

    /// Discards the received bytes.
    pub(crate) fn clear(&mut self) {
        self.buf.clear();
    }

    /// Frees the memory of the read buffer, if the buffer is empty.
    pub(crate) fn release(&mut self) {
        self.buf.release();
    }

    /// Sends `bytes`.
    ///
    /// # Errors
    /// Returned if the client has disconnected, or has accepted no data for too long.
    pub(crate) async fn send(&self, local: &Local, bytes: &[u8]) -> io::Result<()> {
        self.io.write(bytes, local.timeouts.progress).await
    }

    /// Waits until the client has disconnected. Cancel safe.
    pub(crate) async fn gone(&self) {
        self.io.gone().await;
    }

    /// Aborts the connection, so that the client does not mistake the sent bytes for a complete answer.
    pub(crate) fn abort(&self, local: &Local) {
        local.count(Event::Aborted);
        self.reset();
    }

    /// Ends the connection with a reset, because the client left or stalled in the middle of an answer.
    pub(crate) fn reset(&self) {
        self.aborted.set(true);
        self.io.transport().reset_on_close();
    }

    /// Ends the connection so that the last answer still arrives. The function shuts down the sending side,
    /// and for a short time reads the bytes that the client still sends. If a connection with unread bytes
    /// were closed, the kernel would reset it. If memory is short, the function reads only bytes that have
    /// already arrived.
    pub(crate) async fn end(&mut self, local: &Local) {
        // After an orderly end, the client could mistake a truncated body for a complete body.
        if self.aborted.get() {
            return;
        }
        self.io.transport().shutdown_write();
        // The reading has a time limit and no limit of bytes, because an upload that was refused early may be
        // long.
        let deadline = match self.io.ledger().pressure() {
            Pressure::Spent => local.sweep.now(),
            _ => self.io.deadline(local.timeouts.linger),
        };
        self.buf.clear();
        while let Ok(1..) = self.buf.fill(&self.io, 16 << 10, deadline).await {
            self.buf.clear();
            // A client that sends without a pause must neither exceed the deadline nor block other tasks.
            tokio::task::yield_now().await;
            if local.sweep.now() > deadline {
                break;
            }
        }
    }

    /// Returns the numbers of bytes that were received and sent since the last call of `count_bytes`.
    pub(crate) fn moved(&self) -> (u64, u64) {
        let (received, sent) = (self.io.received(), self.io.sent());
        (received - self.counted.0, sent - self.counted.1)
    }

    /// Adds to the counters the numbers of bytes that were received and sent since the last call of this
    /// function.
    pub(crate) fn count_bytes(&mut self, local: &Local) {
        let (received, sent) = self.moved();
        let counters = local.counters();
        counters.add(Event::BytesIn, received);
        counters.add(Event::BytesOut, sent);
        self.counted = (self.io.received(), self.io.sent());
    }

    /// Returns the time at which the first byte of the present answer was sent, if the log needs that time.
    pub(crate) fn take_first_byte(&self) -> Option<MonoTime> {
        self.io.take_first_byte()
    }
}
