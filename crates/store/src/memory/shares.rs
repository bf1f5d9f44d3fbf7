//! The division of the memory budget: the present share of each part of the engine, and the remainder
//! for the RAM tier.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::budget::{MemoryBudget, READS_MAX};
use super::engine_core::EngineCore;
use super::gate::Gate;
use super::tables::Tables;
use crate::fleet::Fleet;
use crate::interface::{EngineCounters, MemoryShares, add};

/// This part of the budget (1/n) is left for memory that the allocator holds beyond the allocated bytes.
const SLACK_PART: u64 = 20;

/// The budget together with the parts that share it.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: Arc<MemoryBudget>,
    tables: Tables,
    fleet: Arc<Fleet>,
    gate: Arc<Gate>,
    counters: Arc<EngineCounters>,
}

impl Memory {
    /// Divides the budget among the parts of `core`. The RAM tier immediately gets the remainder.
    pub(crate) fn new(core: &EngineCore) -> Self {
        let memory = Self {
            budget: Arc::clone(&core.budget),
            tables: core.tables.clone(),
            fleet: Arc::clone(&core.fleet),
            gate: Arc::clone(&core.gate),
            counters: Arc::clone(&core.counters),
        };
        memory.rebalance();
        memory
    }

    /// Returns the budget itself.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// Sets the budget to `bytes` bytes.
    pub(crate) fn set(&self, bytes: u64) {
        self.budget.set(bytes);
        self.tables.index().set_limit(bytes / 2);
        self.rebalance();
    }

    /// Returns the present division of the budget.
    pub(crate) fn shares(&self) -> MemoryShares {
        let budget = self.budget.bytes();
        let stores = self.fleet.stores();
        let writers = stores.iter().map(|s| s.load.writer_bytes());
        let mut shares = MemoryShares {
            budget,
            ram: 0,
            pending: self.budget.pending_max(),
            index: self.tables.index().memory_bytes(),
            writers: writers.sum::<u64>() + self.fleet.detached().memory_bytes(),
            reads: (budget / 64).min(READS_MAX),
            slack: budget / SLACK_PART + self.gate.memory_bytes(budget),
        };
        let others = shares.pending + shares.index + shares.writers + shares.reads + shares.slack;
        let withheld = self.budget.withheld.load(Ordering::Relaxed);
        let left = budget.saturating_sub(others).saturating_sub(withheld);
        shares.ram = left.max(budget / 16);
        shares
    }

    /// Reduces the share of the RAM tier by `bytes` bytes from now on. The RAM tier keeps at least a
    /// sixteenth of the budget.
    pub(crate) fn withhold(&self, bytes: u64) {
        self.budget.withheld.store(bytes, Ordering::Relaxed);
        self.rebalance();
    }

    /// Gives the RAM tier the bytes of the memory budget that the other shares leave. Does nothing if the
    /// share would change by less than 1/256 of the budget.
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

    /// Empties the RAM tier.
    pub(crate) fn clear(&self) {
        add(&self.counters.ram_evictions, self.tables.shards().clear());
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::rig::{bare_store, parts};

    #[test]
    fn the_ram_tier_has_what_the_others_leave() {
        let engine = parts(64 << 20);
        let memory = &engine.context().memory;
        let (before, ram) = (memory.shares(), || memory.budget().ram());
        assert_eq!(ram(), before.ram);
        memory.withhold(8 << 20);
        assert_eq!(ram(), before.ram - (8 << 20));
        memory.withhold(u64::MAX);
        assert_eq!(ram(), 4 << 20, "a sixteenth is left");
        memory.withhold(0);
        let store = bare_store(0);
        store.load.set_writer_bytes(2 << 20);
        engine.fleet().registry().add(&store, None);
        memory.rebalance();
        assert_eq!(ram(), before.ram - (2 << 20));
        memory.set(32 << 20);
        assert_eq!(memory.shares().budget, 32 << 20);
        assert!(ram() < before.ram / 2);
    }
}
