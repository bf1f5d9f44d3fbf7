//! Requests to a drive.

/// Direction of a transfer, seen from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// The transfer goes from the drive to memory.
    Read,
    /// The transfer goes from memory to the drive.
    Write,
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Direction of the transfer.
    pub op: Op,
    /// First byte on the drive; rounded down to a 512-byte sector.
    pub at: u64,
    /// Bytes; rounded up to whole sectors, and cut at the end of the drive.
    pub len: u64,
    /// True for a write that is done only when it is on the medium, even if the drive has a write cache.
    pub through: bool,
}

impl Request {
    /// Creates a read of `len` bytes at byte `at`.
    #[must_use]
    pub const fn read(at: u64, len: u64) -> Self {
        Self {
            op: Op::Read,
            at,
            len,
            through: false,
        }
    }

    /// Creates a write of `len` bytes at byte `at`.
    #[must_use]
    pub const fn write(at: u64, len: u64) -> Self {
        Self {
            op: Op::Write,
            at,
            len,
            through: false,
        }
    }

    /// Returns the request, which now bypasses the drive's write cache.
    #[must_use]
    pub const fn through(self) -> Self {
        Self {
            through: true,
            ..self
        }
    }

    /// Address of the byte after the request's last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

/// Order in which a queue sends its waiting requests to the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Schedule {
    /// In order of arrival.
    Fcfs,
    /// The nearest address first.
    Sstf,
    /// Ascending addresses, then descending addresses, and so on.
    Look,
    /// Ascending addresses only; after the highest address the lowest waiting address follows (as Unix
    /// drivers of the 1990s do).
    #[default]
    CLook,
}
