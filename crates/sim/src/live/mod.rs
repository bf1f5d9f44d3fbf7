//! The papers' cache at work: levels and a layout on real files, for a front end with real
//! clients.
//!
//! The levels decide at once; one thread does the layout's reads and writes in the order of the
//! decisions, as the one disk process of the published Foxy does. A layout keeps no contents: it
//! reads and writes as many bytes as the object has, at the place where the object would be.

mod disk;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc::Sender};
use std::thread::JoinHandle;

use foxy_trace::Request;
use serde::Serialize;

use crate::{
    layout::{LayoutSpec, LayoutStats},
    levels::{DiskOp, DiskOpKind, LevelCounts, Levels, Outcome},
    model::hash::BuildIdHasher,
    run::{RunConfig, RunError},
};

use disk::{Disk, Work};

/// Called once when a read is done; the argument says whether the read succeeded.
pub type Done = Box<dyn FnOnce(bool) + Send>;

/// Position of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// In memory: `done` was not used.
    Memory,
    /// On disk: `done` will be told.
    Disk,
    /// Nowhere: `done` was not used. The miss is already counted and its disk operations are queued.
    Nowhere,
}

/// Work of a cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Worked {
    /// Its levels.
    pub levels: LevelCounts,
    /// Its layout.
    pub layout: LayoutStats,
    /// Writes refused for want of space.
    pub refused: u64,
    /// Reads and deletes of objects whose write was refused.
    pub missing: u64,
    /// Reads and writes of the device that the files are on, by all processes.
    pub device: (u64, u64),
}

/// A cache at work; shared by all who ask.
pub struct Live(Mutex<Inner>);

struct Inner {
    levels: Levels,
    ops: Vec<DiskOp>,
    /// Objects that were not found, and are written already: their fetch is under way.
    fetched: HashSet<u64, BuildIdHasher>,
    work: Option<Sender<Work>>,
    disk: Option<JoinHandle<Result<Disk, RunError>>>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Live {
    /// An empty cache on real files.
    ///
    /// # Errors
    /// The configuration has no folder, or a layout that delays reads (lazy reads); the folder cannot
    /// be used.
    pub fn start(config: &RunConfig) -> Result<Self, RunError> {
        let bad = |text: &str| Err(RunError::Config(text.to_owned()));
        if config.backend.dir.is_none() {
            return bad("a modelled drive has no time of day; name a folder for real files");
        }
        if matches!(config.layout, LayoutSpec::Lazy(_) | LayoutSpec::LazyLoc(_)) {
            return bad(
                "lazy reads do not say when they are done; choose simple, squid, multiple-dirs, \
                 buddy, stream, stream-packetizer or loc",
            );
        }
        let (work, disk) = disk::spawn(config)?;
        Ok(Self(Mutex::new(Inner {
            levels: Levels::new(config.levels),
            ops: Vec::new(),
            fetched: HashSet::default(),
            work: Some(work),
            disk: Some(disk),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object of `size` bytes is asked for, which came from `server`.
    pub fn ask(&self, object: u64, size: u64, server: u32, done: Done) -> Found {
        let mut inner = self.lock();
        let found = match inner.request(object, size, server) {
            Outcome::RamHit => Found::Memory,
            Outcome::DiskHit => Found::Disk,
            Outcome::Miss | Outcome::Modified | Outcome::Bypass => Found::Nowhere,
        };
        if found == Found::Nowhere {
            inner.fetched.insert(object);
        }
        inner.hand_over(Some(done));
        found
    }

    /// An object was fetched and is to be kept.
    pub fn keep(&self, object: u64, size: u64, server: u32) {
        let mut inner = self.lock();
        if inner.fetched.remove(&object) {
            return;
        }
        // The levels already have an object that was fetched because its read failed.
        match inner.request(object, size, server) {
            Outcome::RamHit | Outcome::DiskHit => inner.ops.clear(),
            Outcome::Miss | Outcome::Modified | Outcome::Bypass => inner.hand_over(None),
        }
    }

    /// Ends: waits until everything is on the disk. A second call gives nothing.
    ///
    /// # Errors
    /// The file system refused something.
    pub fn finish(&self) -> Result<Worked, RunError> {
        let (disk, levels) = {
            let mut inner = self.lock();
            inner.work = None;
            (inner.disk.take(), *inner.levels.counts())
        };
        let Some(disk) = disk else {
            return Ok(Worked::default());
        };
        let disk = disk
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Worked {
            levels,
            layout: disk.stats,
            refused: disk.refused,
            missing: disk.missing,
            device: disk.device,
        })
    }
}

impl Inner {
    fn request(&mut self, object: u64, size: u64, server: u32) -> Outcome {
        let request = Request {
            object,
            size: size.max(1),
            server,
            status: 200,
            ..Request::default()
        };
        self.ops.clear();
        self.levels.request(&request, &mut self.ops)
    }

    /// To the disk's thread, in order; `done` belongs to the read, if there is one.
    fn hand_over(&mut self, mut done: Option<Done>) {
        let Some(work) = &self.work else {
            return;
        };
        for op in self.ops.drain(..) {
            let done = done.take_if(|_| op.kind == DiskOpKind::Read);
            // If the thread has ended, `done` is dropped; its owner notices that.
            let _ended = work.send(Work { op, done });
        }
    }
}

#[cfg(test)]
mod tests;
