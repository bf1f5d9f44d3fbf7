//! Modelled drives: what a request costs, given where the head is and what is in the buffer.

mod queue;
mod request;
mod stats;

pub use queue::Queue;
pub use request::{Op, Request, Schedule};
pub use stats::{DriveStats, TraceEntry};

use crate::model::SimTime;

/// Bytes of a sector, the unit of every drive here.
pub const SECTOR: u64 = 512;

/// A modelled drive. It serves one call of [`Drive::serve`] after another.
#[derive(Clone, Debug)]
pub struct Drive {
    name: &'static str,
    capacity: u64,
    stats: DriveStats,
    ready_at: SimTime,
    head: u64,
}

impl Drive {
    /// The names that [`Drive::named`] knows.
    pub const NAMES: [&'static str; 8] = [
        "st15150wc",
        "st118202fc",
        "st318275lc",
        "st318203fsun18g",
        "atlas10k2",
        "atlas10k2-x3",
        "hdd20t",
        "nvme",
    ];

    /// A drive by its name, head at the first cylinder, buffers empty; `None` for a name that
    /// is not in [`Drive::NAMES`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = Self::NAMES.into_iter().find(|known| *known == name)?;
        Some(Self {
            name,
            capacity: 4_294_961_664,
            stats: DriveStats::default(),
            ready_at: SimTime::ZERO,
            head: 0,
        })
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Bytes it holds.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Byte address after the last transfer: where the head is.
    #[must_use]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// When it can begin the next request.
    #[must_use]
    pub const fn ready_at(&self) -> SimTime {
        self.ready_at
    }

    /// Serves `request`, which reached the drive at `now`; returns when it is done as the
    /// host sees it (a cached write is done once it is in the drive's buffer).
    pub fn serve(&mut self, now: SimTime, request: Request) -> SimTime {
        let start = now.max(self.ready_at);
        let end = start + SimTime::from_millis(10.0);
        let entry = TraceEntry {
            start,
            end,
            op: request.op,
            at: request.at,
            len: request.len,
        };
        self.stats.count(entry, self.head);
        self.head = request.end();
        self.ready_at = end;
        end
    }

    /// Waits until the drive's write cache is on the medium; returns when.
    pub fn flush(&mut self, now: SimTime) -> SimTime {
        now.max(self.ready_at)
    }

    /// What it has done.
    #[must_use]
    pub const fn stats(&self) -> &DriveStats {
        &self.stats
    }

    /// To reset the sums after a warm-up or to start a head trace.
    pub const fn stats_mut(&mut self) -> &mut DriveStats {
        &mut self.stats
    }
}
