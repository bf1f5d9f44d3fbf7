//! Detached stores, which were taken out and may be attached again, and the removals that they missed.
//!
//! A detached store cannot note removals. For each store that was taken out without a failure, the engine
//! remembers the removals as long as the engine lives. When the store returns to this engine, the engine can
//! therefore tell current records from outdated ones. The store itself records on its disk that its contents
//! are dead. So any other engine (for example, after a restart) treats the store as empty.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use foxy_base::{KeyHash, rule};
use foxy_format::{LogPosition, StoreUuid};
use parking_lot::Mutex;

use crate::shared::RemovedKeys;

/// All detached stores.
#[derive(Debug, Default)]
pub(crate) struct DetachedStores {
    /// True if at least one store is detached.
    any: AtomicBool,
    stores: Mutex<HashMap<StoreUuid, Missed>>,
}

/// The knowledge about a detached store.
#[derive(Debug)]
pub(crate) struct Missed {
    /// Keys that were removed or replaced since the store left.
    pub(crate) removed_keys: RemovedKeys,
    /// The generation of the store's superblock and the store's floor at the time when it left; `None`
    /// while the store is leaving or growing.
    pub(crate) left: Option<(u64, LogPosition)>,
}

impl DetachedStores {
    /// Begins to note removals for a store that leaves. After this, the caller waits for the threads that
    /// hold the lock of a shard, because they may still send their removals to the store itself.
    pub(crate) fn begin(&self, uuid: StoreUuid, keys_max: usize) {
        let removed_keys = RemovedKeys::new(keys_max);
        let mut stores = self.stores.lock();
        stores.insert(
            uuid,
            Missed {
                removed_keys,
                left: None,
            },
        );
        self.any.store(true, Ordering::Release);
    }

    /// Notes that the store was taken out without a failure, and that its superblock then had this
    /// generation and this floor.
    pub(crate) fn left(&self, uuid: StoreUuid, generation: u64, floor: LogPosition) {
        if let Some(missed) = self.stores.lock().get_mut(&uuid) {
            missed.left = Some((generation, floor));
        }
    }

    /// Returns the floor that this store had when it left. Returns `None` in three cases: the store was not
    /// taken out correctly by this engine, its superblock had another generation when it left, or it missed
    /// more removals than the engine could remember.
    pub(crate) fn floor_of(&self, uuid: StoreUuid, generation: u64) -> Option<LogPosition> {
        let stores = self.stores.lock();
        let missed = stores.get(&uuid).filter(|missed| {
            rule!(
                "return: a store that missed too much to remember is untrusted",
                !missed.removed_keys.full,
                true
            )
        })?;
        let (left, floor) = missed.left?;
        rule!(
            "return: a store that somebody opened meanwhile is untrusted",
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
                missed.removed_keys.add(hash);
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        if !self.any.load(Ordering::Acquire) {
            return 0;
        }
        let stores = self.stores.lock();
        let bytes = stores
            .values()
            .map(|missed| missed.removed_keys.memory_bytes());
        bytes.sum::<usize>() as u64
    }
}
