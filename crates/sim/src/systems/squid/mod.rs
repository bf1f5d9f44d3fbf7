//! Squid 2.2 as wg-Squid replays it (Hummingbird: the draft of 1999 and USENIX 2001).
//!
//! Rules: one cache directory on the disk, 8 top-level directories for each GB, 256 directories
//! in each; one file for each object, placed by its file number ([`numbers`]); replacement is
//! plain LRU over all objects, hits in memory included, from the high water mark down to the low
//! one; `cache_mem` bytes of objects in memory, LRU. A disk hit opens, reads and closes the file
//! in pieces of 4 KB and puts the object into memory; a miss creates and writes it; a replaced
//! or evicted object's file is unlinked. Marks of 90 and 95 % are Squid's defaults.

pub mod numbers;

use foxy_policy::{CachePolicy, Evicted, Lru};
use foxy_trace::Request;

use super::CacheSystem;
use crate::{
    levels::{Outcome, Watermarks},
    model::{DirId, Files, FsCounters, FsError, SimTime},
};
use numbers::Numbers;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SquidConfig {
    /// Bytes of objects in memory.
    pub cache_mem: u64,
    /// Bytes of objects on disk.
    pub cache_dir: u64,
    /// Replacement starts and stops at these.
    pub watermarks: Watermarks,
    /// Bytes of one read() or write().
    pub piece: u64,
}

impl SquidConfig {
    /// As published: 50 MB of `cache_mem`, a cache directory of so many bytes.
    #[must_use]
    pub const fn published(cache_dir: u64) -> Self {
        Self {
            cache_mem: 50 << 20,
            cache_dir,
            watermarks: Watermarks {
                low: 0.90,
                high: 0.95,
            },
            piece: 4 << 10,
        }
    }

    /// Top-level directories: 8 for each GB, at least one.
    #[must_use]
    pub const fn top_directories(&self) -> u64 {
        let eighths = self.cache_dir.div_ceil((1 << 30) / 8);
        if eighths == 0 { 1 } else { eighths }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    number: u64,
    size: u64,
    version: u32,
}

/// The system.
#[derive(Debug)]
pub struct Squid<F> {
    config: SquidConfig,
    files: F,
    dirs: Vec<DirId>,
    numbers: Numbers,
    /// Every object, by last use.
    index: Lru<u64, Entry>,
    /// Objects in memory.
    memory: Lru<u64, ()>,
    evicted: Vec<Evicted<u64, ()>>,
}

impl<F: Files> Squid<F> {
    /// An empty cache; makes the directories.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new(mut files: F, config: SquidConfig) -> Result<Self, FsError> {
        let mut dirs = Vec::new();
        for top in 0..config.top_directories() {
            let parent = files.mkdir(files.root(), top)?;
            for second in 0..numbers::SECOND {
                dirs.push(files.mkdir(parent, second)?);
            }
        }
        Ok(Self {
            config,
            files,
            dirs,
            numbers: Numbers::default(),
            index: Lru::new(config.cache_dir),
            memory: Lru::new(config.cache_mem),
            evicted: Vec::new(),
        })
    }

    /// The file system.
    pub const fn files(&self) -> &F {
        &self.files
    }

    /// Objects on disk.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// No object on disk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    fn dir(&self, number: u64) -> DirId {
        let (top, second) = numbers::directories(number, self.config.top_directories());
        self.dirs[(top * numbers::SECOND + second) as usize]
    }

    fn read(&mut self, entry: Entry) -> Result<(), FsError> {
        let file = self.files.open(self.dir(entry.number), entry.number)?;
        for (at, len) in pieces(entry.size, self.config.piece) {
            self.files.read(file, at, len)?;
        }
        self.files.close(file);
        Ok(())
    }

    fn write(&mut self, entry: Entry) -> Result<(), FsError> {
        let file = self.files.create(self.dir(entry.number), entry.number)?;
        let written = pieces(entry.size, self.config.piece)
            .try_for_each(|(at, len)| self.files.write(file, at, len));
        self.files.close(file);
        written
    }

    fn remember(&mut self, object: u64, size: u64) {
        // Memory may refuse what is larger than itself; the object is on disk all the same.
        let _ = self.memory.insert(object, (), size, &mut self.evicted);
        self.evicted.clear();
    }

    fn release(&mut self, object: u64, entry: Entry) -> Result<(), FsError> {
        self.memory.remove(&object);
        self.files.delete(self.dir(entry.number), entry.number)?;
        self.numbers.give(entry.number);
        Ok(())
    }

    fn store(&mut self, request: &Request) -> Result<(), FsError> {
        if request.size > self.config.cache_dir {
            return Ok(());
        }
        let number = self.numbers.take();
        let entry = Entry {
            number,
            size: request.size,
            version: request.version,
        };
        match self.write(entry) {
            Err(FsError::NoSpace) => {
                self.files.delete(self.dir(number), number)?;
                self.numbers.give(number);
                return Ok(());
            }
            done => done?,
        }
        self.remember(request.object, request.size);
        let mut gone = Vec::new();
        let _ = self
            .index
            .insert(request.object, entry, request.size, &mut gone);
        gone.into_iter()
            .try_for_each(|e| self.release(e.key, e.value))?;
        self.maintain()
    }

    /// From the high mark down to the low mark.
    fn maintain(&mut self) -> Result<(), FsError> {
        let share = |mark: f64| (self.config.cache_dir as f64 * mark) as u64;
        let (low, high) = (
            share(self.config.watermarks.low),
            share(self.config.watermarks.high),
        );
        if self.index.used() <= high {
            return Ok(());
        }
        while self.index.used() > low {
            let Some(gone) = self.index.evict() else {
                return Ok(());
            };
            self.release(gone.key, gone.value)?;
        }
        Ok(())
    }
}

fn pieces(size: u64, piece: u64) -> impl Iterator<Item = (u64, u64)> {
    let piece = piece.max(512);
    (0..size.div_ceil(piece)).map(move |n| (n * piece, piece.min(size - n * piece)))
}

impl<F: Files> CacheSystem for Squid<F> {
    fn name(&self) -> &'static str {
        "squid"
    }

    fn request(&mut self, request: &Request) -> Result<Outcome, FsError> {
        if !request.is_cacheable() || request.size == 0 {
            return Ok(Outcome::Bypass);
        }
        let Some(entry) = self.index.get(&request.object).copied() else {
            self.store(request)?;
            return Ok(Outcome::Miss);
        };
        if (entry.size, entry.version) != (request.size, request.version) {
            self.index.remove(&request.object);
            self.release(request.object, entry)?;
            self.store(request)?;
            return Ok(Outcome::Modified);
        }
        if self.memory.get(&request.object).is_some() {
            return Ok(Outcome::RamHit);
        }
        self.read(entry)?;
        self.remember(request.object, request.size);
        Ok(Outcome::DiskHit)
    }

    fn finish(&mut self) -> Result<(), FsError> {
        self.files.sync();
        Ok(())
    }

    fn now(&self) -> SimTime {
        self.files.now()
    }

    fn counters(&self) -> FsCounters {
        self.files.counters()
    }
}
