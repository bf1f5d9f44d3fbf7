//! Stores that were taken out and may come back, and the removals that they missed.
//!
//! A store that is away cannot note removals. For each store that left in order, this engine remembers
//! the removals as long as it lives. So when the store returns, the engine can tell current records
//! from outdated ones. The store itself records on its disk that its contents do not count: an engine
//! without this memory treats it as empty.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use foxy_base::{KeyHash, rule};
use foxy_format::{LogPosition, StoreUuid};
use parking_lot::Mutex;

use crate::shared::Gone;

/// All stores that are away.
#[derive(Debug, Default)]
pub(crate) struct Away {
    /// True if at least one store is away.
    any: AtomicBool,
    stores: Mutex<HashMap<StoreUuid, Missed>>,
}

/// The knowledge about a store that is away.
#[derive(Debug)]
pub(crate) struct Missed {
    /// Keys that were removed or replaced since the store left.
    pub(crate) gone: Gone,
    /// The generation of the store's superblock and the store's floor at the time when it left; `None`
    /// while the store is leaving or growing.
    pub(crate) left: Option<(u64, LogPosition)>,
}

impl Away {
    /// Begins to note removals for a store that leaves. A thread that holds the lock of a shard at this
    /// moment may still send its removals to the store itself.
    pub(crate) fn begin(&self, uuid: StoreUuid, keys_max: usize) {
        let gone = Gone::new(keys_max);
        let mut stores = self.stores.lock();
        stores.insert(uuid, Missed { gone, left: None });
        self.any.store(true, Ordering::Release);
    }

    /// Notes that the store has left in order.
    pub(crate) fn left(&self, uuid: StoreUuid, generation: u64, floor: LogPosition) {
        if let Some(missed) = self.stores.lock().get_mut(&uuid) {
            missed.left = Some((generation, floor));
        }
    }

    /// Returns the floor that this store had when it left; `None` unless it left with this generation,
    /// and all its missed removals could be remembered.
    pub(crate) fn floor_of(&self, uuid: StoreUuid, generation: u64) -> Option<LogPosition> {
        let stores = self.stores.lock();
        let missed = stores.get(&uuid).filter(|missed| {
            rule!(
                "return: a store that missed too much to remember is a stranger",
                !missed.gone.full,
                true
            )
        })?;
        let (left, floor) = missed.left?;
        rule!(
            "return: a store that somebody opened meanwhile is a stranger",
            left == generation,
            true
        )
        .then_some(floor)
    }

    /// Ends noting removals for a store, and returns what was noted.
    pub(crate) fn take(&self, uuid: StoreUuid) -> Option<Missed> {
        let mut stores = self.stores.lock();
        let missed = stores.remove(&uuid);
        self.any.store(!stores.is_empty(), Ordering::Release);
        missed
    }

    /// Notes that a key is removed or replaced. The caller holds the lock of the key's shard.
    pub(crate) fn note(&self, hash: KeyHash) {
        if self.any.load(Ordering::Acquire) {
            for missed in self.stores.lock().values_mut() {
                missed.gone.add(hash);
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        if !self.any.load(Ordering::Acquire) {
            return 0;
        }
        let stores = self.stores.lock();
        let bytes = stores.values().map(|missed| missed.gone.memory_bytes());
        bytes.sum::<usize>() as u64
    }
}
