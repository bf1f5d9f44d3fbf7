//! Numbers of connections: how many are served, how many wait, and how many one client may have.

use super::{Ledger, Pressure};
use crate::access::client_connections::Counts;

/// Number of bytes that one served connection takes from the share of its client. It includes the buffers of
/// the connection and a part of the fetches that the connection starts.
const CONNECTION_BYTES: usize = 32 << 10;
/// Number of bytes that a connection uses while it waits to be served: its socket, with a request in it.
const WAITING_BYTES: usize = 4 << 10;
/// Number of connections that may always wait to be served by one worker.
const WAITING_MIN: usize = 8;
/// Number of connections that may always wait for one listener of a worker.
const BACKLOG_MIN: usize = 128;
/// Size of a ledger from which on Foxy accepts connections that it does not serve yet.
const NEWCOMERS_MEMORY: usize = 48 << 20;
/// Limit of the bytes that connections use while they wait for one listener of all workers, in the kernel or as
/// newcomers. The limit is never more than a quarter of the ledger, and never less than an eighth.
const BACKLOG_BYTES: usize = 7 << 19;
/// Number of bytes that connections and buffers may use before new connections are delayed. This limit is
/// never more than three quarters of the ledger, and never less than half of the ledger.
const FEW_CONNECTIONS: usize = 10 << 20;
/// Number of connections that every client may always have.
const CONNECTIONS_MIN: usize = 32;

/// Largest number of connections with which a client counts as a client with few connections. Such a client
/// does not wait behind clients with more connections. In a large ledger, the number is higher: it is the
/// number of served connections that fit into one eighth ([`FEW_PART`]) of a client's share.
const FEW: usize = 16;
const FEW_PART: usize = 8;

impl Ledger {
    /// Returns true if connections and their buffers use so much memory that new connections must be admitted
    /// slowly. The usual limit is half of the ledger, or [`FEW_CONNECTIONS`] if this is more. The limit is
    /// never more than three quarters of the ledger. The excess (memory beyond the entries) counts too.
    /// Entries for queues, fragments and fills do not count, because these uses have separate limits, and the
    /// entries may be for memory that is not used.
    ///
    /// While the process uses little memory (`roomy`), the limit is three quarters of the ledger, and the
    /// excess does not count. The limit is not higher even then, because thousands of connections can be
    /// opened between two observations.
    pub(crate) fn is_over(&self) -> bool {
        self.entrance_room(1).is_none()
    }

    /// Returns the number of connections that each of `workers` can admit until memory reaches the limit of
    /// [`is_over`](Self::is_over). Returns `None` if memory is over this limit.
    pub(crate) fn entrance_room(&self, workers: usize) -> Option<usize> {
        let most = self.max() / 4 * 3;
        let (limit, used) = match self.is_roomy() {
            true => (most, self.of_connections()),
            false => {
                let usual = (self.max() / 2).max(FEW_CONNECTIONS.min(most));
                (usual, self.of_connections() + self.excess())
            }
        };
        Some(limit.checked_sub(used)? / CONNECTION_BYTES / workers.max(1))
    }

    /// Returns true if a client with these numbers of connections has no more than its share. At low
    /// pressure, a share has no limit. Otherwise a share has two limits: the client's connections may use a
    /// quarter of the ledger, and the number of its waiting connections may be half of the number that may
    /// wait at all `workers` together. So memory is left for other clients. A served connection counts as
    /// much as eight waiting connections, because a waiting connection has no buffers.
    pub(crate) fn has_share(&self, counts: Counts, workers: usize) -> bool {
        if self.pressure() == Pressure::Low {
            return true;
        }
        let bytes = counts.served * CONNECTION_BYTES + counts.waiting * WAITING_BYTES;
        let waiting = self.waiting_max(workers) * workers / 2;
        bytes <= self.share() && counts.waiting <= waiting.max(CONNECTIONS_MIN)
    }

    /// Returns the largest number of connections with which a client counts as a client with few connections.
    /// Such a client does not wait behind clients with more connections.
    pub(crate) fn few(&self) -> usize {
        (self.share() / CONNECTION_BYTES / FEW_PART).max(FEW)
    }

    /// Returns the number of bytes that one client may use when memory is short.
    fn share(&self) -> usize {
        (self.max() / 4).max(CONNECTIONS_MIN * CONNECTION_BYTES)
    }

    /// Returns the number of connections that may wait to be served by each of `workers`. Together with those
    /// that wait for one listener, they use three eighths of the ledger. The number is never 0,
    /// because a worker with the limit 0 would accept no connection.
    pub(crate) fn waiting_max(&self, workers: usize) -> usize {
        let bytes = (self.max() / 8 * 3).saturating_sub(self.backlog_bytes());
        (bytes / WAITING_BYTES / workers.max(1)).max(WAITING_MIN)
    }

    /// Returns the number of connections that may wait for each listener of each of `workers`. The second number
    /// is the part of them that may wait as newcomers (see `client::listen::accept`). The others wait in the
    /// kernel. If more connections come, the kernel drops their handshakes, and the clients' kernels retry after
    /// 1, 3 and 7 s. This is slow, so there must be room for many connections.
    ///
    /// If the memory is small, most waiting connections wait in the kernel, and there are no newcomers: Foxy
    /// accepts a connection only when it can serve it. If the memory is large, only a third of the waiting
    /// connections wait for the listener, because Foxy cannot choose which of the connections in the kernel it
    /// serves first.
    pub(crate) fn backlog(&self, workers: usize) -> (usize, usize) {
        let all = self.backlog_bytes() / WAITING_BYTES / workers.max(1);
        let all = all.max(BACKLOG_MIN);
        match self.max() >= NEWCOMERS_MEMORY {
            true => (all, all / 2),
            false => (all, 0),
        }
    }

    /// Returns the number of bytes that connections may use while they wait for one listener.
    fn backlog_bytes(&self) -> usize {
        let (usual, most) = (self.max() / 8, self.max() / 4);
        usual.max(BACKLOG_BYTES.min(most))
    }
}
