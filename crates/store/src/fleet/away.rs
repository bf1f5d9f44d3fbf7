//! Stores that were taken out and may come back: what was removed meanwhile.
//!
//! A store that is not there cannot note removals. While this engine lives, it remembers the removals
//! for each store that left in order, so that it can tell current records from outdated ones when the
//! store returns. The store itself writes to its disk that its contents do not count: for an engine
//! that does not remember, it is empty.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use foxy_base::{KeyHash, rule};
use foxy_format::{LogPosition, StoreUuid};
use parking_lot::Mutex;

use crate::shared::Gone;

/// All stores that are away.
#[derive(Debug, Default)]
pub(crate) struct Away {
    /// There is at least one such store.
    any: AtomicBool,
    stores: Mutex<HashMap<StoreUuid, Missed>>,
}

/// The state of a store that is away.
#[derive(Debug)]
pub(crate) struct Missed {
    /// Keys that were removed or replaced since.
    pub(crate) gone: Gone,
    /// Its superblock's generation when it left, and the floor that it had: `None` while it is
    /// leaving, or growing.
    pub(crate) left: Option<(u64, LogPosition)>,
}

impl Away {
    /// Begins to note removals for a store. A thread that holds a shard's lock at this moment may
    /// still send its removals to the store itself.
    pub(crate) fn begin(&self, uuid: StoreUuid, keys_max: usize) {
        let gone = Gone::new(keys_max);
        let mut stores = self.stores.lock();
        stores.insert(uuid, Missed { gone, left: None });
        self.any.store(true, Ordering::Release);
    }

    /// The store has left in order.
    pub(crate) fn left(&self, uuid: StoreUuid, generation: u64, floor: LogPosition) {
        if let Some(missed) = self.stores.lock().get_mut(&uuid) {
            missed.left = Some((generation, floor));
        }
    }

    /// Returns the floor that this store had when it left; `None` unless it left in this state.
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

    /// Ends noting.
    pub(crate) fn take(&self, uuid: StoreUuid) -> Option<Missed> {
        let mut stores = self.stores.lock();
        let missed = stores.remove(&uuid);
        self.any.store(!stores.is_empty(), Ordering::Release);
        missed
    }

    /// A key is removed or replaced. Under the lock of its shard.
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
