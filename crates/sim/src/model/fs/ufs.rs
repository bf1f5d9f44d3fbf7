//! A Unix file system of the FFS family over one modelled drive.

use std::collections::HashMap;

use super::{DirId, FileId, Files, FsConfig, FsCounters, FsError};
use crate::model::{Drive, Queue, SimTime};

/// A modelled UFS (FFS, or journalled) file system on one drive.
#[derive(Clone, Debug)]
pub struct Ufs {
    queue: Queue,
    config: FsConfig,
    now: SimTime,
    names: HashMap<(DirId, u64), u32>,
    sizes: Vec<u64>,
    counters: FsCounters,
}

impl Ufs {
    /// A new, empty file system with a root directory and cold caches.
    #[must_use]
    pub fn new(drive: Drive, config: FsConfig) -> Self {
        let queue = Queue::new(drive, config.schedule);
        Self {
            queue,
            config,
            now: SimTime::ZERO,
            names: HashMap::new(),
            sizes: vec![0],
            counters: FsCounters::default(),
        }
    }

    /// Its parameters.
    #[must_use]
    pub const fn config(&self) -> &FsConfig {
        &self.config
    }

    /// The drive, for its statistics.
    pub const fn drive_mut(&mut self) -> &mut Drive {
        self.queue.drive_mut()
    }

    fn add(&mut self, dir: DirId, name: u64) -> Result<u32, FsError> {
        if self.names.contains_key(&(dir, name)) {
            return Err(FsError::Exists);
        }
        let id = self.sizes.len() as u32;
        self.sizes.push(0);
        self.names.insert((dir, name), id);
        Ok(id)
    }
}

impl Files for Ufs {
    fn now(&self) -> SimTime {
        self.now
    }

    fn advance(&mut self, span: SimTime) {
        self.now += span;
    }

    fn root(&self) -> DirId {
        DirId(0)
    }

    fn mkdir(&mut self, parent: DirId, name: u64) -> Result<DirId, FsError> {
        self.add(parent, name).map(DirId)
    }

    fn create(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError> {
        self.add(dir, name).map(FileId)
    }

    fn open(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError> {
        self.names
            .get(&(dir, name))
            .map(|id| FileId(*id))
            .ok_or(FsError::NotFound)
    }

    fn close(&mut self, _file: FileId) {}

    fn read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError> {
        Ok(self.size(file).saturating_sub(offset).min(len))
    }

    fn write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError> {
        let size = self
            .sizes
            .get_mut(file.0 as usize)
            .ok_or(FsError::NotFound)?;
        *size = (*size).max(offset + len);
        Ok(())
    }

    fn delete(&mut self, dir: DirId, name: u64) -> Result<(), FsError> {
        self.names
            .remove(&(dir, name))
            .map(|_| ())
            .ok_or(FsError::NotFound)
    }

    fn fsync(&mut self, _file: FileId) -> Result<(), FsError> {
        Ok(())
    }

    fn sync(&mut self) {
        self.now = self.queue.drain(self.now);
    }

    fn size(&self, file: FileId) -> u64 {
        self.sizes.get(file.0 as usize).copied().unwrap_or(0)
    }

    fn counters(&self) -> FsCounters {
        FsCounters {
            drive: self.queue.drive().stats().clone(),
            ..self.counters.clone()
        }
    }
}
