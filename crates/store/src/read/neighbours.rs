//! Longer reads: an object is read together with the records beside it on the disk (its neighbours), if that
//! is likely to save later reads. [`foxy_policy::ReadAround`] decides about that.
//!
//! A neighbour that was read with the object goes into the RAM tier under the same conditions as a requested
//! object. Its record must be valid and not purged, and at its expected place in the present incarnation of
//! the segment. The index must still lead to that place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use foxy_base::{Clock, rule};
use foxy_format::{RecordKind, UNIT, may_be_record, parse_record};
use foxy_policy::Device;

use crate::interface::{EngineCounters, add};
use crate::memory::{Brought, EngineCore, MemoryBudget, Tables, good_size};
use crate::purge::Purges;
use crate::shared::{Registry, StoreShared};
use crate::{Object, ReadMiss, ReadPlan, StoreId};

/// The extra cost of a read of 64 KiB compared with a read of 8 KiB. The unit is the cost of one read of 8
/// KiB. The cost is measured for SSDs (32 reads under way) and estimated for other devices.
const fn cost(device: Device) -> f64 {
    match device {
        Device::Unknown | Device::Fast => 2.0,
        Device::Even => 0.3,
        Device::Rotating => 0.05,
    }
}

/// Decides where longer reads save work, and puts the neighbours that they read into the RAM tier.
#[derive(Debug)]
pub(crate) struct Neighbours {
    tables: Tables,
    open: Arc<Registry>,
    purges: Arc<Purges>,
    budget: Arc<MemoryBudget>,
    clock: Arc<dyn Clock>,
    counters: Arc<EngineCounters>,
}

impl Neighbours {
    pub(crate) fn new(core: &EngineCore, purges: &Arc<Purges>) -> Self {
        Self {
            tables: core.tables.clone(),
            open: Arc::clone(core.fleet.registry()),
            purges: Arc::clone(purges),
            budget: Arc::clone(&core.budget),
            clock: Arc::clone(&core.clock),
            counters: Arc::clone(&core.counters),
        }
    }

    /// Returns the read to carry out for `plan`. A longer read reserves memory, which [`Self::end`]
    /// releases.
    pub(crate) fn widen(&self, plan: &ReadPlan) -> ReadPlan {
        let stores = self.open.load();
        let wider = stores.by_id(plan.store).and_then(|store| {
            if u64::from(plan.len) > store.around.bytes() / 2 {
                return None;
            }
            // If another worker holds the lock of the `ReadAround` rule, the plan stays as it is.
            let mut rule = store.around.try_rule()?;
            rule.set_cost(cost(store.reads.device()));
            let wide = rule.read(plan.at / store.around.bytes());
            drop(rule);
            wide.then(|| self.wider(store, plan)).flatten()
        });
        wider.unwrap_or(*plan)
    }

    fn wider(&self, store: &StoreShared, plan: &ReadPlan) -> Option<ReadPlan> {
        let (segment, _) = store.space.locate(plan.spot)?;
        let start = store.space.geometry().segment_at(segment);
        let end = start + u64::from(store.space.geometry().segment_bytes);
        // The read extends farther ahead than back, because the objects of a page are stored after the
        // page.
        let back = (store.around.bytes() / 4).next_multiple_of(store.space.block_bytes());
        let at = plan.at.saturating_sub(back).max(start);
        let at = at.next_multiple_of(store.space.block_bytes()).min(plan.at);
        let end = (at + store.around.bytes())
            .min(end / store.space.block_bytes() * store.space.block_bytes());
        let end = end.max(plan.at + u64::from(plan.len));
        let len = u32::try_from(end - at).ok()?;
        if !self.budget.begin_wide(len) {
            return None;
        }
        add(&self.counters.wide_reads, 1);
        Some(ReadPlan {
            at,
            len,
            skip: plan.skip + u32::try_from(plan.at - at).ok()?,
            wide: true,
            ..*plan
        })
    }

    /// Handles a failed longer read. The failure proves nothing about the wanted object, so the caller
    /// must look the object up again and read it without its neighbours.
    pub(crate) fn failed(&self, plan: &ReadPlan) -> ReadMiss {
        if let Some(store) = self.open.store(plan.store) {
            store.around.rule().failed();
        }
        add(&self.counters.miss_moved, 1);
        ReadMiss::Moved
    }

    /// Handles the end of a read: releases the memory that a longer read has reserved.
    pub(crate) fn end(&self, plan: &ReadPlan) {
        self.budget.end_wide(plan);
    }

    /// Puts the neighbours that a longer read has read into the RAM tier.
    pub(crate) fn take_around(&self, plan: &ReadPlan, bytes: &Bytes) {
        let stores = self.open.load();
        let Some(store) = stores.by_id(plan.store) else {
            return;
        };
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let found = may_be_record(rest) && at != plan.skip as usize;
            let taken = if found {
                self.take_one(store, plan, at, rest)
            } else {
                None
            };
            at += taken.unwrap_or(UNIT as usize);
        }
    }

    /// Puts the object of the record at the beginning of `record` into the RAM tier, if it is up to date and
    /// not in memory yet. Returns the length of the record on disk if the record is valid.
    fn take_one(
        &self,
        store: &StoreShared,
        plan: &ReadPlan,
        at: usize,
        record: &[u8],
    ) -> Option<usize> {
        let (segment, _) = store.space.locate(plan.spot)?;
        let offset = plan.at + at as u64 - store.space.geometry().segment_at(segment);
        let spot = store
            .space
            .spot(segment, u32::try_from(offset / UNIT).ok()?)?;
        let place = store.space.place(spot)?;
        let (head, layout) = parse_record(record, &place).ok()?;
        let length = Some(layout.disk_bytes());
        let floor = store.marks.purge_floor();
        let useful = head.kind == RecordKind::Object
            && head.expires > self.clock.wall()
            && rule!(
                "read around: what a store missed purges of is dead",
                head.purge_sequence >= floor,
                true
            );
        if !useful || !self.tables.leads_to(head.hash, spot) {
            return length;
        }
        let owned = Bytes::copy_from_slice(&record[..layout.body.end]);
        let held = good_size(owned.len());
        let mut object = Object::from_record(&head, &layout, &owned, held)?;
        object.brought = Brought(AtomicU32::new(u32::from(store.id.0) + 1));
        if rule!(
            "read around: what is purged is not brought along",
            self.purges.has_removed(&object),
            false
        ) {
            return length;
        }
        let mut shard = self.tables.shard(object.hash()).write();
        let known = shard.in_memory(object.hash()).is_some();
        let same_incarnation = store.space.place(spot) == Some(place);
        let present = rule!(
            "read around: the index still leads to what is brought along",
            same_incarnation && self.tables.leads_to(object.hash(), spot),
            true
        );
        if !known && present {
            let (taken, evicted) = shard.insert_ram(Arc::new(object));
            add(&self.counters.prefetched, u64::from(taken));
            add(&self.counters.ram_evictions, evicted);
        }
        length
    }

    /// Handles the first request for an object that a longer read fetched: informs the `ReadAround`
    /// rule, and counts a use of the object's record.
    #[cold]
    pub(crate) fn brought_hit(&self, object: &Object) {
        let store = object.brought.0.swap(0, Ordering::Relaxed);
        let id = store.checked_sub(1).and_then(|id| u16::try_from(id).ok());
        let Some(store) = id.and_then(|id| self.open.store(StoreId(id))) else {
            return;
        };
        add(&self.counters.prefetch_hits, 1);
        store.around.rule().hit();
        if let Some(entry) = self.tables.index().lookup(object.hash()).first() {
            self.tables.index().touch(object.hash(), entry.address);
        }
    }
}
