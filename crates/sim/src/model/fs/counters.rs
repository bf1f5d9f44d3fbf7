//! Cost of file operations on the drive, by kind.

use crate::model::{DriveStats, Op, SimTime};

/// Content of a device request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoKind {
    /// Contents of files, or anything on a raw partition.
    Data,
    /// Blocks of inodes.
    Inode,
    /// Blocks of directories.
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

/// Sums over a run.
#[derive(Clone, Debug, Default)]
pub struct FsCounters {
    /// Read requests to the drive, by [`IoKind`].
    pub reads: [u64; 6],
    /// Write requests to the drive, by [`IoKind`].
    pub writes: [u64; 6],
    /// Bytes read from the drive, by [`IoKind`].
    pub read_bytes: [u64; 6],
    /// Bytes written to the drive, by [`IoKind`].
    pub written_bytes: [u64; 6],
    /// Requests that the process waited for.
    pub waited: u64,
    /// Time the process waited for the drive.
    pub waiting: SimTime,
    /// Pages found in the page cache by reads and by writes smaller than a page.
    pub page_hits: u64,
    /// Pages read from the drive for reads.
    pub page_misses: u64,
    /// Pages read because a write covered a part of them.
    pub read_modify_writes: u64,
    /// Name look-ups answered from the name cache, and those that scanned a directory.
    pub name_hits: u64,
    /// Name look-ups that scanned a directory.
    pub name_misses: u64,
    /// Dirty pages written because memory was wanted.
    pub evicted_dirty: u64,
    /// The drive's own sums.
    pub drive: DriveStats,
    /// Processor time of this process (real files only).
    pub cpu: SimTime,
}

impl FsCounters {
    /// Requests to the drive of both directions and all kinds.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads.iter().chain(&self.writes).sum()
    }

    /// Requests of one kind and direction.
    #[must_use]
    pub const fn of(&self, kind: IoKind, op: Op) -> u64 {
        match op {
            Op::Read => self.reads[kind as usize],
            Op::Write => self.writes[kind as usize],
        }
    }

    /// Requests of one direction.
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
