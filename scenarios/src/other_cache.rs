//! A cache in place of the store (a stand-in). It stores no contents, and the scenario determines its
//! decisions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use foxy_base::KeyHash;
use foxy_proxy::{Asked, StandIn};
use tokio::sync::oneshot;

/// The next decision of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub enum Next {
    /// The cache has the object in memory.
    #[default]
    Memory,
    /// The cache does not have the object.
    Miss,
    /// The cache reads for some time. True: the read succeeds. False: the read fails.
    Read(bool),
    /// The cache begins to read, and then gives up the read without a result.
    Gone,
}

/// Duration of a read.
pub const READING: Duration = Duration::from_millis(100);

/// A cache that records the keys and lengths of the objects that it gets.
#[derive(Debug, Default)]
pub struct OtherCache {
    next: Mutex<Next>,
    kept: Mutex<Vec<(KeyHash, u64)>>,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OtherCache {
    /// Creates a cache. The scenario keeps it and sets its decisions.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets the decision for all later requests.
    pub fn will(&self, next: Next) {
        *lock(&self.next) = next;
    }

    /// Keys and lengths of the objects that the cache got.
    #[must_use]
    pub fn kept(&self) -> Vec<(KeyHash, u64)> {
        lock(&self.kept).clone()
    }
}

impl StandIn for OtherCache {
    fn ask(&self, _key: KeyHash, _group: u64, _bytes: u64) -> Asked {
        let (told, done) = oneshot::channel();
        match *lock(&self.next) {
            Next::Memory => Asked::Memory,
            Next::Miss => Asked::Miss,
            Next::Gone => Asked::Disk(done),
            Next::Read(well) => {
                thread::spawn(move || {
                    thread::sleep(READING);
                    told.send(well)
                });
                Asked::Disk(done)
            }
        }
    }

    fn keep(&self, key: KeyHash, _group: u64, bytes: u64) {
        lock(&self.kept).push((key, bytes));
    }
}
