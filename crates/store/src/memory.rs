//! The memory budget: how it is shared out, and what of it waits to be written.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::options::pending;
use crate::shared::StoreShared;
use crate::stats::{MemoryShares, add};
use crate::{Engine, EngineConfig, ReadPlan, StoreId};

/// This part of the budget (1/n) is left to the allocator.
const SLACK_PART: u64 = 20;
/// Reads under way have their buffers within this, on any machine that keeps up with its disks.
const READS_MAX: u64 = 8 << 20;

/// The memory budget of the engine, which may change while it runs, and what is taken of it.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    bytes: AtomicU64,
    /// Of them for objects that wait to be written.
    pending_max: AtomicU64,
    /// Bytes of objects that wait to be written.
    pending: AtomicU64,
    /// Bytes of the RAM tier.
    ram: AtomicU64,
    /// Bytes that the RAM tier does without.
    withheld: AtomicU64,
    /// Bytes of longer reads under way.
    wide: AtomicU64,
}

impl MemoryBudget {
    /// The budget of a configuration. At most half of it waits to be written.
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

    /// All of it, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the RAM tier.
    pub(crate) fn ram(&self) -> u64 {
        self.ram.load(Ordering::Relaxed)
    }

    /// Bytes of objects that wait to be written.
    pub(crate) fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    fn pending_max(&self) -> u64 {
        self.pending_max.load(Ordering::Relaxed)
    }

    fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.pending_max.store(pending(bytes), Ordering::Relaxed);
    }

    /// Returns whether a store has few enough pending bytes to leave room for the others: a store
    /// that does not get on may not keep them from storing. `all` is the sum of the speeds of the stores
    /// that it shares the room with; 0: not known.
    pub(crate) fn has_room(&self, store: &StoreShared, all: u64) -> bool {
        let waits = store.load.pending_bytes();
        let speed = store.load.write_speed();
        waits < crate::weight::room(self.pending_max(), speed, all)
    }

    /// Keys that are remembered for a store that is away.
    pub(crate) fn away_keys_max(&self) -> usize {
        // About 10 bytes each.
        (self.bytes() / 64 / 10) as usize
    }

    /// True while reinsertion leaves a quarter of the room for new objects.
    pub(crate) fn has_room_for_reinsertion(&self) -> bool {
        self.pending() < self.pending_max() / 4 * 3
    }

    /// Takes room for an object that waits for `store`; false if there is none.
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

    /// The same where there may be no room.
    pub(crate) fn take(&self, store: &StoreShared, bytes: usize) {
        let bytes = bytes as u64;
        self.pending.fetch_add(bytes, Ordering::Relaxed);
        store.load.add_pending(bytes);
    }

    /// Gives room back of objects that waited for `store`; `None`: for one that is gone.
    pub(crate) fn release(&self, store: Option<&StoreShared>, bytes: usize) {
        let bytes = bytes as u64;
        self.pending.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(store) = store {
            store.load.take_pending(bytes);
        }
    }

    /// Takes room for a longer read, if there is some: all of them have half of what is set aside for
    /// reads.
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

    /// Gives the room back, if it was a longer read.
    pub(crate) fn end_wide(&self, plan: &ReadPlan) {
        if plan.wide {
            self.wide.fetch_sub(plan.len.into(), Ordering::Relaxed);
        }
    }

    /// Bytes of longer reads under way.
    #[cfg(test)]
    pub(crate) fn wide(&self) -> u64 {
        self.wide.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Gives the engine another memory budget, in bytes, as [`EngineConfig::memory_bytes`] gives it the
    /// first. The RAM tier shrinks or grows at once. The index stays as it is where it has more than half of
    /// a smaller budget, and its limit does not rise above half of the first budget. What already waits to
    /// be written is written.
    pub fn set_memory(&self, bytes: u64) {
        self.budget.set(bytes);
        self.tables.index().set_limit(bytes / 2);
        self.rebalance();
    }

    /// True if waiting objects take half of their room, so that objects may soon be refused. A fill that
    /// pauses until this is false finds room. Records of a segment that is about to be reused have the room
    /// between this and the limit.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.budget.pending() >= self.budget.pending_max() / 2
    }

    /// Gives room back of an object that waited for the store of this number.
    pub(crate) fn release_pending(&self, store: StoreId, bytes: usize) {
        let stores = self.stores();
        self.budget
            .release(stores.by_id(store).map(|s| &**s), bytes);
    }

    /// How the budget is shared out now.
    pub(crate) fn shares(&self) -> MemoryShares {
        let budget = self.budget.bytes();
        let stores = self.stores();
        let writers = stores.iter().map(|s| s.load.writer_bytes());
        let mut shares = MemoryShares {
            budget,
            ram: 0,
            pending: self.budget.pending_max(),
            index: self.tables.index().memory_bytes(),
            writers: writers.sum::<u64>() + self.fleet.away().memory_bytes(),
            reads: (budget / 64).min(READS_MAX),
            slack: budget / SLACK_PART + self.gate.memory_bytes(budget),
        };
        let others = shares.pending + shares.index + shares.writers + shares.reads + shares.slack;
        let withheld = self.budget.withheld.load(Ordering::Relaxed);
        let left = budget.saturating_sub(others).saturating_sub(withheld);
        shares.ram = left.max(budget / 16);
        shares
    }

    /// The RAM tier does without `bytes` bytes of its share from now on, because the process has
    /// more memory than was planned; a sixteenth of the budget stays with it.
    pub fn withhold(&self, bytes: u64) {
        self.budget.withheld.store(bytes, Ordering::Relaxed);
        self.rebalance();
    }

    /// Gives the RAM tier what the other shares leave of the memory budget.
    pub(crate) fn rebalance(&self) {
        let want = self.shares().ram;
        let have = self.budget.ram();
        if want.abs_diff(have) < self.budget.bytes() / 256 {
            return;
        }
        self.budget.ram.store(want, Ordering::Relaxed);
        let gone = self.tables.shards().set_capacity(want);
        add(&self.counters.ram_evictions, gone);
    }
}
