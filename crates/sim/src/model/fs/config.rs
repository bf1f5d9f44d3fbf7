//! Parameters of a modelled file system.

use crate::model::{Schedule, SimTime};

/// Ways in which metadata changes reach the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metadata {
    /// UFS: the process waits while inodes and directory blocks are written.
    #[default]
    Sync,
    /// FFS mounted async: changed metadata stays dirty in memory, like data.
    Async,
    /// Soft updates: writes are delayed as with `Async`, but in dependency order, so that a block may be
    /// written more than once.
    SoftUpdates,
    /// Like XFS: changes go to a log that is written sequentially; the changed blocks follow later.
    Journal,
}

/// Parameters of a file system. Start from one of the constructors and change the parameters that the
/// experiment varies. Decision 0010 fixes the constants.
#[derive(Clone, Debug, PartialEq)]
pub struct FsConfig {
    /// First byte of the partition on the drive.
    pub start: u64,
    /// Bytes of the partition; 0 = up to the end of the drive. At most 4 TiB are used.
    pub bytes: u64,
    /// Memory for file pages, bytes.
    pub page_cache: u64,
    /// Memory for inode, free-map and indirect blocks, bytes.
    pub block_cache: u64,
    /// Way in which metadata is written.
    pub metadata: Metadata,
    /// True if a directory's inode is written together with the directory's blocks ([`Metadata::Sync`] only).
    pub sync_directory_inode: bool,
    /// True if a kernel thread writes the inode of a deleted file, so that the process does not
    /// wait for it ([`Metadata::Sync`] only).
    pub frees_behind: bool,
    /// Order of the driver's queue.
    pub schedule: Schedule,
    /// Block size = page size, bytes.
    pub block: u64,
    /// Fragment size, bytes; a block has 1, 2, 4 or 8 fragments.
    pub fragment: u64,
    /// Bytes of a cylinder group.
    pub group: u64,
    /// Bytes of space per inode: one inode is made for this many bytes.
    pub bytes_per_inode: u64,
    /// Share of the space that is kept free.
    pub min_free: f64,
    /// Maximum number of blocks that one request reads or writes.
    pub max_contig: u64,
    /// Maximum number of blocks of one file in one cylinder group.
    pub max_per_group: u64,
    /// Bytes of a directory entry.
    pub name_bytes: u64,
    /// Number of entries of the name cache.
    pub name_cache: usize,
    /// Number of inodes kept in memory.
    pub inode_cache: usize,
    /// If more than this many bytes of a file are queued, a process that writes to this file has to wait.
    pub write_high: u64,
    /// A process that waits because of `write_high` continues when at most this many bytes of the file are
    /// queued.
    pub write_low: u64,
    /// True if the last close of a file starts the writes of its dirty pages.
    pub flush_on_close: bool,
    /// True if a read changes the inode (its access time).
    pub atime: bool,
    /// Time between two runs of the update daemon.
    pub update_every: SimTime,
    /// Age at which dirty pages and blocks are written. In this time, the runs of the daemon sweep the whole
    /// memory once.
    pub update_age: SimTime,
    /// True if each change of names waits for its log write ([`Metadata::Journal`] only).
    pub log_sync: bool,
    /// Bytes of the log ([`Metadata::Journal`] only).
    pub log_bytes: u64,
    /// Bytes that one change puts into the log ([`Metadata::Journal`] only).
    pub log_record: u64,
    /// Log bytes that are collected in memory before they are written.
    pub log_buffer: u64,
    /// Time that a synchronous metadata write takes in addition to the time of the modelled drive. It covers
    /// driver, interrupts, process switches and bus phases (calibrated, decision 0010).
    pub sync_cpu: SimTime,
    /// Processor time of one system call.
    pub call_cpu: SimTime,
    /// Processor time to copy one page between the page cache and a process.
    pub page_cpu: SimTime,
    /// Additional processor time of a create, open or delete.
    pub name_cpu: SimTime,
    /// Processor time to check one directory entry.
    pub entry_cpu: SimTime,
}

impl FsConfig {
    /// Bytes for file pages on the Ultra-1: its 384 MB of memory minus the memory of the kernel and the
    /// programs.
    pub const ULTRA_1_PAGES: u64 = 320 << 20;

    /// Solaris 5.6 UFS on an Ultra-1, as in the measurements of the USITS'99 paper. `page_cache` is the
    /// number of bytes for file pages; the measurements had [`FsConfig::ULTRA_1_PAGES`].
    #[must_use]
    pub const fn ufs(page_cache: u64) -> Self {
        Self {
            start: 0,
            bytes: 0,
            page_cache,
            block_cache: 8 << 20, // 2 % of memory, the default
            metadata: Metadata::Sync,
            sync_directory_inode: true,
            frees_behind: true,
            schedule: Schedule::CLook,
            block: 8_192, // from here to max_per_group: defaults of newfs
            fragment: 1_024,
            group: 18 << 20, // 16 cylinders
            bytes_per_inode: 2_048,
            min_free: 0.10,
            max_contig: 16,     // 128 KB gives the measured 4.7 MB/s; 56 KB does not
            max_per_group: 576, // a quarter of a group
            name_bytes: 20,
            name_cache: 6_618, // 17 per megabyte of memory, plus 90
            inode_cache: 6_618,
            write_high: 384 << 10,
            write_low: 256 << 10,
            flush_on_close: true,
            atime: true,
            update_every: SimTime::from_micros(5_000_000),
            update_age: SimTime::from_micros(30_000_000),
            log_sync: false,
            log_bytes: 0,
            log_record: 0,
            log_buffer: 0,
            sync_cpu: SimTime::from_micros(1_000), // calibrated by create and delete times
            call_cpu: SimTime::from_micros(20), // from here to entry_cpu: times of a 166 MHz machine
            page_cpu: SimTime::from_micros(100),
            name_cpu: SimTime::from_micros(300),
            entry_cpu: SimTime::from_nanos(250),
        }
    }

    /// Replaces impossible parameters by the nearest possible values. Afterwards a block has 1 to 8
    /// fragments, groups have space for data, and the daemon pauses between its runs.
    pub(super) fn clamped(mut self) -> Self {
        self.block = self.block.clamp(512, 1 << 20).next_power_of_two();
        self.fragment = self
            .fragment
            .clamp(self.block / 8, self.block)
            .next_power_of_two();
        self.bytes_per_inode = self.bytes_per_inode.max(512);
        self.group = self.group.clamp(64 * self.block, 1 << 32);
        self.min_free = if self.min_free.is_finite() {
            self.min_free.clamp(0.0, 0.9)
        } else {
            0.1
        };
        self.max_contig = self.max_contig.max(1);
        self.max_per_group = self.max_per_group.max(1);
        self.name_bytes = self.name_bytes.clamp(8, self.block);
        self.write_low = self.write_low.min(self.write_high);
        self.update_every = self.update_every.max(SimTime::from_micros(1_000));
        self.update_age = self.update_age.max(self.update_every);
        self
    }

    /// The fast file system (FFS) as its authors describe it, for experiments that were not made on Solaris
    /// (decision 131). A create waits for the inode and then for the directory's block. A delete waits for
    /// the directory's block and then for the inode. A close writes nothing. Processor times are those of
    /// [`FsConfig::xfs`].
    #[must_use]
    pub const fn ffs_sync(page_cache: u64) -> Self {
        Self {
            sync_directory_inode: false,
            frees_behind: false,
            flush_on_close: false,
            ..Self::ufs(page_cache).with_class_times()
        }
    }

    /// The file system of [`FsConfig::ffs_sync`] with asynchronous metadata (FFS mounted async).
    #[must_use]
    pub const fn ffs_async(page_cache: u64) -> Self {
        Self {
            metadata: Metadata::Async,
            ..Self::ffs_sync(page_cache)
        }
    }

    /// The file system of [`FsConfig::ffs_sync`] with soft updates.
    #[must_use]
    pub const fn ffs_soft(page_cache: u64) -> Self {
        Self {
            metadata: Metadata::SoftUpdates,
            ..Self::ffs_sync(page_cache)
        }
    }

    /// Sets the processor times that the simulator assumes for the machines of Hummingbird and UCFS.
    const fn with_class_times(self) -> Self {
        Self {
            sync_cpu: SimTime::from_micros(200),
            call_cpu: SimTime::from_micros(10),
            page_cpu: SimTime::from_micros(40),
            name_cpu: SimTime::from_micros(150),
            entry_cpu: SimTime::from_nanos(20),
            ..self
        }
    }

    /// A file system of 1999 like XFS, with a log and large clusters. Files consist of extents, so the size
    /// of fragments hardly matters. Each change of names waits for its log write.
    #[must_use]
    pub const fn xfs(page_cache: u64) -> Self {
        Self {
            metadata: Metadata::Journal,
            block: 4_096,
            fragment: 4_096,
            group: 512 << 20,
            min_free: 0.0,
            max_contig: 64,
            max_per_group: u64::MAX,
            flush_on_close: false,
            log_sync: true,
            log_bytes: 16 << 20,
            log_record: 2_048,
            log_buffer: 32 << 10,
            ..Self::ufs(page_cache).with_class_times()
        }
    }
}
