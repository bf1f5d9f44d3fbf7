//! A shard: the keys that share one lock, with their objects in the RAM tier and their objects that wait
//! to be written.
//!
//! Everything that changes the state of a key happens under the lock of its shard: put, supersede, promotion
//! (from a disk to the RAM tier), commit of a cluster, reinsertion and loading. Lookups in the index need no
//! lock.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use foxy_base::KeyHash;
use foxy_format::LogPosition;
use foxy_policy::{CachePolicy, Evicted, MemoryTier};
use hashbrown::HashMap;

use crate::{Object, StoreId};

/// The progress of a pending object on its way to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The object waits in memory; a crash loses it.
    Waiting,
    /// The object is in a cluster that is being written, and its record is at this log position. The object
    /// may survive a crash.
    Assembled(LogPosition),
}

#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) object: Arc<Object>,
    pub(crate) store: StoreId,
    /// A unique number, so that a later object of the same key is not mistaken for this one.
    pub(crate) ticket: u64,
    pub(crate) stage: Stage,
}

#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) ram: MemoryTier<KeyHash, Arc<Object>>,
    pub(crate) pending: HashMap<KeyHash, Pending>,
    /// Hits are counted here, beside the lock, so that a hit touches no other shared memory.
    pub(crate) ram_hits: AtomicU64,
    pub(crate) pending_hits: AtomicU64,
    evicted: Vec<Evicted<KeyHash, Arc<Object>>>,
}

impl Shard {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            ram: MemoryTier::new(capacity),
            pending: HashMap::new(),
            ram_hits: AtomicU64::new(0),
            pending_hits: AtomicU64::new(0),
            evicted: Vec::new(),
        }
    }

    /// Puts an object into the RAM tier. Returns whether the object was taken, and the number of
    /// objects that were evicted for it.
    pub(crate) fn insert_ram(&mut self, object: Arc<Object>) -> (bool, u64) {
        let (hash, charge) = (object.hash(), object.memory_bytes() as u64);
        let inserted = self.ram.insert(hash, object, charge, &mut self.evicted);
        (inserted.stored, self.let_go())
    }

    pub(crate) fn set_capacity(&mut self, bytes: u64) -> u64 {
        self.ram.set_capacity(bytes, &mut self.evicted);
        self.let_go()
    }

    fn let_go(&mut self) -> u64 {
        let gone = self.evicted.len() as u64;
        self.evicted.clear();
        gone
    }

    /// Returns the newest object that memory holds under `hash`; this does not count as a use.
    pub(crate) fn in_memory(&self, hash: KeyHash) -> Option<&Arc<Object>> {
        let pending = self.pending.get(&hash).map(|p| &p.object);
        pending.or_else(|| self.ram.peek(&hash))
    }
}

#[cfg(test)]
impl Shard {
    /// Takes an object out of the RAM tier, as the tier would do to evict it.
    pub(crate) fn ram_remove_for_test(&mut self, hash: KeyHash) {
        self.ram.remove(&hash);
    }
}
