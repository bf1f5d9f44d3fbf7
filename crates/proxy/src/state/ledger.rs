//! The ledger of the memory that requests need: connections, buffers, queues in the kernel and fills. All
//! workers share one ledger. Work is entered before it begins, so that the next piece of work sees the
//! sum.
//!
//! Two kinds of entries: `take` always succeeds and is for what is small and bounded elsewhere;
//! `reserve` and `grow` fail when the limit is reached and are for what may wait or be left out.
//!
//! Entries are partly estimates, and partly rights that are not used yet: a slow download has a window
//! that it never fills. `observe` corrects the sum by the memory that the process really uses. While the
//! process uses little, nothing is closed or refused because of entries.

mod place;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::access::places::Counts;

pub(crate) use place::{PLACE_MAX, Place};

/// Purposes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Connections to clients and origins, and their tasks.
    Connections,
    /// Read buffers of clients and of origins.
    Buffers,
    /// Send queues of clients that do not read, in the kernel.
    Queues,
    /// Fragments of stored large objects on their way to clients.
    Fragments,
    /// Bodies of running fills, and their windows.
    Fills,
    /// The same of fills that several requests share, where others have all memory of fills.
    SharedFills,
}

impl Use {
    /// Every use, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Connections,
        Self::Buffers,
        Self::Queues,
        Self::Fragments,
        Self::Fills,
        Self::SharedFills,
    ];

    /// Name in reports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Buffers => "buffers",
            Self::Queues => "queues",
            Self::Fragments => "fragments",
            Self::Fills => "fills",
            Self::SharedFills => "shared-fills",
        }
    }

    /// Of `bytes` entered for this use, an estimate of those in the buffers of sockets. A place in a queue
    /// is the limit of its socket; of the entry of a connection or a fill, half is what was received and
    /// not read yet.
    #[must_use]
    pub const fn in_sockets(self, bytes: usize) -> usize {
        match self {
            Self::Queues => bytes,
            Self::Connections | Self::Fills | Self::SharedFills => bytes / 2,
            Self::Buffers | Self::Fragments => 0,
        }
    }
}

/// Memory of one connection that is served, in the share of a client: with buffers, and with a part
/// of the fetches that they start.
const CONNECTION_BYTES: usize = 32 << 10;
/// Least memory that comes back when an idle connection is closed.
const CLOSED_BYTES: usize = 8 << 10;
/// Least memory that comes back when a request without read buffer ends.
const ENDED_BYTES: usize = 4 << 10;
/// Memory of a connection that waits to be served: its socket, with a request in it.
const WAITING_BYTES: usize = 8 << 10;
/// Fewest connections that may wait for one worker.
const WAITING_MIN: usize = 8;
/// Fewest connections that may wait in the kernel for one listener of a worker.
const BACKLOG_MIN: usize = 128;
/// Most unsent bytes that wait in the kernel for one client to read: the least and the most of this limit
/// at low pressure, then the limit at high pressure, and when memory is spent.
const SEND_BYTES: [usize; 4] = [16 << 10, 128 << 10, 32 << 10, 16 << 10];
/// Bytes that an origin may send ahead: at low pressure in a small ledger, at high pressure, and when
/// memory is spent.
const RECEIVE_BYTES: [usize; 3] = [64 << 10, 32 << 10, 16 << 10];
/// A ledger smaller than this always limits what origins send ahead, and does not let answers have more while
/// there is room: many connections can open before their bodies come.
const SMALL_LEDGER: usize = 32 << 20;
/// Memory of connections and their buffers that come in without delay, also where it is more than half of
/// the ledger; at most three quarters of it.
const FEW_CONNECTIONS: usize = 10 << 20;
/// Connections that any client may have.
const CONNECTIONS_MIN: usize = 32;

/// Clients with at most this many connections, or this part of what one client may have, do not
/// wait behind clients with more.
const FEW: usize = 16;
const FEW_PART: usize = 8;

/// How much of the ledger is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// Less than half.
    Low,
    /// At least half: buffers are small.
    High,
    /// At least seven eighths: connections that are not needed are closed.
    Spent,
}

/// Shared account of bytes.
#[derive(Debug)]
pub(crate) struct Ledger {
    used: [AtomicUsize; Use::ALL.len()],
    total: AtomicUsize,
    /// Bytes that requests really have beyond their entries, when last observed.
    excess: AtomicUsize,
    places: place::Places,
    /// The process has much less than its budget, when last observed.
    roomy: AtomicBool,
    max: AtomicUsize,
    /// Limit of fills. The rest is for connections: without connections no client gets an answer.
    fills_max: AtomicUsize,
}

impl Ledger {
    /// A ledger of `max` bytes; fills use at most `fills_max` of them.
    pub(crate) fn new(max: usize, fills_max: usize) -> Arc<Self> {
        Arc::new(Self {
            used: Default::default(),
            total: AtomicUsize::new(0),
            excess: AtomicUsize::new(0),
            places: place::Places::default(),
            roomy: AtomicBool::new(false),
            max: max.max(1).into(),
            fills_max: fills_max.into(),
        })
    }

    /// Sets other limits. Entries beyond them stay, and come back as work ends.
    pub(crate) fn set_limits(&self, max: usize, fills_max: usize) {
        self.max.store(max.max(1), Ordering::Relaxed);
        self.fills_max.store(fills_max, Ordering::Relaxed);
    }

    fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Bytes entered for `of`.
    pub(crate) fn used(&self, of: Use) -> usize {
        self.used[of as usize].load(Ordering::Relaxed)
    }

    /// Corrects the sum: requests really have `bytes` now. If the entries are more than that, the entries
    /// count. The correction is at most the limit, so that memory that does not come back cannot refuse
    /// all work. `roomy`: the whole process has so little that work can be let in until the next
    /// observation.
    pub(crate) fn observe(&self, bytes: usize, roomy: bool) {
        self.roomy.store(roomy, Ordering::Relaxed);
        let entered = self.total.load(Ordering::Relaxed);
        let excess = bytes.saturating_sub(entered).min(self.max());
        self.excess.store(excess, Ordering::Relaxed);
    }

    /// Bytes beyond the entries, as last observed.
    pub(crate) fn excess(&self) -> usize {
        self.excess.load(Ordering::Relaxed)
    }

    /// Entries and excess.
    fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed) + self.excess()
    }

    /// Memory is spent from this number of bytes on.
    fn spent_from(&self) -> usize {
        self.max() / 8 * 7
    }

    /// Number of connections to close so that memory is no longer spent, if each gives back the least.
    pub(crate) fn surplus(&self) -> usize {
        self.total().saturating_sub(self.spent_from()) / CLOSED_BYTES
    }

    pub(crate) fn pressure(&self) -> Pressure {
        let total = self.total();
        if total >= self.spent_from() && !self.is_roomy() {
            Pressure::Spent
        } else if total >= self.max() / 2 {
            Pressure::High
        } else {
            Pressure::Low
        }
    }

    /// Most unsent bytes that wait in the kernel for one client to read, and most bytes of one write
    /// where memory is short. A client that reads gets the same from small queues, with more system
    /// calls.
    pub(crate) fn send_bytes(&self) -> usize {
        let [least, most, high, spent] = SEND_BYTES;
        match self.pressure() {
            Pressure::Low => (self.max() / 256).clamp(least, most),
            Pressure::High => high,
            Pressure::Spent => spent,
        }
    }

    /// Most bytes that an origin may send ahead; `None` if the system may decide.
    pub(crate) fn receive_bytes(&self) -> Option<usize> {
        let [small, high, spent] = RECEIVE_BYTES;
        match self.pressure() {
            Pressure::Low if self.max() >= SMALL_LEDGER => None,
            Pressure::Low => Some(small),
            Pressure::High => Some(high),
            Pressure::Spent => Some(spent),
        }
    }

    fn is_roomy(&self) -> bool {
        self.roomy.load(Ordering::Relaxed)
    }

    /// True if connections and their buffers have more than half of the limit, or in a small ledger more
    /// than [`FEW_CONNECTIONS`]: new connections come in slowly. Queues and fills do not count: they have
    /// limits of their own, and while their entries are rights that nobody uses, small answers can still be
    /// sent. The excess counts too. While there is much room, they may have three quarters: thousands of
    /// connections can come in between two observations.
    pub(crate) fn is_over(&self) -> bool {
        let most = self.max() / 4 * 3;
        match self.is_roomy() {
            true => self.of_connections() > most,
            false => {
                let usual = (self.max() / 2).max(FEW_CONNECTIONS.min(most));
                self.of_connections() + self.excess() > usual
            }
        }
    }

    /// True if connections and their buffers have the whole limit: new work must wait, and is refused
    /// after that. This is up to twice the amount that delays new connections, so that a client that behaves
    /// is not refused as soon as others have filled their part. The excess does not count: this work does
    /// not hold it, and it may not come back for a long time.
    pub(crate) fn is_full(&self) -> bool {
        self.of_connections() >= self.max() && !self.is_roomy()
    }

    /// Number of requests to end so that connections no longer have the whole limit; 0 if they do not
    /// have it.
    pub(crate) fn overfull(&self) -> usize {
        match self.is_full() {
            true => (self.of_connections() - self.spent_from()).div_ceil(ENDED_BYTES),
            false => 0,
        }
    }

    fn of_connections(&self) -> usize {
        self.used(Use::Connections) + self.used(Use::Buffers)
    }

    /// True if a client with these connections has no more than its share. At low pressure there is no
    /// limit here. Otherwise a client may have a quarter of the ledger, so that others find room, and
    /// half of the waiting places of all `workers`. A waiting connection has a socket and no buffers: a
    /// connection that is served counts as four waiting ones.
    pub(crate) fn has_share(&self, counts: Counts, workers: usize) -> bool {
        if self.pressure() == Pressure::Low {
            return true;
        }
        let bytes = counts.served * CONNECTION_BYTES + counts.waiting * WAITING_BYTES;
        let waiting = self.waiting_max(workers) * workers / 2;
        bytes <= self.share() && counts.waiting <= waiting.max(CONNECTIONS_MIN)
    }

    /// Most connections of a client that does not wait behind clients with more.
    pub(crate) fn few(&self) -> usize {
        match self.pressure() {
            Pressure::Low => usize::MAX,
            _ => (self.share() / CONNECTION_BYTES / FEW_PART).max(FEW),
        }
    }

    /// Bytes that one client may use where memory is short.
    fn share(&self) -> usize {
        (self.max() / 4).max(CONNECTIONS_MIN * CONNECTION_BYTES)
    }

    /// Connections that may wait to be served by each of `workers`; never 0, because each of many workers
    /// would accept nothing then.
    pub(crate) fn waiting_max(&self, workers: usize) -> usize {
        (self.max() / 4 / WAITING_BYTES / workers.max(1)).max(WAITING_MIN)
    }

    /// Connections that may wait in the kernel for each listener of each of `workers`. The kernel drops
    /// further handshakes, and the clients' kernels retry.
    pub(crate) fn backlog(&self, workers: usize) -> usize {
        (self.max() / 8 / WAITING_BYTES / workers.max(1)).max(BACKLOG_MIN)
    }

    /// Enters bytes whatever the sum is.
    pub(crate) fn take(self: &Arc<Self>, of: Use, bytes: usize) -> Entry {
        let mut entry = self.empty(of);
        entry.add(bytes);
        entry
    }

    /// Enters bytes, or `None` if there is no room.
    pub(crate) fn reserve(self: &Arc<Self>, of: Use, bytes: usize) -> Option<Entry> {
        let mut entry = self.empty(of);
        entry.grow(bytes).then_some(entry)
    }

    /// An entry of no bytes.
    pub(crate) fn empty(self: &Arc<Self>, of: Use) -> Entry {
        Entry {
            ledger: Arc::clone(self),
            of,
            bytes: 0,
        }
    }

    /// Most bytes of all entries for one use.
    pub(crate) fn limit(&self, of: Use) -> usize {
        match of {
            Use::Fills => self.fills_max() - self.shared_fills_max(),
            Use::SharedFills => self.shared_fills_max(),
            Use::Queues => {
                let most = self.answers_max();
                let left = most.saturating_sub(self.used(Use::Fragments));
                left.clamp(most / 4, most / 4 * 3)
            }
            Use::Fragments => {
                let most = self.answers_max();
                (most / 4).max(most.saturating_sub(self.used(Use::Queues)))
            }
            _ => usize::MAX,
        }
    }

    /// Limit of all fills together.
    fn fills_max(&self) -> usize {
        self.fills_max.load(Ordering::Relaxed)
    }

    /// Memory kept for fills that several requests share. Such a fill spares one fetch for each of its
    /// requests.
    fn shared_fills_max(&self) -> usize {
        self.fills_max() / 4
    }

    /// Limit of queues and fragments together: three eighths of the ledger, less where connections,
    /// buffers and the excess need more than the rest, and at least an eighth, because answers must get
    /// out. While there is much room, it is twice as high, unless the ledger is small: there a crowd fills
    /// what is free before the next observation. Each has at least a quarter: an answer with a place in the
    /// queues may still wait for a fragment, and a limit of nothing would let in everything.
    fn answers_max(&self) -> usize {
        let others = self.used(Use::Connections) + self.used(Use::Buffers) + self.excess();
        let least = self.max() / 8;
        let most = match self.is_roomy() && self.max() >= SMALL_LEDGER {
            true => least * 6,
            false => least * 3,
        };
        self.max().saturating_sub(others).clamp(least, most)
    }

    /// Limit of all entries together, for a reservation. Answers and fills have only their own limits:
    /// answers must get out and objects must get into the store, whatever fills the ledger.
    fn limit_of_all(&self, of: Use) -> usize {
        match of {
            Use::Queues | Use::Fragments | Use::Fills | Use::SharedFills => usize::MAX,
            _ => self.max().saturating_sub(self.excess()),
        }
    }
}

/// Bytes entered in a [`Ledger`]; given back when dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Arc<Ledger>,
    of: Use,
    bytes: usize,
}

impl Entry {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds `bytes` from now on, whatever the sum is.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.shrink_to(bytes);
        } else {
            self.add(bytes - self.bytes);
        }
    }

    /// Takes `more` bytes; false, and nothing is taken, if there is no room.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let within = |max: usize| {
            move |used: usize| {
                used.checked_add(more)
                    .filter(|sum| more == 0 || *sum <= max)
            }
        };
        let ledger = &self.ledger;
        let update = |of: &AtomicUsize, max| {
            of.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within(max))
                .is_ok()
        };
        if !update(&ledger.total, ledger.limit_of_all(self.of)) {
            return false;
        }
        let own = &ledger.used[self.of as usize];
        if !update(own, ledger.limit(self.of)) {
            ledger.total.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes += more;
        true
    }

    /// Gives back what exceeds `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if let Some(less) = self.bytes.checked_sub(bytes) {
            let ledger = &self.ledger;
            ledger.used[self.of as usize].fetch_sub(less, Ordering::Relaxed);
            ledger.total.fetch_sub(less, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }

    fn add(&mut self, more: usize) {
        let ledger = &self.ledger;
        ledger.used[self.of as usize].fetch_add(more, Ordering::Relaxed);
        ledger.total.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests;
