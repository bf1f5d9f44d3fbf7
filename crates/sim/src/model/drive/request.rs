//! Requests to a drive.

/// Direction of a transfer, seen from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Direction.
    pub op: Op,
    /// First byte on the drive; rounded down to a 512-byte sector.
    pub at: u64,
    /// Bytes; rounded up to whole sectors, and cut at the end of the drive.
    pub len: u64,
    /// A write that is done when it is on the medium, whatever the drive's cache holds.
    pub through: bool,
}

impl Request {
    /// A read of `len` bytes at byte `at`.
    #[must_use]
    pub const fn read(at: u64, len: u64) -> Self {
        Self {
            op: Op::Read,
            at,
            len,
            through: false,
        }
    }

    /// A write of `len` bytes at byte `at`.
    #[must_use]
    pub const fn write(at: u64, len: u64) -> Self {
        Self {
            op: Op::Write,
            at,
            len,
            through: false,
        }
    }

    /// The same past the drive's write cache.
    #[must_use]
    pub const fn through(self) -> Self {
        Self {
            through: true,
            ..self
        }
    }

    /// The byte after the last.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

/// Order in which a queue hands its waiting requests to the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Schedule {
    /// As they came.
    Fcfs,
    /// The nearest address first.
    Sstf,
    /// Up and down.
    Look,
    /// Up only, then back to the lowest (what Unix drivers of the 1990s do).
    #[default]
    CLook,
}
