//! Memory for requests.

use std::time::Duration;

use super::Link;
use crate::access::refusal::Refusal;
use crate::http::net::Transport;
use crate::state::ledger::{Entry, Pressure, Use};
use crate::state::local::Local;
use crate::{Event, Limits};

/// Memory of a connection that waits for its next request, without its read buffer. An estimate.
pub(super) const IDLE_BYTES: usize = 4 << 10;
/// Memory of a connection with a request, without its read buffer. An estimate; the fetch of a miss
/// has an entry for itself.
pub(super) const ACTIVE_BYTES: usize = 5 << 10;
/// The kernel's receive queue of a client whose head has not arrived whole. An estimate where the system
/// chooses the length.
const RECEIVED_BYTES: usize = 16 << 10;

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
