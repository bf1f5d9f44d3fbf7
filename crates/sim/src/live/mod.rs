//! The papers' cache in real use: levels and a layout on real files, for a front end with real clients.
//!
//! The levels decide immediately for each request which objects are read, written and removed. One thread
//! then does the layout's reads and writes in the order of these decisions, like the single disk process of
//! the published Foxy. A layout stores no contents: it reads and writes as many bytes as the object has, at
//! the position where the object would be.

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

/// Callback that is called once when a read is done. The argument is true if the read succeeded.
pub type Done = Box<dyn FnOnce(bool) + Send>;

/// Place where an object was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// In memory: `done` is not called.
    Memory,
    /// On disk: `done` is called when the read is done.
    Disk,
    /// In no level: `done` is not called. The miss is already counted and its disk operations are queued.
    Nowhere,
}

/// The counts of a cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Worked {
    /// The counts of the levels.
    pub levels: LevelCounts,
    /// The counts of the layout.
    pub layout: LayoutStats,
    /// Number of writes that were refused because there was no space.
    pub refused: u64,
    /// Number of reads and deletes of objects that were refused or dropped before.
    pub missing: u64,
    /// Number of reads and number of writes by all processes on the device that contains the files.
    pub device: (u64, u64),
}

/// A cache in use, shared by all callers.
pub struct Live(Mutex<Inner>);

struct Inner {
    levels: Levels,
    ops: Vec<DiskOp>,
    /// Objects that `ask` did not find and that are still being fetched. The levels already contain them.
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
    /// Creates an empty cache on real files.
    ///
    /// # Errors
    /// Returns an error if the configuration has no folder, the layout delays reads (lazy reads), or the
    /// folder cannot be used.
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

    /// Requests an object of `size` bytes that came from `server`.
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

    /// Stores an object that was fetched.
    pub fn keep(&self, object: u64, size: u64, server: u32) {
        let mut inner = self.lock();
        if inner.fetched.remove(&object) {
            return;
        }
        // If the object was fetched because its read failed, the levels already contain it.
        match inner.request(object, size, server) {
            Outcome::RamHit | Outcome::DiskHit => inner.ops.clear(),
            Outcome::Miss | Outcome::Modified | Outcome::Bypass => inner.hand_over(None),
        }
    }

    /// Ends the cache and waits until everything is on the disk. A second call returns only zeros.
    ///
    /// # Errors
    /// Returns the error of the writes that were still buffered, if they fail. Otherwise returns the first
    /// error of an earlier operation.
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

    /// Sends the operations to the disk's thread in order. `done` belongs to the read, if there is a read.
    fn hand_over(&mut self, mut done: Option<Done>) {
        let Some(work) = &self.work else {
            return;
        };
        for op in self.ops.drain(..) {
            let done = done.take_if(|_| op.kind == DiskOpKind::Read);
            // If the thread has ended, `done` is dropped, and the caller that waits for `done` detects this.
            let _ended = work.send(Work { op, done });
        }
    }
}

#[cfg(test)]
mod tests;
