//! Squid 2.2 as the program wg-Squid simulates it. wg-Squid is a load generator of the Hummingbird papers
//! (draft of 1999, USENIX 2001).
//!
//! Rules: there is one cache directory on the disk with 8 top-level directories for each GB and 256
//! directories in each of them. Each object has one file, placed by its file number ([`numbers`]).
//! Replacement is plain LRU over all objects (a hit in memory counts as a use too). It starts at the high
//! water mark and stops at the low water mark. `cache_mem` bytes of objects are in memory, under LRU. A disk
//! hit opens the file, reads it in pieces of 4 KB, closes it, and puts the object into memory. A miss creates
//! and writes the file. The file of a replaced or evicted object is unlinked. Marks of 90 and 95 % are
//! Squid's defaults.
//!
//! SQUIDL puts the objects of one origin server into one directory; SQUIDM keeps objects below
//! 8 KB in [`mapped`] files; SQUIDML does both; SQUIDMLA also aligns the mapped objects to pages.

pub mod mapped;
pub mod numbers;

use std::collections::HashMap;

use foxy_policy::{CachePolicy, Evicted, Lru};
use foxy_trace::Request;

use super::{CacheSystem, Extras};
use crate::{
    levels::{Outcome, Watermarks},
    model::{DirId, Files, FsCounters, FsError, SimTime},
};
use mapped::Mapped;
use numbers::Numbers;

/// Parameters of Squid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SquidConfig {
    /// Bytes of objects in memory.
    pub cache_mem: u64,
    /// Bytes of objects on disk.
    pub cache_dir: u64,
    /// The water marks at which replacement starts and stops.
    pub watermarks: Watermarks,
    /// Bytes of one read() or write().
    pub piece: u64,
    /// True for one directory for each origin server (SQUIDL).
    pub by_server: bool,
    /// Share of `cache_dir` for mapped files of small objects (SQUIDM; the published value is lost); 0:
    /// no mapped files.
    pub mapped: f64,
    /// True if mapped objects do not cross pages (SQUIDMLA).
    pub aligned: bool,
}

impl SquidConfig {
    /// The published parameters: 50 MB of `cache_mem`, and a cache directory of `cache_dir` bytes.
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
            by_server: false,
            mapped: 0.0,
            aligned: false,
        }
    }

    fn mapped_bytes(&self) -> u64 {
        (self.cache_dir as f64 * self.mapped.clamp(0.0, 0.9)) as u64
    }

    /// Bytes for objects in separate files.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.cache_dir - self.mapped_bytes()
    }

    /// Number of top-level directories: 8 for each GB, at least one.
    #[must_use]
    pub const fn top_directories(&self) -> u64 {
        let eighths = self.cache_dir.div_ceil((1 << 30) / 8);
        if eighths == 0 { 1 } else { eighths }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    number: u64,
    /// Origin server of the object, used if there is a directory for each server.
    server: u32,
    size: u64,
    version: u32,
}

/// Squid with its file system.
#[derive(Debug)]
pub struct Squid<F> {
    config: SquidConfig,
    files: F,
    dirs: Vec<DirId>,
    numbers: Numbers,
    servers: HashMap<u32, DirId>,
    /// All objects in separate files, by last use.
    index: Lru<u64, Entry>,
    /// Small objects in mapped files; `None`: all objects are in separate files.
    mapped: Option<Mapped>,
    /// Objects in memory.
    memory: Lru<u64, ()>,
    evicted: Vec<Evicted<u64, ()>>,
}

impl<F: Files> Squid<F> {
    /// Creates an empty cache and its directories.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn new(mut files: F, config: SquidConfig) -> Result<Self, FsError> {
        let mut dirs = Vec::new();
        let top = if config.by_server {
            0
        } else {
            config.top_directories()
        };
        for top in 0..top {
            let parent = files.mkdir(files.root(), top)?;
            for second in 0..numbers::SECOND {
                dirs.push(files.mkdir(parent, second)?);
            }
        }
        let root = files.root();
        let mapped = (config.mapped > 0.0)
            .then(|| Mapped::new(&mut files, root, config.mapped_bytes(), config.aligned))
            .transpose()?;
        Ok(Self {
            config,
            files,
            dirs,
            mapped,
            servers: HashMap::new(),
            numbers: Numbers::default(),
            index: Lru::new(config.file_bytes()),
            memory: Lru::new(config.cache_mem),
            evicted: Vec::new(),
        })
    }

    /// The file system.
    pub const fn files(&self) -> &F {
        &self.files
    }

    /// Number of objects on disk.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len() + self.mapped.as_ref().map_or(0, Mapped::len)
    }

    /// True if there is no object on disk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn dir(&mut self, entry: Entry) -> Result<DirId, FsError> {
        if !self.config.by_server {
            let top = self.config.top_directories();
            let (top, second) = numbers::directories(entry.number, top);
            return Ok(self.dirs[(top * numbers::SECOND + second) as usize]);
        }
        if let Some(dir) = self.servers.get(&entry.server) {
            return Ok(*dir);
        }
        let name = (1 << 40) | u64::from(entry.server);
        let dir = self.files.mkdir(self.files.root(), name)?;
        self.servers.insert(entry.server, dir);
        Ok(dir)
    }

    fn read(&mut self, entry: Entry) -> Result<(), FsError> {
        let dir = self.dir(entry)?;
        let file = self.files.open(dir, entry.number)?;
        for (at, len) in pieces(entry.size, self.config.piece) {
            self.files.read(file, at, len)?;
        }
        self.files.close(file);
        Ok(())
    }

    fn write(&mut self, entry: Entry) -> Result<(), FsError> {
        let dir = self.dir(entry)?;
        let file = self.files.create(dir, entry.number)?;
        let written = pieces(entry.size, self.config.piece)
            .try_for_each(|(at, len)| self.files.write(file, at, len));
        self.files.close(file);
        written
    }

    fn remember(&mut self, object: u64, size: u64) {
        // Memory may refuse an object that is larger than memory. The object is on disk in any case.
        let _ = self.memory.insert(object, (), size, &mut self.evicted);
        self.evicted.clear();
    }

    fn release(&mut self, object: u64, entry: Entry) -> Result<(), FsError> {
        self.memory.remove(&object);
        let dir = self.dir(entry)?;
        self.files.delete(dir, entry.number)?;
        self.numbers.give(entry.number);
        Ok(())
    }

    fn store(&mut self, request: &Request) -> Result<(), FsError> {
        if request.size > self.config.file_bytes() {
            return Ok(());
        }
        if self.store_small(request)? {
            return Ok(());
        }
        let number = self.numbers.take();
        let entry = Entry {
            number,
            server: request.server,
            size: request.size,
            version: request.version,
        };
        match self.write(entry) {
            Err(FsError::NoSpace) => return self.give_up(entry),
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

    /// Called when the file system is full: deletes the partly written file.
    fn give_up(&mut self, entry: Entry) -> Result<(), FsError> {
        let dir = self.dir(entry)?;
        match self.files.delete(dir, entry.number) {
            // If the creation of the file failed, there is nothing to delete.
            Ok(()) | Err(FsError::NotFound) => {}
            Err(error) => return Err(error),
        }
        self.numbers.give(entry.number);
        Ok(())
    }

    /// Stores an object in a mapped file. Returns false if the object needs a separate file.
    fn store_small(&mut self, request: &Request) -> Result<bool, FsError> {
        let (object, size) = (request.object, request.size);
        if size >= mapped::LARGEST {
            return Ok(false);
        }
        let Some(mapped) = &mut self.mapped else {
            return Ok(false);
        };
        let written = mapped.write(&mut self.files, object, size, request.version)?;
        let Some(gone) = written else {
            return Ok(false);
        };
        if let Some(gone) = gone {
            self.memory.remove(&gone);
        }
        self.remember(object, size);
        Ok(true)
    }

    /// Handles a request for a mapped object; `None` if the object is not mapped.
    fn small(&mut self, request: &Request) -> Result<Option<Outcome>, FsError> {
        let Some(mapped) = &mut self.mapped else {
            return Ok(None);
        };
        let Some(place) = mapped.find(request.object) else {
            return Ok(None);
        };
        if (place.size, place.version) != (request.size, request.version) {
            mapped.remove(request.object);
            self.memory.remove(&request.object);
            self.store(request)?;
            return Ok(Some(Outcome::Modified));
        }
        mapped.touch(place);
        if self.memory.get(&request.object).is_some() {
            return Ok(Some(Outcome::RamHit));
        }
        mapped.read(&mut self.files, place)?;
        self.remember(request.object, request.size);
        Ok(Some(Outcome::DiskHit))
    }

    /// Evicts objects from the high mark down to the low mark.
    fn maintain(&mut self) -> Result<(), FsError> {
        let share = |mark: f64| (self.config.file_bytes() as f64 * mark) as u64;
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
        match (self.config.by_server, self.config.mapped > 0.0) {
            (false, false) => "squid",
            (true, false) => "squidl",
            (false, true) => "squidm",
            (true, true) if self.config.aligned => "squidmla",
            (true, true) => "squidml",
        }
    }

    fn request(&mut self, request: &Request) -> Result<Outcome, FsError> {
        if !request.is_cacheable() || request.size == 0 {
            return Ok(Outcome::Bypass);
        }
        if let Some(outcome) = self.small(request)? {
            return Ok(outcome);
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

    fn idle(&mut self, until: SimTime) -> Result<(), FsError> {
        let now = self.files.now();
        self.files.advance(until - now);
        Ok(())
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

    fn extras(&self) -> Extras {
        Extras {
            // Each object has an entry of 56 bytes and a key of 16 bytes.
            table_bytes: 72 * self.len() as u64,
            ..Extras::default()
        }
    }
}
