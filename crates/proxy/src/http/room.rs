//! Memory for requests, and places in the send queues of the kernel.

use std::time::Duration;

use foxy_http_rules::range::Span;

use super::Link;
use crate::ledger::{Entry, Pressure, Use};
use crate::local::Local;
use crate::net::{Doing, Transport};
use crate::route::Refusal;
use crate::{Event, Limits};

/// Memory of a connection that waits for its next request, without its read buffer. An estimate.
pub(super) const IDLE_BYTES: usize = 4 << 10;
/// Memory of a connection with a request, without its read buffer. An estimate; the fetch of a miss
/// has an entry for itself.
pub(super) const ACTIVE_BYTES: usize = 5 << 10;
/// The kernel's receive queue of a client whose head has not arrived whole. An estimate where the system
/// chooses the length.
const RECEIVED_BYTES: usize = 16 << 10;

/// Bytes that one client's queue in the kernel takes if it does not read: the kernel fills the last
/// packet of the queue to this size whatever its limits say.
const QUEUE_BYTES: usize = 64 << 10;

/// Tries and pauses of a request that waits for memory that others give back: 5 s in all.
const ROOM_TRIES: u32 = 100;
/// From this length on, the rest of a head waits whenever new connections have to wait for memory: such
/// a head needs more than usual.
pub(super) const LONG_HEAD: usize = 16 << 10;
/// Tries for the rest of a long head, 0.5 s in all.
pub(super) const HEAD_TRIES: u32 = 10;
pub(super) const ROOM_PAUSE: Duration = Duration::from_millis(50);

/// Memory is still spent after connections that are not needed were closed.
pub(crate) const MEMORY: Refusal = Refusal {
    status: 503,
    reason: "memory-spent",
};

/// Memory of a connection whose head has not arrived whole, without its read buffer.
pub(super) fn head_bytes(limits: &Limits) -> usize {
    // The kernel doubles a length that is set.
    let received = limits.receive_bytes().map(|bytes| 2 * bytes);
    ACTIVE_BYTES + received.unwrap_or(RECEIVED_BYTES)
}

impl<T: Transport> Link<T> {
    /// A place for a body of `bytes` bytes in the send queues of the kernel. Short bodies do not wait for
    /// a place; they are entered only when memory is short. A longer body waits until other clients have
    /// read their answers; clients that have not read for long are closed. `None` after the patience for
    /// progress, or if this connection is closed in favour of others.
    pub(crate) async fn queue(&self, local: &Local, bytes: u64) -> Option<Entry> {
        let ledger = self.io.ledger();
        if bytes <= QUEUE_BYTES as u64 {
            // A slow client may leave the whole body in the kernel. The body is entered as memory of
            // the connection: then new connections wait, and answers that are ready do not.
            return Some(match ledger.pressure() {
                Pressure::Low => ledger.empty(Use::Queues),
                _ => self.take(bytes as usize),
            });
        }
        let deadline = self.io.deadline(local.patience.progress);
        let place = loop {
            let want = QUEUE_BYTES.min(ledger.limit(Use::Queues));
            let place = ledger.reserve(Use::Queues, want);
            if place.is_some() {
                break place;
            }
            self.io.set_doing(Doing::Queued);
            local.shed_stalled();
            if self.io.is_doomed() || local.sweep.now() >= deadline {
                break None;
            }
            tokio::time::sleep(ROOM_PAUSE).await;
        };
        self.io.set_doing(Doing::Work);
        if place.is_none() {
            local.count(Event::MemoryRefused);
        }
        place
    }

    /// As [`queue`](Self::queue), for these parts of a body.
    pub(crate) async fn queue_for(&self, local: &Local, spans: &[Span]) -> Option<Entry> {
        let bytes = spans.iter().map(|span| span.len()).sum();
        self.queue(local, bytes).await
    }

    /// Takes memory for the future of an answer.
    pub(crate) fn take(&self, bytes: usize) -> Entry {
        self.io.ledger().take(Use::Connections, bytes)
    }

    /// True if memory for requests is spent, and does not become free in time. Connections that are not
    /// needed are closed for it.
    pub(crate) async fn lacks_room(&self, local: &Local) -> bool {
        let ledger = self.io.ledger();
        if ledger.pressure() != Pressure::Spent {
            return false;
        }
        for _ in 0..ROOM_TRIES {
            if ledger.pressure() == Pressure::Spent {
                local.shed();
            }
            if !ledger.is_full() {
                return false;
            }
            tokio::time::sleep(ROOM_PAUSE).await;
        }
        local.count(Event::MemoryRefused);
        true
    }
}
