//! Lookups, and what follows a disk read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use foxy_base::{KeyHash, rule};
use foxy_disk::AlignedBuf;
use foxy_format::{RecordKind, fragment_hash, parse_record};

use crate::object::{aligned_size, good_size};
use crate::shared::StoreShared;
use crate::spot::Spot;
use crate::stats::add;
use crate::{Engine, Lookup, Object, ReadMiss, ReadPlan};

impl Engine {
    /// Looks up the object under a key. Memory only: a shared lock, no allocation.
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

    /// Fragment `n` (from 0) of a large object.
    pub fn fragment_lookup(&self, head: &Object, n: u32) -> Lookup {
        self.fragment_plan(head, n, false)
    }

    /// As [`fragment_lookup`](Self::fragment_lookup), but of a slow disk too: for who cannot have
    /// these bytes from elsewhere, and would rather wait.
    pub fn fragment_lookup_patient(&self, head: &Object, n: u32) -> Lookup {
        self.fragment_plan(head, n, true)
    }

    fn fragment_plan(&self, head: &Object, n: u32, patient: bool) -> Lookup {
        let hash = fragment_hash(head.hash(), head.meta().version, n);
        match self.lookup_memory(hash) {
            Some(object) if is_fragment_of(&object, head, n) => Lookup::Memory(object),
            Some(_) => self.miss(),
            None => self.lookup_disk(hash, patient),
        }
    }

    /// Returns whether every fragment of a large object is probably stored (memory only).
    #[must_use]
    pub fn has_all_fragments(&self, head: &Object) -> bool {
        (0..head.fragment_count()).all(|n| {
            let hash = fragment_hash(head.hash(), head.meta().version, n);
            self.tables.is_known(hash)
        })
    }

    fn lookup_memory(&self, hash: KeyHash) -> Option<Arc<Object>> {
        let shard = self.tables.shard(hash).read();
        if let Some(object) = shard.ram.get_shared(&hash) {
            shard.ram_hits.fetch_add(1, Ordering::Relaxed);
            if object.brought.is_set() {
                self.brought_hit(object);
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
            let stores = self.stores();
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

    /// Checks what was read (place, life, checksums, key), makes sure that nothing newer was
    /// stored meanwhile, and takes the object into the RAM tier. If the key was stored again
    /// meanwhile, that newer object is returned.
    ///
    /// # Errors
    /// A counted miss. A damaged record's entry is dropped; another key's is left to its owner.
    pub fn finish_read(
        &self,
        plan: &ReadPlan,
        key: &[u8],
        buf: AlignedBuf,
    ) -> Result<Arc<Object>, ReadMiss> {
        self.finish_read_if(plan, key, buf, |_| true)
    }

    /// As [`Engine::finish_read`]; the RAM tier takes the object only if `keep` says so.
    ///
    /// # Errors
    /// As there.
    pub fn finish_read_if(
        &self,
        plan: &ReadPlan,
        key: &[u8],
        buf: AlignedBuf,
        keep: impl Fn(&Object) -> bool,
    ) -> Result<Arc<Object>, ReadMiss> {
        let wanted = |object: &Object| {
            !object.is_fragment()
                && rule!(
                    "read: the key in the record is compared",
                    object.key() == key,
                    true
                )
        };
        self.finish(plan, buf, wanted, keep)
    }

    /// As [`Engine::finish_read`], for fragment `n` of `head`.
    ///
    /// # Errors
    /// As there.
    pub fn finish_fragment(
        &self,
        plan: &ReadPlan,
        head: &Object,
        n: u32,
        buf: AlignedBuf,
    ) -> Result<Arc<Object>, ReadMiss> {
        self.finish_fragment_if(plan, head, n, buf, |_| true)
    }

    /// As [`Engine::finish_fragment`]; the RAM tier takes the fragment only if `keep` says so.
    ///
    /// # Errors
    /// As there.
    pub fn finish_fragment_if(
        &self,
        plan: &ReadPlan,
        head: &Object,
        n: u32,
        buf: AlignedBuf,
        keep: impl Fn(&Object) -> bool,
    ) -> Result<Arc<Object>, ReadMiss> {
        self.finish(plan, buf, |object| is_fragment_of(object, head, n), keep)
    }

    fn finish(
        &self,
        plan: &ReadPlan,
        buf: AlignedBuf,
        wanted: impl Fn(&Object) -> bool,
        keep: impl Fn(&Object) -> bool,
    ) -> Result<Arc<Object>, ReadMiss> {
        let capacity = buf.capacity();
        let bytes = buf.into_bytes();
        let result = self.check_bytes(plan, &bytes, capacity).and_then(|object| {
            if rule!(
                "read: the record is of the hash that was looked up",
                object.hash() != plan.hash,
                false
            ) {
                return Err(ReadMiss::Twin);
            }
            rule!(
                "read: what a store missed purges of is void",
                self.refuse_void(plan, &object),
                Ok(())
            )?;
            let object = self.promote(plan, object, &wanted, &keep)?;
            rule!(
                "read: what comes from a disk is compared with the purges",
                self.purges.unless_purged(object),
                Some(object)
            )
            .ok_or(ReadMiss::Superseded)
        });
        self.count_read(plan, &result);
        if plan.wide {
            self.take_around(plan, &bytes);
            self.budget.end_wide(plan);
        }
        result
    }

    /// The object in what was read, if it is whole and where it should be.
    pub(crate) fn check_record(
        &self,
        plan: &ReadPlan,
        buf: AlignedBuf,
    ) -> Result<Object, ReadMiss> {
        let capacity = buf.capacity();
        self.check_bytes(plan, &buf.into_bytes(), capacity)
    }

    fn check_bytes(
        &self,
        plan: &ReadPlan,
        bytes: &Bytes,
        capacity: usize,
    ) -> Result<Object, ReadMiss> {
        let stores = self.stores();
        let store = stores.by_id(plan.store).ok_or(ReadMiss::Superseded)?;
        let record = bytes.get(plan.skip as usize..).unwrap_or(&[]);
        let place = store.space.place(plan.spot);
        let parsed = place.and_then(|place| parse_record(record, &place).ok());
        let object = parsed.and_then(|(head, layout)| {
            let (owned, held) = compact(
                &bytes.slice(plan.skip as usize..),
                layout.body.end,
                capacity,
            );
            let object = Object::from_record(&head, &layout, &owned, held)?;
            Some(self.holds.hold(object))
        });
        object.ok_or_else(|| self.clear_damaged(plan, store))
    }

    /// Drops the entry of a damaged record. If it is not there any more, the segment was reused
    /// or the object superseded during the read, and nothing is wrong.
    fn clear_damaged(&self, plan: &ReadPlan, store: &StoreShared) -> ReadMiss {
        if !self.catalogue.drop_entry(plan, store) {
            return ReadMiss::Superseded;
        }
        if let Some((segment, _)) = store.space.locate(plan.spot) {
            store.read_damage(segment, plan.at);
        }
        ReadMiss::Damaged
    }

    /// Refuses an object whose store missed purges: its journal was damaged, or it was away.
    fn refuse_void(&self, plan: &ReadPlan, object: &Object) -> Result<(), ReadMiss> {
        let stores = self.stores();
        let store = stores.by_id(plan.store).ok_or(ReadMiss::Superseded)?;
        if object.meta().purge_sequence >= store.marks.purge_floor() {
            return Ok(());
        }
        self.catalogue.drop_entry(plan, store);
        Err(ReadMiss::Superseded)
    }

    fn promote(
        &self,
        plan: &ReadPlan,
        object: Object,
        wanted: &impl Fn(&Object) -> bool,
        keep: &impl Fn(&Object) -> bool,
    ) -> Result<Arc<Object>, ReadMiss> {
        let mut shard = self.tables.shard(plan.hash).write();
        if let Some(newer) = rule!(
            "read: what was stored meanwhile is given instead",
            shard.in_memory(plan.hash),
            None::<&Arc<Object>>
        ) {
            return if wanted(newer) {
                Ok(newer.clone())
            } else {
                Err(ReadMiss::Superseded)
            };
        }
        if rule!(
            "read: the entry that was followed is still there when the read is done",
            !self.tables.leads_to(plan.hash, plan.spot),
            false
        ) {
            let moved = !self.tables.index().lookup(plan.hash).is_empty();
            return Err(if moved {
                ReadMiss::Moved
            } else {
                ReadMiss::Superseded
            });
        }
        if !wanted(&object) {
            return Err(ReadMiss::Twin);
        }
        self.tables.index().touch(plan.hash, plan.spot.address);
        let object = Arc::new(object);
        let short = object.kind != RecordKind::Fragment
            || object.total_length() <= self.budget.large_in_ram();
        if short && keep(&object) {
            let (_, evicted) = shard.insert_ram(object.clone());
            add(&self.counters.ram_evictions, evicted);
        }
        Ok(object)
    }

    fn count_read(&self, plan: &ReadPlan, result: &Result<Arc<Object>, ReadMiss>) {
        let counters = &self.counters;
        let counter = match result {
            Ok(_) => &counters.disk_hits,
            Err(ReadMiss::Twin) => &counters.miss_twin,
            Err(ReadMiss::Superseded) => &counters.miss_superseded,
            Err(ReadMiss::Moved) => &counters.miss_moved,
            Err(ReadMiss::Damaged) => &counters.miss_damaged,
            Err(ReadMiss::Device) => &counters.miss_device,
        };
        add(counter, 1);
        if result.is_ok()
            && let Some(store) = self.stores().by_id(plan.store)
        {
            store.condition.read_well();
        }
    }

    /// Tells that the read itself failed: the entry is dropped, and a store that fails again and
    /// again is not used any more. The request goes on as the answer says.
    pub fn fail_read(&self, plan: &ReadPlan, error: &io::Error) -> ReadMiss {
        if plan.wide {
            self.budget.end_wide(plan);
            return self.wide_failed(plan);
        }
        add(&self.counters.miss_device, 1);
        let Some(store) = self.fleet.store(plan.store) else {
            return ReadMiss::Device;
        };
        self.catalogue.drop_entry(plan, &store);
        let segment = store.space.locate(plan.spot).map(|(segment, _)| segment);
        store.read_failed(segment, plan.at, error);
        ReadMiss::Device
    }

    /// Tells that nobody waits for this read any longer, though the device still has it: the
    /// store counts as slow and is left alone for a while. The request goes on as a miss. Has to
    /// be followed by [`Engine::late_read`] when the read ends.
    pub fn give_up_read(&self, plan: &ReadPlan) {
        add(&self.counters.miss_device, 1);
        if let Some(store) = self.fleet.store(plan.store) {
            add(&store.counters.reads_given_up, 1);
            let now = self.clock.mono();
            store
                .condition
                .given_up(&store.disk.describe(), plan.at, now);
        }
    }

    /// Tells that a read which was given up has ended.
    pub fn late_read(&self, plan: &ReadPlan) {
        self.budget.end_wide(plan);
        if let Some(store) = self.fleet.store(plan.store) {
            store.condition.arrived(self.clock.mono());
        }
    }
}

/// The record alone, if it would keep much more memory alive than it needs.
fn compact(record: &Bytes, len: usize, capacity: usize) -> (Bytes, usize) {
    let (copied, kept) = (good_size(len), aligned_size(capacity));
    if copied * 5 / 4 < kept {
        (Bytes::copy_from_slice(&record[..len]), copied)
    } else {
        (record.clone(), kept)
    }
}

pub(crate) fn is_fragment_of(object: &Object, head: &Object, n: u32) -> bool {
    object.is_fragment()
        && object.fragment == n
        && rule!(
            "fragments: they are of the version of their head",
            object.meta().version == head.meta().version,
            true
        )
        && object.key() == head.key()
}
