//! Costs of file operations on the drive, by kind of data.

use crate::model::{DriveStats, Op, SimTime};

/// Type of the data in a device request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoKind {
    /// Contents of files, or any data on a raw partition.
    Data,
    /// Inode blocks.
    Inode,
    /// Directory blocks.
    Directory,
    /// Indirect blocks of large files.
    Indirect,
    /// Cylinder group blocks (free maps).
    Bitmap,
    /// The journal.
    Log,
}

impl IoKind {
    /// Every kind, in the order of the arrays of [`FsCounters`].
    pub const ALL: [Self; 6] = [
        Self::Data,
        Self::Inode,
        Self::Directory,
        Self::Indirect,
        Self::Bitmap,
        Self::Log,
    ];
}

/// Requests, bytes and times of all file operations of a run.
#[derive(Clone, Debug, Default)]
pub struct FsCounters {
    /// Number of read requests to the drive, by [`IoKind`].
    pub reads: [u64; 6],
    /// Number of write requests to the drive, by [`IoKind`].
    pub writes: [u64; 6],
    /// Bytes read from the drive, by [`IoKind`].
    pub read_bytes: [u64; 6],
    /// Bytes written to the drive, by [`IoKind`].
    pub written_bytes: [u64; 6],
    /// Number of requests that the process waited for.
    pub waited: u64,
    /// Time that the process waited for the drive.
    pub waiting: SimTime,
    /// Number of pages that were found in the page cache, by reads or by writes that cover only a part of a
    /// page.
    pub page_hits: u64,
    /// Number of pages that reads did not find in the page cache, so that they were read from the drive.
    pub page_misses: u64,
    /// Number of pages that were read because a write covered only a part of them.
    pub read_modify_writes: u64,
    /// Number of name lookups that were answered from the name cache.
    pub name_hits: u64,
    /// Number of name lookups that scanned a directory.
    pub name_misses: u64,
    /// Number of dirty pages that were written because memory was needed.
    pub evicted_dirty: u64,
    /// The counts of the drive itself.
    pub drive: DriveStats,
    /// Processor time of this process (real files only).
    pub cpu: SimTime,
}

impl FsCounters {
    /// Number of requests to the drive, of both directions and all kinds.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads.iter().chain(&self.writes).sum()
    }

    /// Number of requests of one kind and direction.
    #[must_use]
    pub const fn of(&self, kind: IoKind, op: Op) -> u64 {
        match op {
            Op::Read => self.reads[kind as usize],
            Op::Write => self.writes[kind as usize],
        }
    }

    /// Number of requests of one direction.
    #[must_use]
    pub fn all(&self, op: Op) -> u64 {
        match op {
            Op::Read => self.reads.iter().sum(),
            Op::Write => self.writes.iter().sum(),
        }
    }

    pub(super) fn add(&mut self, kind: IoKind, op: Op, bytes: u64) {
        let (count, sum) = match op {
            Op::Read => (&mut self.reads, &mut self.read_bytes),
            Op::Write => (&mut self.writes, &mut self.written_bytes),
        };
        count[kind as usize] += 1;
        sum[kind as usize] += bytes;
    }
}
