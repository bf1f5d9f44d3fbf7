//! A file system for tests. It records how often each block was written, and which ranges were read.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use super::BLOCK;
use crate::model::{DirId, FileId, Files, FsCounters, FsError, SimTime};

/// Counters for tests. A test and the file system share them, because the layout owns the file system.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    names: HashMap<(u32, u64), u32>,
    dirs: Vec<Vec<u64>>,
    files: u32,
    blocks_left: Option<u64>,
    /// Number of writes of each block, by file and block.
    pub(crate) written: HashMap<(u32, u64), u32>,
    sizes: HashMap<u32, u64>,
    /// The reads since the list was last taken: file, start and length of each read.
    pub(crate) reads: Vec<(u32, u64, u64)>,
}

impl Seen {
    /// Number and length of the file with this name.
    pub(crate) fn file(&self, dir: DirId, name: u64) -> Option<(u32, u64)> {
        let file = *self.names.get(&(dir.0, name))?;
        Some((file, self.sizes.get(&file).copied().unwrap_or(0)))
    }

    pub(crate) fn blocks(at: u64, len: u64) -> std::ops::Range<u64> {
        at / BLOCK..(at + len).div_ceil(BLOCK)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FakeFiles {
    pub(crate) seen: Rc<RefCell<Seen>>,
    now: SimTime,
}

impl FakeFiles {
    pub(crate) fn new() -> Self {
        let fake = Self::default();
        fake.seen.borrow_mut().dirs.push(Vec::new());
        fake
    }

    /// Creates a file system that is full after writes to this many distinct blocks.
    pub(crate) fn limited(blocks: u64) -> Self {
        let fake = Self::new();
        fake.seen.borrow_mut().blocks_left = Some(blocks);
        fake
    }

    pub(crate) fn path(&self, dir: DirId) -> Vec<u64> {
        self.seen.borrow().dirs[dir.0 as usize].clone()
    }

    /// Number of existing files.
    pub(crate) fn live(&self) -> usize {
        self.seen.borrow().names.len()
    }

    /// Bytes of the existing files.
    pub(crate) fn live_bytes(&self) -> u64 {
        let seen = self.seen.borrow();
        seen.names
            .values()
            .filter_map(|file| seen.sizes.get(file))
            .sum()
    }

    fn tick(&mut self) {
        self.now += SimTime::from_millis(1.0);
    }
}

impl Files for FakeFiles {
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
        let mut seen = self.seen.borrow_mut();
        let mut path = seen.dirs[parent.0 as usize].clone();
        path.push(name);
        if seen.dirs.contains(&path) {
            return Err(FsError::Exists);
        }
        seen.dirs.push(path);
        Ok(DirId(seen.dirs.len() as u32 - 1))
    }

    fn create(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError> {
        self.tick();
        let mut seen = self.seen.borrow_mut();
        if seen.names.contains_key(&(dir.0, name)) {
            return Err(FsError::Exists);
        }
        seen.files += 1;
        let file = seen.files;
        seen.names.insert((dir.0, name), file);
        Ok(FileId(file))
    }

    fn open(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError> {
        self.tick();
        self.seen
            .borrow()
            .names
            .get(&(dir.0, name))
            .map(|f| FileId(*f))
            .ok_or(FsError::NotFound)
    }

    fn close(&mut self, _file: FileId) {}

    fn read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError> {
        self.tick();
        self.seen.borrow_mut().reads.push((file.0, offset, len));
        Ok(len)
    }

    fn write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError> {
        self.tick();
        let mut seen = self.seen.borrow_mut();
        let blocks = Seen::blocks(offset, len);
        let new = blocks
            .clone()
            .filter(|b| !seen.written.contains_key(&(file.0, *b)))
            .count();
        if let Some(left) = &mut seen.blocks_left {
            *left = left.checked_sub(new as u64).ok_or(FsError::NoSpace)?;
        }
        for block in blocks {
            *seen.written.entry((file.0, block)).or_insert(0) += 1;
        }
        let size = seen.sizes.entry(file.0).or_insert(0);
        *size = (*size).max(offset + len);
        Ok(())
    }

    fn delete(&mut self, dir: DirId, name: u64) -> Result<(), FsError> {
        self.tick();
        let mut seen = self.seen.borrow_mut();
        let file = seen.names.remove(&(dir.0, name)).ok_or(FsError::NotFound)?;
        let size = seen.sizes.remove(&file).unwrap_or(0);
        let mut freed = 0;
        for block in Seen::blocks(0, size) {
            freed += u64::from(seen.written.remove(&(file, block)).is_some());
        }
        if let Some(left) = &mut seen.blocks_left {
            *left += freed;
        }
        Ok(())
    }

    fn fsync(&mut self, _file: FileId) -> Result<(), FsError> {
        Ok(())
    }

    fn sync(&mut self) {}

    fn size(&self, file: FileId) -> u64 {
        self.seen.borrow().sizes.get(&file.0).copied().unwrap_or(0)
    }

    fn counters(&self) -> FsCounters {
        FsCounters::default()
    }
}
