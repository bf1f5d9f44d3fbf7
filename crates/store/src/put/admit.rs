//! Admission: an object becomes visible, and is sent to a disk if the write budget and the memory for
//! pending objects permit that.

use std::sync::Arc;

use foxy_base::{Clock, KeyHash, rule};

use super::routes::Routes;
use crate::interface::{EngineCounters, add};
use crate::memory::{EngineCore, Gate, MemoryBudget, Numbers, Pending, Stage, Tables};
use crate::purge::Purges;
use crate::removal::Catalogue;
use crate::shared::{Item, StoreShared};
use crate::{Admission, DropReason, Object};

/// Admits objects: checks the purges, the write budget, and the memory for pending objects.
#[derive(Debug)]
pub(crate) struct Admitter {
    tables: Tables,
    catalogue: Arc<Catalogue>,
    purges: Arc<Purges>,
    gate: Arc<Gate>,
    routes: Arc<Routes>,
    budget: Arc<MemoryBudget>,
    numbers: Arc<Numbers>,
    counters: Arc<EngineCounters>,
    clock: Arc<dyn Clock>,
}

impl Admitter {
    pub(crate) fn new(
        core: &EngineCore,
        catalogue: &Arc<Catalogue>,
        purges: &Arc<Purges>,
        routes: &Arc<Routes>,
    ) -> Self {
        Self {
            tables: core.tables.clone(),
            catalogue: Arc::clone(catalogue),
            purges: Arc::clone(purges),
            gate: Arc::clone(&core.gate),
            routes: Arc::clone(routes),
            budget: Arc::clone(&core.budget),
            numbers: Arc::clone(&core.numbers),
            counters: Arc::clone(&core.counters),
            clock: Arc::clone(&core.clock),
        }
    }

    /// Puts the object in place of the present object of its key. If `ram` is true, the RAM tier takes the
    /// object. The object is also sent to a store if the gate admits it, if a store takes new objects and
    /// the record fits into its clusters, and if there is memory for the object among the pending objects.
    /// If `paid` is true, the gate has already admitted the object.
    pub(crate) fn admit(&self, object: &Arc<Object>, ram: bool, paid: bool) -> Admission {
        let hash = object.hash();
        let bytes = object.record_bytes();
        let mut shard = self.tables.shard(hash).write();
        // An object that a purge covers must not become visible. Fragments need no check, because they
        // are removed together with their head.
        let covered = !object.is_fragment() && !self.purges.set().may_store(object);
        if rule!(
            "put: what was fetched before a purge that covers it is not stored",
            covered,
            false
        ) {
            add(&self.counters.drop_purged, 1);
            return Admission::Refused(DropReason::Purged);
        }
        rule!(
            "put: the old version goes whether or not the new one is admitted",
            self.catalogue.supersede_locked(&mut shard, hash),
            false
        );
        let room = match paid || self.is_let_in(object, bytes) {
            true => self.make_room(object, bytes),
            // A head that is only in memory would cause requests for fragments that no store keeps.
            false if object.is_large() => return Admission::Refused(DropReason::NotAdmitted),
            false => Err(DropReason::NotAdmitted),
        };
        let ticket = self.numbers.next();
        let mut in_ram = false;
        if ram {
            let (stored, evicted) = shard.insert_ram(object.clone());
            in_ram = stored;
            add(&self.counters.ram_evictions, evicted);
        }
        match room {
            Ok((store, bytes)) => {
                let pending = Pending {
                    object: object.clone(),
                    store: store.id,
                    ticket,
                    stage: Stage::Waiting,
                };
                shard.pending.insert(hash, pending);
                drop(shard);
                store.push(Item {
                    hash,
                    ticket,
                    group: object.group(),
                    bytes,
                });
                Admission::Disk
            }
            Err(reason) if in_ram => Admission::Memory(reason),
            Err(reason) => Admission::Refused(reason),
        }
    }

    /// Returns whether the gate admits a head or whole object: by the write budget, or by the rule once
    /// the budget is spent.
    fn is_let_in(&self, object: &Object, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let all = match object.is_large() {
            true => bytes + object.total_length(),
            false => bytes,
        };
        self.pays(object.hash(), all)
    }

    pub(crate) fn pays(&self, hash: KeyHash, bytes: u64) -> bool {
        let admitted = self.gate.admits(hash, bytes, || self.clock.mono());
        if !admitted {
            add(&self.counters.drop_budget, 1);
        }
        admitted
    }

    /// Finds the store for an object whose record has `bytes` bytes, and reserves memory for the object
    /// among the pending objects.
    fn make_room(
        &self,
        object: &Object,
        bytes: usize,
    ) -> Result<(Arc<StoreShared>, u32), DropReason> {
        let counters = &self.counters;
        let Some(store) = self.routes.route(object.route()) else {
            add(&counters.drop_no_store, 1);
            return Err(DropReason::NoStore);
        };
        if bytes > largest_record(store.space.geometry().cluster_bytes) {
            add(&counters.drop_too_large, 1);
            return Err(DropReason::TooLarge);
        }
        if !self.budget.reserve(&store, object.memory_bytes()) {
            add(&counters.drop_pending, 1);
            store.load.dropped(&store.counters);
            return Err(DropReason::PendingFull);
        }
        Ok((store, bytes as u32))
    }
}

/// The longest record that fits into a cluster together with the cluster's table, in bytes.
pub(crate) const fn largest_record(cluster_bytes: u32) -> usize {
    cluster_bytes as usize - foxy_format::cluster_table_bytes(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::rig::{bare_store, engine_core, hash, object};

    #[test]
    fn an_object_gets_as_far_as_there_is_room() {
        let core = engine_core(64 << 20);
        let catalogue = Arc::new(Catalogue::new(&core));
        let purges = Arc::new(Purges::new(&core, &catalogue));
        let routes = Arc::new(Routes::new(&core));
        let admitter = Admitter::new(&core, &catalogue, &purges, &routes);
        let of = |key, version| Arc::new(Object::from_new(object(key, b"body"), version));
        let memory = Admission::Memory(DropReason::NoStore);
        assert_eq!(admitter.admit(&of("k", 1), true, false), memory);
        let store = bare_store(0);
        core.fleet.registry().add(&store, None);
        assert_eq!(admitter.admit(&of("k", 2), true, false), Admission::Disk);
        assert_eq!(store.inbox.lock().items.len(), 1);
        let waiting = core.budget.pending();
        assert!(waiting > 0 && core.budget.reserve(&store, (16 << 20) - waiting as usize));
        let full = Admission::Refused(DropReason::PendingFull);
        assert_eq!(admitter.admit(&of("other", 3), false, false), full);
        assert!(!core.tables.is_known(hash("other")));
        let replaced = admitter.admit(&of("k", 4), false, false);
        assert_eq!(
            replaced,
            Admission::Disk,
            "the old version gives its room back"
        );
    }
}
