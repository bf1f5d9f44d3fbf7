//! The memory budget: how it is divided, and how much of it waits to be written.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::interface::pending;
use crate::shared::{StoreShared, Stores, weight};
use crate::{EngineConfig, ReadPlan, StoreId};

/// The maximum share of the memory budget for the buffers of reads under way, in bytes. It suffices if the
/// machine processes reads as fast as its disks return them.
pub(super) const READS_MAX: u64 = 8 << 20;

/// The memory budget of the engine, which may change at run time, and the parts of it that are in use.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    bytes: AtomicU64,
    /// The part of `bytes` for objects that wait to be written.
    pending_max: AtomicU64,
    /// Bytes of objects that wait to be written.
    pending: AtomicU64,
    /// Bytes that the RAM tier may hold.
    pub(super) ram: AtomicU64,
    /// Bytes by which the share of the RAM tier is reduced.
    pub(super) withheld: AtomicU64,
    /// Bytes of the longer reads that are under way. A longer read also returns the objects beside the
    /// requested object.
    wide: AtomicU64,
}

impl MemoryBudget {
    /// Makes the budget of a configuration. At most half of the budget is for objects that wait to be
    /// written.
    pub(crate) fn new(config: &EngineConfig) -> Self {
        let bytes = config.memory_bytes;
        let pending = config.pending_bytes_max.min(bytes / 2);
        Self {
            bytes: bytes.into(),
            pending_max: pending.into(),
            pending: 0.into(),
            ram: (bytes - pending).into(),
            withheld: 0.into(),
            wide: 0.into(),
        }
    }

    /// The whole budget, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The bytes that the RAM tier may hold.
    pub(crate) fn ram(&self) -> u64 {
        self.ram.load(Ordering::Relaxed)
    }

    /// Bytes of objects that wait to be written.
    pub(crate) fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    /// The greatest length, in bytes, of a large object whose fragments go into the RAM tier.
    pub(crate) fn large_in_ram(&self) -> u64 {
        self.bytes() / 32
    }

    /// True if the objects that wait to be written take at least half of the bytes for such objects.
    pub(crate) fn is_congested(&self) -> bool {
        self.pending() >= self.pending_max() / 2
    }

    pub(super) fn pending_max(&self) -> u64 {
        self.pending_max.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.pending_max.store(pending(bytes), Ordering::Relaxed);
    }

    /// Returns whether another object may wait for this store. Each store can use only a part of the memory
    /// for pending objects: a store that is too slow must not prevent the other stores from storing. `all` is
    /// the sum of the write speeds, in bytes per second, of all stores that share the memory for pending
    /// objects; 0 if the sum is not known.
    pub(crate) fn has_room(&self, store: &StoreShared, all: u64) -> bool {
        let waits = store.load.pending_bytes();
        let speed = store.load.write_speed();
        waits < weight::room(self.pending_max(), speed, all)
    }

    /// The maximum number of removed keys that are remembered for a detached store.
    pub(crate) fn detached_keys_max(&self) -> usize {
        // Each key takes about 10 bytes.
        (self.bytes() / 64 / 10) as usize
    }

    /// True while more than a quarter of the memory for waiting objects is free. While the result is false,
    /// reinsertion (used records are written again before their segment is reused) reads no more records
    /// until those that it has read are written. So the last quarter is left to new objects.
    pub(crate) fn has_room_for_reinsertion(&self) -> bool {
        self.pending() < self.pending_max() / 4 * 3
    }

    /// Reserves memory for an object that waits for `store`. Returns false if too little is free.
    pub(crate) fn reserve(&self, store: &StoreShared, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let before = self.pending.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.pending_max() {
            self.pending.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        store.load.add_pending(bytes);
        true
    }

    /// Takes memory for an object that waits for `store`, even beyond the limit.
    pub(crate) fn take(&self, store: &StoreShared, bytes: usize) {
        let bytes = bytes as u64;
        self.pending.fetch_add(bytes, Ordering::Relaxed);
        store.load.add_pending(bytes);
    }

    /// Releases the memory of objects that waited for `store`. `None` stands for a store that was closed.
    pub(crate) fn release(&self, store: Option<&StoreShared>, bytes: usize) {
        let bytes = bytes as u64;
        self.pending.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(store) = store {
            store.load.take_pending(bytes);
        }
    }

    /// Releases the memory of an object that waited for the store with this number.
    pub(crate) fn release_for(&self, stores: &Stores, store: StoreId, bytes: usize) {
        self.release(stores.by_id(store).map(|s| &**s), bytes);
    }

    /// Reserves memory for a longer read of `bytes` bytes. Returns false if too little is free: all longer
    /// reads together may take half of the bytes that are set aside for reads.
    pub(crate) fn begin_wide(&self, bytes: u32) -> bool {
        let bytes = u64::from(bytes);
        let room = (self.bytes() / 128).min(READS_MAX / 2);
        let before = self.wide.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= room;
        if !fits {
            self.wide.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// Releases the memory that was reserved for `plan`, if it was a longer read.
    pub(crate) fn end_wide(&self, plan: &ReadPlan) {
        if plan.wide {
            self.wide.fetch_sub(plan.len.into(), Ordering::Relaxed);
        }
    }

    /// Bytes of longer reads that are under way.
    #[cfg(test)]
    pub(crate) fn wide(&self) -> u64 {
        self.wide.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::rig::bare_store;

    #[test]
    fn what_waits_has_a_quarter_and_no_more() {
        let budget = MemoryBudget::new(&EngineConfig::new(64 << 20, 1));
        let store = bare_store(0);
        assert!(budget.reserve(&store, 8 << 20) && budget.is_congested());
        assert!(budget.has_room_for_reinsertion());
        assert!(budget.reserve(&store, 8 << 20) && !budget.has_room_for_reinsertion());
        assert!(!budget.reserve(&store, 1));
        assert_eq!(
            (budget.pending(), store.load.pending_bytes()),
            (16 << 20, 16 << 20)
        );
        budget.release(Some(&store), 16 << 20);
        assert_eq!((budget.pending(), store.load.pending_bytes()), (0, 0));
    }
}
