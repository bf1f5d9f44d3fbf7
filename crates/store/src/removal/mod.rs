//! Removal: the contents of keys are removed, and the stores log the removals, so that no restart undoes
//! them.
//!
//! This module uses `memory`, `fleet`, `shared` and `interface`. [`Catalogue`] removes single keys;
//! `stores` adds a whole store or takes it out. The removal log of a store itself is in
//! `shared/removals.rs`; purges of many objects are in `purge`.

mod stores;

use std::sync::Arc;

use foxy_base::{KeyHash, rule};
use foxy_index::{Candidates, Entry};
use foxy_policy::CachePolicy;

use crate::ReadPlan;
use crate::fleet::Fleet;
use crate::interface::{EngineCounters, Spot, SyncTicket, add};
use crate::memory::{EngineCore, Gate, MemoryBudget, Shard, Stage, Tables};
use crate::shared::{Removal, StoreShared};

/// All keys with their contents: in memory, on the way to a disk, and on a disk. A removal removes the
/// contents from all three places, and the stores log it.
#[derive(Debug)]
pub(crate) struct Catalogue {
    tables: Tables,
    fleet: Arc<Fleet>,
    budget: Arc<MemoryBudget>,
    gate: Arc<Gate>,
    counters: Arc<EngineCounters>,
}

impl Catalogue {
    pub(crate) fn new(core: &EngineCore) -> Self {
        Self {
            tables: core.tables.clone(),
            fleet: Arc::clone(&core.fleet),
            budget: Arc::clone(&core.budget),
            gate: Arc::clone(&core.gate),
            counters: Arc::clone(&core.counters),
        }
    }

    /// Removes the live entry of a key. Returns true if there was an entry.
    pub(crate) fn supersede(&self, hash: KeyHash) -> bool {
        self.supersede_locked(&mut self.tables.shard(hash).write(), hash)
    }

    /// Removes the live entry like [`Self::supersede`], for callers that hold the shard's lock.
    pub(crate) fn supersede_locked(&self, shard: &mut Shard, hash: KeyHash) -> bool {
        let found = self.tables.index().lookup(hash);
        for store in self.fleet.stores().iter() {
            self.log_removal(store, shard, hash, &found, false);
        }
        rule!(
            "detached: what is replaced is noted for a detached store",
            self.fleet.detached().note(hash),
            ()
        );
        self.take_away(shard, hash, &found)
    }

    /// Logs the removal of the records that `store` may have of a key, so that these records do not return
    /// after a restart. If `key_too` is true, the removal of the key is logged even if `store` has no such
    /// record. This method is called before the contents of the key are removed.
    fn log_removal(
        &self,
        store: &StoreShared,
        shard: &Shard,
        hash: KeyHash,
        found: &Candidates,
        key_too: bool,
    ) {
        let mut removals = Vec::new();
        // If the object is in an assembled cluster, the cluster may be on the disk already. An object
        // that still waits for its cluster was never written.
        if let Some(pending) = shard.pending.get(&hash)
            && let Stage::Assembled(place) = pending.stage
            && pending.store == store.id
        {
            rule!(
                "supersede: a version in a cluster under way becomes dead",
                removals.push(Removal::Place(place)),
                ()
            );
        }
        let here = found.iter().filter(|e| {
            rule!(
                "supersede: a version on disk becomes dead",
                store.space.holds(e.address),
                false
            )
        });
        removals.extend(
            here.filter_map(|e| store.space.position(Spot::of(&e)))
                .map(Removal::Place),
        );
        let mut unloaded = false;
        if store.loading.is_on()
            && let Some(removed_keys) = store.loading.removed_keys_mut().as_mut()
        {
            rule!(
                "supersede: a key removed while loading is not loaded any more",
                removed_keys.add(hash),
                ()
            );
            unloaded = true;
        }
        // A record that is not loaded yet may belong to the key.
        if rule!(
            "purge: a key leaves a tombstone whether or not it is known",
            key_too,
            false
        ) || rule!(
            "supersede: a key that may not be loaded yet leaves a tombstone",
            unloaded,
            false
        ) {
            removals.push(Removal::Key(hash));
        }
        if !removals.is_empty() {
            store.remove_all(&removals);
        }
    }

    /// Removes the contents of a key in memory, and its index entries. The removals of the
    /// entries in `found` are logged already.
    fn take_away(&self, shard: &mut Shard, hash: KeyHash, found: &Candidates) -> bool {
        let mut existed = shard.ram.remove(&hash).is_some();
        if let Some(pending) = shard.pending.remove(&hash) {
            existed = true;
            let bytes = pending.object.memory_bytes();
            self.budget
                .release_for(&self.fleet.stores(), pending.store, bytes);
        }
        for entry in self.tables.index().remove(hash) {
            existed = true;
            // The index cannot distinguish some keys (colliding keys). After `found` was looked up, the entry
            // of a colliding key may have been added under the lock of another shard.
            if found.iter().all(|f| Spot::of(&f) != Spot::of(&entry)) {
                self.log_record_tombstone(entry);
            }
        }
        if existed {
            self.gate.used(hash);
            add(&self.counters.superseded, 1);
        }
        existed
    }

    /// Logs a tombstone for the record of an index entry, so that the record does not return after a
    /// restart.
    pub(crate) fn log_record_tombstone(&self, entry: Entry) {
        if let Some(store) = self.fleet.stores().at(entry.address)
            && let Some(place) = store.space.position(Spot::of(&entry))
        {
            store.remove(Removal::Place(place));
        }
    }

    /// Removes a key like [`Self::supersede`], whether or not the key is known. The ticket is done when
    /// the removal is durable.
    pub(crate) fn purge(&self, hash: KeyHash) -> SyncTicket {
        let mut shard = self.tables.shard(hash).write();
        let found = self.tables.index().lookup(hash);
        for store in self.fleet.stores().iter() {
            self.log_removal(store, &shard, hash, &found, true);
        }
        rule!(
            "detached: the purge of a URL is noted for a detached store",
            self.fleet.detached().note(hash),
            ()
        );
        self.take_away(&mut shard, hash, &found);
        drop(shard);
        add(&self.counters.purged, 1);
        self.fleet.removal_ticket()
    }

    /// Drops the index entry that led to the read of `plan`. Returns false if the entry is not there
    /// any more.
    pub(crate) fn drop_entry(&self, plan: &ReadPlan, store: &StoreShared) -> bool {
        let _shard = self.tables.shard(plan.hash).write();
        if !self.tables.leads_to(plan.hash, plan.spot) {
            return false;
        }
        // After a restart the record might be readable again. By then the key may have a newer version, which
        // the record must not replace.
        let place = store.space.position(plan.spot).map(Removal::Place);
        let key = Removal::Key(plan.hash);
        rule!(
            "read: a damaged record leaves a tombstone for its key",
            store.remove_all(&[key, place.unwrap_or(key)]),
            store.remove_all(&[place.unwrap_or(key)])
        );
        self.tables
            .index()
            .remove_if(plan.hash, plan.spot.address)
            .is_some()
    }

    /// Removes from memory everything of a store that is not in the list any more: pending objects and index
    /// entries. The first loop takes the lock of each shard in turn, as a barrier does. After the loop, no
    /// thread uses the old list, which still contained the store.
    pub(crate) fn forget(&self, store: &StoreShared) {
        for shard in self.tables.shards().iter() {
            let mut shard = shard.write();
            let mut freed = 0;
            shard.pending.retain(|_, pending| {
                let stays = pending.store != store.id;
                if !stays {
                    freed += pending.object.memory_bytes();
                }
                stays
            });
            self.budget.release(None, freed);
        }
        store.space.end_incarnations();
        self.tables.index().sweep(store.space.sectors()).run();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::Object;
    use crate::interface::Spot;
    use crate::shared::Removal;
    use crate::tests::rig::{bare_store, hash, object, parts};

    fn logged(store: &crate::shared::StoreShared) -> Vec<Removal> {
        let removals = std::mem::take(&mut store.inbox.lock().removals);
        removals
            .into_iter()
            .map(|numbered| numbered.removal)
            .collect()
    }

    #[test]
    fn a_key_goes_from_memory_and_index_and_its_store_logs_that() {
        let engine = parts(64 << 20);
        let store = bare_store(0);
        engine.fleet().registry().add(&store, None);
        let catalogue = &engine.context().catalogue;
        assert!(!catalogue.supersede(hash("k")));
        let new = Object::from_new(object("k", b"body"), 1);
        let shard = engine.core().tables.shard(hash("k"));
        shard.write().insert_ram(Arc::new(new));
        let spot: Spot = store.space.spot(1, 3).unwrap();
        let _ = engine
            .core()
            .tables
            .index()
            .insert(hash("k"), spot.entry(512).unwrap());
        assert!(catalogue.supersede(hash("k")));
        assert!(!engine.core().tables.is_known(hash("k")));
        let place = store.space.position(spot).unwrap();
        assert_eq!(logged(&store), [Removal::Place(place)]);
        assert!(!catalogue.supersede(hash("k")) && logged(&store).is_empty());
        let ticket = catalogue.purge(hash("k"));
        assert_eq!(logged(&store), [Removal::Key(hash("k"))], "known or not");
        assert!(ticket.outcome().is_none());
    }

    #[test]
    fn what_lay_in_a_store_that_left_is_forgotten() {
        let engine = parts(64 << 20);
        let stores = [bare_store(0), bare_store(1)];
        for (store, key) in stores.iter().zip(["a", "b"]) {
            store.space.begin_incarnation(0, 7);
            let entry = store.space.spot(0, 0).unwrap().entry(512).unwrap();
            let _ = engine.core().tables.index().insert(hash(key), entry);
        }
        engine.context().catalogue.forget(&stores[0]);
        let known = ["a", "b"].map(|key| engine.core().tables.is_known(hash(key)));
        assert_eq!((known, stores[0].space.incarnation(0)), ([false, true], 0));
    }
}
