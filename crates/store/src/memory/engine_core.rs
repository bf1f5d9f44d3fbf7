//! The parts of a new engine that depend on no other part of it.

use std::sync::Arc;

use foxy_base::Clock;
use foxy_index::Index;

use super::budget::MemoryBudget;
use super::gate::Gate;
use super::hold::Holds;
use super::numbers::Numbers;
use super::shards::Shards;
use super::tables::{INDEX_PAGES, Tables};
use crate::EngineConfig;
use crate::fleet::Fleet;
use crate::interface::EngineCounters;

/// The parts of an engine that depend on no other part. The other parts of the engine are built from
/// these parts.
#[derive(Clone, Debug)]
pub(crate) struct EngineCore {
    pub(crate) tables: Tables,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) holds: Holds,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) counters: Arc<EngineCounters>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl EngineCore {
    /// Makes the parts for this configuration, with this number of shards.
    pub(crate) fn new(config: &EngineConfig, shards: usize, clock: Arc<dyn Clock>) -> Self {
        let budget = MemoryBudget::new(config);
        let shards = Shards::new(shards, budget.ram());
        let index = Index::with_pages(config.memory_bytes / 2, Some(INDEX_PAGES))
            .with_secret(config.index_secret);
        let gate = Gate::new(&config.admission, config.memory_bytes, clock.mono());
        Self {
            tables: Tables::new(shards, index),
            fleet: Arc::default(),
            budget: Arc::new(budget),
            gate: Arc::new(gate),
            holds: Holds::default(),
            numbers: Arc::new(Numbers::new(config.seed)),
            counters: Arc::default(),
            clock,
        }
    }
}
