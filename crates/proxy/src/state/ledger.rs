//! The ledger: an account of the memory that requests need for connections, buffers, send queues in the
//! kernel and fills (fetches from origins). All workers share one ledger. The memory of a piece of work is
//! entered before the work begins. So the next piece of work sees the correct sum.
//!
//! There are two ways to enter memory. `take` always succeeds, and is for small amounts that are bounded
//! elsewhere. `reserve` and `grow` fail when the limit is reached, and are for work that may wait or be
//! refused.
//!
//! Some entries are estimates. Other entries reserve the most memory that the work can need. An example is
//! the window of a slow download (the bytes of a fetch that are kept for its readers), which never becomes
//! full. `observe` gets the number of bytes that requests really use. If requests use more than their
//! entries, the difference (the excess) is added to the sum. While the process really uses little memory,
//! Foxy closes no connection and refuses no request because of the entries.

mod places;
mod reservation;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) use reservation::{RESERVATION_MAX, SendReservation};

/// The purposes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Connections to clients and origins, and their tasks.
    Connections,
    /// Read buffers of connections to clients and to origins.
    Buffers,
    /// Send queues of the kernel, with bytes that clients have not received yet.
    Queues,
    /// Fragments of stored large objects on their way to clients.
    Fragments,
    /// Bodies of running fills, and their windows: the bytes of a body that are kept for the requests that
    /// read it.
    Fills,
    /// Bodies and windows of fills that several requests share. They are entered here when other fills use
    /// all memory of [`Fills`](Self::Fills).
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

    /// Returns an estimate of the bytes in the socket buffers of the kernel, if `bytes` bytes are entered for
    /// this use. An entry for a queue counts completely, because it is the limit of a socket's send buffer.
    /// Half of an entry for connections or fills counts, as an estimate of the bytes that were received but
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

/// Smallest number of bytes that are released when an idle connection is closed.
const CLOSED_BYTES: usize = 8 << 10;
/// Smallest number of bytes that are released when a request without a read buffer ends.
const ENDED_BYTES: usize = 4 << 10;
/// Limits of the unsent bytes in the kernel for one client. At low [`Pressure`], the limit is 1/256 of the
/// size of the ledger, but at least the first and at most the second value. The third value is the limit at
/// high pressure. The fourth value is the limit when memory is spent.
const SEND_BYTES: [usize; 4] = [16 << 10, 128 << 10, 32 << 10, 16 << 10];
/// Numbers of bytes that an origin may send before Foxy reads them. The three values are for low pressure in
/// a small ledger, for high pressure, and for spent memory.
const RECEIVE_BYTES: [usize; 3] = [64 << 10, 32 << 10, 16 << 10];
/// Size in bytes below which a ledger is small. A small ledger always limits the bytes that origins send
/// before Foxy reads them. A large ledger lets answers use more memory while much memory is free. A small
/// ledger keeps this memory free: many connections can open before the bodies of their answers arrive, and
/// these bodies need memory later.
const SMALL_LEDGER: usize = 32 << 20;
/// The degree to which the ledger is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// Less than half of the ledger is used.
    Low,
    /// At least half of the ledger is used. Buffers are small.
    High,
    /// At least seven eighths of the ledger are used, and the process really uses much memory. Connections
    /// that are not needed are closed.
    Spent,
}

/// The account of the bytes that requests use.
#[derive(Debug)]
pub(crate) struct Ledger {
    used: [AtomicUsize; Use::ALL.len()],
    total: AtomicUsize,
    /// The excess: bytes that requests used beyond their entries at the last observation.
    excess: AtomicUsize,
    reservations: reservation::SendReservations,
    /// True if the process used much less than its budget at the last observation.
    roomy: AtomicBool,
    max: AtomicUsize,
    /// Limit in bytes for all fills together. It is lower than the limit of the ledger, so that connections
    /// always find memory.
    fills_max: AtomicUsize,
}

impl Ledger {
    /// Creates a ledger of `max` bytes. Fills use at most `fills_max` of them.
    pub(crate) fn new(max: usize, fills_max: usize) -> Arc<Self> {
        Arc::new(Self {
            used: Default::default(),
            total: AtomicUsize::new(0),
            excess: AtomicUsize::new(0),
            reservations: reservation::SendReservations::default(),
            roomy: AtomicBool::new(false),
            max: max.max(1).into(),
            fills_max: fills_max.into(),
        })
    }

    /// Sets other limits. Entries beyond the new limits remain until their work ends.
    pub(crate) fn set_limits(&self, max: usize, fills_max: usize) {
        self.max.store(max.max(1), Ordering::Relaxed);
        self.fills_max.store(fills_max, Ordering::Relaxed);
    }

    fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that are entered for the use `of`.
    pub(crate) fn used(&self, of: Use) -> usize {
        self.used[of as usize].load(Ordering::Relaxed)
    }

    /// Sets the excess. `bytes` is the number of bytes that requests really use now. If it is larger than the
    /// sum of the entries, the excess is the difference, otherwise 0. The excess is never more than the limit
    /// of the ledger. `roomy` is true if the process uses so little memory that new work may begin, even if
    /// the entries reach a limit. The excess and `roomy` hold until the next observation.
    pub(crate) fn observe(&self, bytes: usize, roomy: bool) {
        self.roomy.store(roomy, Ordering::Relaxed);
        let entered = self.total.load(Ordering::Relaxed);
        let excess = bytes.saturating_sub(entered).min(self.max());
        self.excess.store(excess, Ordering::Relaxed);
    }

    /// Returns the number of bytes by which the last observation exceeded the sum of the entries.
    pub(crate) fn excess(&self) -> usize {
        self.excess.load(Ordering::Relaxed)
    }

    /// Returns the sum of entries and excess.
    fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed) + self.excess()
    }

    /// Returns the number of used bytes at which memory counts as spent ([`Pressure::Spent`]).
    fn spent_from(&self) -> usize {
        self.max() / 8 * 7
    }

    /// Returns the number of connections that must be closed so that memory is no longer spent. The
    /// calculation assumes that each connection releases only [`CLOSED_BYTES`].
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

    /// Returns the limit of the unsent bytes in the kernel for one client. When memory is short, this is also
    /// the limit of one write. Small queues do not slow a client that reads, but they need more system calls.
    pub(crate) fn send_bytes(&self) -> usize {
        let [least, most, high, spent] = SEND_BYTES;
        match self.pressure() {
            Pressure::Low => (self.max() / 256).clamp(least, most),
            Pressure::High => high,
            Pressure::Spent => spent,
        }
    }

    /// Returns the largest number of bytes that an origin may send before Foxy reads them. `None` means that
    /// the system chooses the limit.
    pub(crate) fn receive_bytes(&self) -> Option<usize> {
        let [small, high, spent] = RECEIVE_BYTES;
        match self.pressure() {
            Pressure::Low if !self.is_small() => None,
            Pressure::Low => Some(small),
            Pressure::High => Some(high),
            Pressure::Spent => Some(spent),
        }
    }

    /// True if the ledger is smaller than [`SMALL_LEDGER`].
    pub(crate) fn is_small(&self) -> bool {
        self.max() < SMALL_LEDGER
    }

    fn is_roomy(&self) -> bool {
        self.roomy.load(Ordering::Relaxed)
    }

    /// Returns true if connections and their buffers use the complete ledger. New work must then wait, and is
    /// refused if no memory becomes free. New connections are delayed much earlier (see
    /// [`is_over`](Self::is_over)), which leaves memory for requests. So the connections of one client do not
    /// cause refusals of other clients' requests. The excess does not count, because it is not memory of
    /// connections, and may remain for a long time.
    pub(crate) fn is_full(&self) -> bool {
        self.of_connections() >= self.max() && !self.is_roomy()
    }

    /// Returns the number of requests that must end so that connections no longer use the complete ledger.
    /// Returns 0 if connections do not use the complete ledger.
    pub(crate) fn overfull(&self) -> usize {
        match self.is_full() {
            true => (self.of_connections() - self.spent_from()).div_ceil(ENDED_BYTES),
            false => 0,
        }
    }

    fn of_connections(&self) -> usize {
        self.used(Use::Connections) + self.used(Use::Buffers)
    }

    /// Enters bytes for a use, even if the sum exceeds the limit.
    pub(crate) fn take(self: &Arc<Self>, of: Use, bytes: usize) -> Entry {
        let mut entry = self.empty(of);
        entry.add(bytes);
        entry
    }

    /// Enters bytes for a use. Returns `None` if the sum would exceed a limit.
    pub(crate) fn reserve(self: &Arc<Self>, of: Use, bytes: usize) -> Option<Entry> {
        let mut entry = self.empty(of);
        entry.grow(bytes).then_some(entry)
    }

    /// Returns an entry of no bytes.
    pub(crate) fn empty(self: &Arc<Self>, of: Use) -> Entry {
        Entry {
            ledger: Arc::clone(self),
            of,
            bytes: 0,
        }
    }

    /// Returns the number of bytes that all entries for one use together may have.
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

    /// Returns the limit of all fills together, in bytes.
    fn fills_max(&self) -> usize {
        self.fills_max.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that are reserved for fills that several requests share. Such a fill saves
    /// one fetch for each of its followers (the requests that wait for it).
    fn shared_fills_max(&self) -> usize {
        self.fills_max() / 4
    }

    /// Returns the limit of queues and fragments together. It is three eighths of the ledger. If connections,
    /// buffers and the excess leave less memory, the limit is the memory that they leave. The limit is at
    /// least one eighth, because answers must be sent.
    ///
    /// While the process uses little memory (`roomy`), the limit is six eighths instead of three eighths. In
    /// a small ledger, it remains three eighths, because many new requests could fill the free memory before
    /// the next observation.
    ///
    /// Queues and fragments each have at least a quarter of this limit. Otherwise answers could have memory
    /// in the queues and wait forever for the memory of a fragment.
    fn answers_max(&self) -> usize {
        let others = self.used(Use::Connections) + self.used(Use::Buffers) + self.excess();
        let least = self.max() / 8;
        let most = match self.is_roomy() && !self.is_small() {
            true => least * 6,
            false => least * 3,
        };
        self.max().saturating_sub(others).clamp(least, most)
    }

    /// Returns the limit that the sum of all entries must not exceed when bytes for the use `of` are
    /// reserved. This limit does not apply to answers and fills, because answers must be sent and objects
    /// must be stored even if the ledger is full. They have only the limits of [`limit`](Self::limit).
    fn limit_of_all(&self, of: Use) -> usize {
        match of {
            Use::Queues | Use::Fragments | Use::Fills | Use::SharedFills => usize::MAX,
            _ => self.max().saturating_sub(self.excess()),
        }
    }
}

/// Bytes entered in a [`Ledger`]. They are released when the entry is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Arc<Ledger>,
    of: Use,
    bytes: usize,
}

impl Entry {
    /// Returns the bytes entered.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the entry to `bytes`, even if the sum exceeds the limit.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.shrink_to(bytes);
        } else {
            self.add(bytes - self.bytes);
        }
    }

    /// Enters `more` bytes. If the sum would exceed a limit, enters nothing and returns false.
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

    /// Releases the bytes beyond `bytes`.
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
