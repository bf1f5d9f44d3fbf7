//! Parameters of a modelled file system.

use crate::model::{Schedule, SimTime};

/// How changes of metadata reach the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metadata {
    /// UFS: inodes and directory blocks are written while the process waits.
    #[default]
    Sync,
    /// FFS mounted async: metadata is dirty in memory like data.
    Async,
    /// Soft updates: delayed like `Async`, in dependency order, so that a block may be
    /// written more than once.
    SoftUpdates,
    /// XFS-like: changes go to a log that is written sequentially; blocks follow later.
    Journal,
}

/// Parameters of a file system. Start from one of the constructors and change what the
/// experiment varies; the constants are frozen by decision 0010.
#[derive(Clone, Debug, PartialEq)]
pub struct FsConfig {
    /// First byte of the partition on the drive.
    pub start: u64,
    /// Bytes of the partition; 0 = up to the end of the drive.
    pub bytes: u64,
    /// Memory for file pages, bytes.
    pub page_cache: u64,
    /// How metadata is written.
    pub metadata: Metadata,
    /// Order of the driver's queue.
    pub schedule: Schedule,
    /// Block size = page size, bytes.
    pub block: u64,
    /// Fragment size, bytes.
    pub fragment: u64,
    /// Bytes of a directory entry.
    pub name_bytes: u64,
    /// Entries of the name cache.
    pub name_cache: usize,
    /// Inodes kept in memory.
    pub inode_cache: usize,
    /// Processor time of one system call.
    pub call_cpu: SimTime,
}

impl FsConfig {
    /// Solaris 5.6 UFS as in the 1999 measurements, with `page_cache` bytes for file pages.
    #[must_use]
    pub const fn ufs(page_cache: u64) -> Self {
        Self {
            start: 0,
            bytes: 0,
            page_cache,
            metadata: Metadata::Sync,
            schedule: Schedule::CLook,
            block: 8_192,
            fragment: 1_024,
            name_bytes: 20,
            name_cache: 4_000,
            inode_cache: 4_000,
            call_cpu: SimTime::from_micros(50),
        }
    }
}
