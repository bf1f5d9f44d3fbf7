//! A cache in place of the store that does as it is told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use foxy_base::KeyHash;
use foxy_proxy::{Asked, StandIn};
use tokio::sync::oneshot;

/// Next decision of the other cache.
#[derive(Clone, Copy, Debug, Default)]
pub enum Next {
    /// It has the object in memory.
    #[default]
    Memory,
    /// It does not have it.
    Miss,
    /// It reads for a while, well or not.
    Read(bool),
    /// Its disk ends without an answer.
    Gone,
}

/// Duration of a read.
pub const READING: Duration = Duration::from_millis(100);

/// The cache; what it was given is remembered.
#[derive(Debug, Default)]
pub struct OtherCache {
    next: Mutex<Next>,
    kept: Mutex<Vec<(KeyHash, u64)>>,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OtherCache {
    /// One to keep and to tell what to do.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets the decision from now on.
    pub fn will(&self, next: Next) {
        *lock(&self.next) = next;
    }

    /// Keys and lengths that it was given.
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
