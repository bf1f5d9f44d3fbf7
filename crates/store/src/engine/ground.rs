//! The parts of a new engine: those that depend on no other part, and those that stores and their
//! writers are made of.

use std::sync::Arc;

use foxy_base::{Clock, KeySeed};
use foxy_index::Index;

use super::keys::Keys;
use super::numbers::Numbers;
use super::shards::Shards;
use super::tables::Tables;
use super::{EngineConfig, INDEX_PAGES};
use crate::catalogue::Catalogue;
use crate::fleet::Fleet;
use crate::gate::Gate;
use crate::hold::Holds;
use crate::memory::{Memory, MemoryBudget};
use crate::purge::Purges;
use crate::puts::Puts;
use crate::stats::EngineCounters;

/// The parts that depend on no other part. Every other part takes from these what it needs, and
/// nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) tables: Tables,
    pub(crate) keys: Arc<Keys>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) holds: Holds,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) counters: Arc<EngineCounters>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Ground {
    /// Of this configuration, with this number of shards.
    pub(crate) fn new(config: &EngineConfig, shards: usize, clock: Arc<dyn Clock>) -> Self {
        let budget = MemoryBudget::new(config);
        let shards = Shards::new(shards, budget.ram());
        let index = Index::with_pages(config.memory_bytes / 2, Some(INDEX_PAGES))
            .with_secret(config.index_secret);
        let gate = Gate::new(&config.admission, config.memory_bytes, clock.mono());
        Self {
            tables: Tables::new(shards, index),
            keys: Arc::new(Keys::new(KeySeed(config.key_seed))),
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

/// The parts that a store is opened with, and that its writer is made of.
#[derive(Clone, Debug)]
pub(crate) struct Foundation {
    pub(crate) ground: Ground,
    pub(crate) memory: Arc<Memory>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) purges: Arc<Purges>,
    pub(crate) puts: Arc<Puts>,
}
