//! The memory that connections and requests need, and the wait for memory when it is used up.

use std::time::Duration;

use super::Link;
use crate::access::refusal::Refusal;
use crate::http::net::Transport;
use crate::state::ledger::{Entry, Pressure, Use};
use crate::state::local::Local;
use crate::{Event, Limits};

/// Estimated memory of a connection that waits for its next request, without its read buffer, in bytes.
pub(super) const IDLE_BYTES: usize = 4 << 10;
/// Estimated memory of a connection with a request, without its read buffer, in bytes. The fetch of a miss
/// has a separate entry in the ledger.
pub(super) const ACTIVE_BYTES: usize = 5 << 10;
/// Estimated bytes in the kernel's receive queue of a client that has sent only a part of a request head. The
/// estimate is used if the system chooses the length of the queue.
const RECEIVED_BYTES: usize = 16 << 10;

/// Number of times that a request checks for free memory, while it waits until other requests free memory.
/// All checks and pauses together take 5 s.
const ROOM_TRIES: u32 = 100;
/// Smallest size of a long head, in bytes. While new connections have to wait for memory, Foxy does not read
/// the rest of a long head, because this head needs more memory than usual.
pub(super) const LONG_HEAD: usize = 16 << 10;
/// Number of tries to read the rest of a long head while there is no memory for it. All tries together take
/// 0.5 s.
pub(super) const HEAD_TRIES: u32 = 10;
pub(super) const ROOM_PAUSE: Duration = Duration::from_millis(50);

/// The refusal for a request that finds no free memory, even after Foxy has closed connections that are not
/// needed.
pub(crate) const MEMORY: Refusal = Refusal {
    status: 503,
    reason: "memory-spent",
};

/// Returns the memory of a connection that has received only a part of a request head, without its read
/// buffer.
pub(super) fn head_bytes(limits: &Limits) -> usize {
    // The kernel doubles the length that a program sets for a receive queue.
    let received = limits.receive_bytes().map(|bytes| 2 * bytes);
    ACTIVE_BYTES + received.unwrap_or(RECEIVED_BYTES)
}

impl<T: Transport> Link<T> {
    /// Enters memory for an answer of this connection into the ledger, for example the memory of the Rust
    /// future that sends the answer.
    pub(crate) fn take(&self, bytes: usize) -> Entry {
        self.io.ledger().take(Use::Connections, bytes)
    }

    /// Returns true if memory for requests is used up and does not become free in time. Connections that are
    /// not needed are closed to free memory.
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
