//! Lookups: what memory knows about a key, and where to read its record if the record is on a disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_base::{KeyHash, rule};
use foxy_format::fragment_hash;

use super::Reads;
use crate::interface::{Spot, add};
use crate::memory::is_fragment_of;
use crate::{Lookup, Object};

impl Reads {
    /// Looks up the object under a key. Uses memory only: it takes a shared lock and allocates nothing.
    pub fn lookup(&self, hash: KeyHash, key: &[u8]) -> Lookup {
        debug_assert!(self.keys.is_hash_of(hash, key), "hashed with another seed");
        match self.lookup_memory(hash) {
            Some(object)
                if rule!(
                    "lookup: the key of an object in memory is compared",
                    object.key() == key,
                    true
                ) && !object.is_fragment() =>
            {
                let object = rule!(
                    "lookup: what is in memory is compared with the purges",
                    self.purges.unless_purged(object),
                    Some(object)
                );
                object.map_or_else(|| self.miss(), Lookup::Memory)
            }
            Some(_) => self.miss(),
            None => self.lookup_disk(hash, false),
        }
    }

    /// Looks up fragment `n` (counted from 0) of a large object.
    pub fn fragment_lookup(&self, head: &Object, n: u32) -> Lookup {
        self.fragment(head, n, false)
    }

    /// Looks up a fragment like [`fragment_lookup`](Self::fragment_lookup), but reads from a slow disk
    /// too. It is for callers that cannot get these bytes from another source and prefer to wait.
    pub fn fragment_lookup_patient(&self, head: &Object, n: u32) -> Lookup {
        self.fragment(head, n, true)
    }

    fn fragment(&self, head: &Object, n: u32, patient: bool) -> Lookup {
        let hash = fragment_hash(head.hash(), head.meta().version, n);
        match self.lookup_memory(hash) {
            Some(object) if is_fragment_of(&object, head, n) => Lookup::Memory(object),
            Some(_) => self.miss(),
            None => self.lookup_disk(hash, patient),
        }
    }

    fn lookup_memory(&self, hash: KeyHash) -> Option<Arc<Object>> {
        let shard = self.tables.shard(hash).read();
        if let Some(object) = shard.ram.get_shared(&hash) {
            shard.ram_hits.fetch_add(1, Ordering::Relaxed);
            if object.brought.is_set() {
                self.neighbours.brought_hit(object);
            }
            return Some(object.clone());
        }
        let pending = shard.pending.get(&hash)?;
        shard.pending_hits.fetch_add(1, Ordering::Relaxed);
        Some(pending.object.clone())
    }

    fn lookup_disk(&self, hash: KeyHash, patient: bool) -> Lookup {
        let found = self.tables.index().lookup(hash).first();
        let plan = found.and_then(|entry| {
            let stores = self.open.load();
            let store = stores.at(entry.address)?;
            let spot = Spot::of(&entry);
            if store.is_readable(spot, patient, || self.clock.mono()) {
                return store.plan(hash, &entry);
            }
            add(&self.counters.miss_unavailable, 1);
            None
        });
        match plan {
            Some(plan) => {
                add(&self.counters.disk_plans, 1);
                Lookup::Disk(plan)
            }
            None => self.miss(),
        }
    }

    fn miss(&self) -> Lookup {
        add(&self.counters.misses, 1);
        Lookup::Miss
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::tests::rig::{bare_store, hash, object, parts};
    use crate::{Lookup, Object};

    #[test]
    fn memory_answers_before_a_disk_and_only_for_its_own_key() {
        let engine = parts(64 << 20);
        let lookup = |key: &str| engine.reads().lookup(hash(key), key.as_bytes());
        assert!(matches!(lookup("k"), Lookup::Miss));
        let store = bare_store(0);
        engine.fleet().registry().add(&store, None);
        let entry = store.space.spot(1, 3).unwrap().entry(512).unwrap();
        let _ = engine.core().tables.index().insert(hash("k"), entry);
        assert!(matches!(lookup("k"), Lookup::Disk(plan) if plan.store == store.id));
        let held = Arc::new(Object::from_new(object("k", b"body"), 1));
        engine
            .core()
            .tables
            .shard(hash("k"))
            .write()
            .insert_ram(held);
        assert!(matches!(lookup("k"), Lookup::Memory(_)));
        assert!(matches!(
            engine.reads().lookup(hash("k"), b"other"),
            Lookup::Miss
        ));
        let counts = engine.stats().counts;
        assert_eq!((counts.misses, counts.disk_plans), (2, 1));
    }
}
