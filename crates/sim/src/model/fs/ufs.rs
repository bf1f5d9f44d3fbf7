//! A Unix file system of the FFS family over one modelled drive.

use std::collections::HashSet;

use super::{
    DirId, FileId, Files, FsConfig, FsCounters, FsError, Metadata, cache::Cache, groups::Groups,
    inode::Inode,
};
use crate::model::{Drive, Op, Queue, SimTime, hash::BuildIdHasher};

/// A modelled UFS (FFS, or journalled) file system on one drive.
#[derive(Clone, Debug)]
pub struct Ufs {
    pub(super) queue: Queue,
    pub(super) config: FsConfig,
    pub(super) now: SimTime,
    pub(super) counters: FsCounters,
    /// Size of the partition in bytes.
    pub(super) bytes: u64,
    pub(super) groups: Groups,
    pub(super) inodes: Vec<Inode>,
    pub(super) free_slots: Vec<u32>,
    /// File pages in memory, by inode slot and page.
    pub(super) pages: Cache,
    /// Metadata blocks in memory, by kind and address.
    pub(super) blocks: Cache,
    /// Name cache: names that need no scan of a directory.
    pub(super) names: Cache,
    /// Inode cache: inodes whose blocks need not be read.
    pub(super) core: Cache,
    pub(super) dirty_inodes: Vec<u32>,
    /// Metadata blocks that stay dirty after their next write, because that write cannot contain their newest
    /// changes (soft updates).
    pub(super) rolled_back: HashSet<u64, BuildIdHasher>,
    /// Addresses of the log's blocks. The log continues at byte `log_at`; `log_fill` bytes wait in memory.
    pub(super) log: Vec<u32>,
    pub(super) log_at: u64,
    pub(super) log_fill: u64,
    /// Time at which the update daemon wakes. `hand` is its position in memory (0 to 1).
    pub(super) next_update: SimTime,
    pub(super) hand: f64,
    /// Groups in which a call allocated or freed space. The calls reuse this vector, so that they do not have
    /// to create new vectors.
    pub(super) touched: Vec<u32>,
}

impl Ufs {
    /// Creates an empty file system with a root directory and cold caches.
    #[must_use]
    pub fn new(drive: Drive, config: FsConfig) -> Self {
        let config = config.clamped();
        let space = drive.capacity().saturating_sub(config.start);
        let bytes = if config.bytes == 0 {
            space
        } else {
            config.bytes.min(space)
        };
        let mut fs = Self {
            groups: Groups::new(&config, bytes),
            queue: Queue::new(drive, config.schedule),
            now: SimTime::ZERO,
            counters: FsCounters::default(),
            bytes,
            inodes: Vec::new(),
            free_slots: Vec::new(),
            pages: Cache::new((config.page_cache / config.block) as usize),
            blocks: Cache::new((config.block_cache / config.block) as usize),
            names: Cache::new(config.name_cache),
            core: Cache::new(config.inode_cache),
            dirty_inodes: Vec::new(),
            rolled_back: HashSet::default(),
            log: Vec::new(),
            log_at: 0,
            log_fill: 0,
            next_update: config.update_every,
            hand: 0.0,
            touched: Vec::new(),
            config,
        };
        fs.make_root();
        if fs.config.metadata == Metadata::Journal {
            fs.make_log();
        }
        fs
    }

    /// Parameters of the file system.
    #[must_use]
    pub const fn config(&self) -> &FsConfig {
        &self.config
    }

    /// Bytes that may still be allocated.
    #[must_use]
    pub const fn available(&self) -> u64 {
        self.groups.available() * self.config.fragment
    }

    /// The drive as a mutable reference, so that a caller can change its statistics.
    pub const fn drive_mut(&mut self) -> &mut Drive {
        self.queue.drive_mut()
    }

    /// Position on the drive of a byte of a file, for figures; `None` outside the file.
    #[must_use]
    pub fn place(&self, file: FileId, offset: u64) -> Option<u64> {
        let inode = &self.inodes[self.live(file).ok()? as usize];
        let address = *inode.blocks.get((offset / self.config.block) as usize)?;
        let within = offset % self.config.block;
        (offset < inode.size)
            .then(|| self.config.start + u64::from(address) * self.config.fragment + within)
    }
}

impl Files for Ufs {
    fn now(&self) -> SimTime {
        self.now
    }

    fn advance(&mut self, span: SimTime) {
        self.now += span;
        self.tick();
    }

    fn root(&self) -> DirId {
        DirId(0)
    }

    fn mkdir(&mut self, parent: DirId, name: u64) -> Result<DirId, FsError> {
        self.tick();
        self.make(parent.0, name, true).map(DirId)
    }

    fn create(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError> {
        self.tick();
        let slot = self.make(dir.0, name, false)?;
        self.inodes[slot as usize].opens = 1;
        Ok(self.handle(slot))
    }

    fn open(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError> {
        self.tick();
        self.cpu(self.config.call_cpu + self.config.name_cpu);
        let (_, slot) = self.lookup(dir.0, name)?;
        if self.is_directory(slot) {
            return Err(FsError::NotFound);
        }
        self.have_inode(slot);
        self.inodes[slot as usize].opens += 1;
        Ok(self.handle(slot))
    }

    fn close(&mut self, file: FileId) {
        self.cpu(self.config.call_cpu);
        let Ok(slot) = self.live(file) else { return };
        let inode = &mut self.inodes[slot as usize];
        inode.opens = inode.opens.saturating_sub(1);
        (inode.next_read, inode.streak) = (0, 0);
        if inode.opens == 0 && self.config.flush_on_close {
            self.push_file(slot);
        }
    }

    fn read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError> {
        self.tick();
        self.cpu(self.config.call_cpu);
        let slot = self.live(file)?;
        Ok(self.read_range(slot, offset, len))
    }

    fn write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError> {
        self.tick();
        self.cpu(self.config.call_cpu);
        let slot = self.live(file)?;
        self.write_range(slot, offset, len)
    }

    fn map_read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError> {
        self.tick();
        let slot = self.live(file)?;
        self.map_range(slot, offset, len, Op::Read)
    }

    fn map_write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError> {
        self.tick();
        let slot = self.live(file)?;
        self.map_range(slot, offset, len, Op::Write).map(|_| ())
    }

    fn delete(&mut self, dir: DirId, name: u64) -> Result<(), FsError> {
        self.tick();
        self.unmake(dir.0, name)
    }

    fn fsync(&mut self, file: FileId) -> Result<(), FsError> {
        self.tick();
        self.cpu(self.config.call_cpu);
        let slot = self.live(file)?;
        self.write_file(slot)
    }

    fn sync(&mut self) {
        self.write_all();
    }

    fn size(&self, file: FileId) -> u64 {
        self.live(file)
            .map_or(0, |slot| self.inodes[slot as usize].size)
    }

    fn counters(&self) -> FsCounters {
        FsCounters {
            drive: self.queue.drive().stats().clone(),
            ..self.counters.clone()
        }
    }
}
