//! The end of the reads that lookups request: the bytes become objects, or the read fails.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use foxy_base::{KeyHash, rule};
use foxy_disk::{AlignedBuf, Queue};
use foxy_format::{RecordKind, parse_record};

use super::Reads;
use super::queue::OrderedQueue;
use crate::interface::{Spot, add};
use crate::memory::{aligned_size, good_size, is_fragment_of};
use crate::shared::StoreShared;
use crate::{Object, ReadMiss, ReadPlan, StoreId};

impl Reads {
    /// Opens a queue for the reads of one thread from a store's disk. The queue sends the reads in an order
    /// that suits the device. The caller's tokens must be below 2^63. See also
    /// [`foxy_disk::Disk::open_queue`].
    ///
    /// # Errors
    /// An error if there is no such store, or if neither an `io_uring` nor threads could be created.
    pub fn open_reads(&self, store: StoreId, depth: u32) -> io::Result<Box<dyn Queue>> {
        let store = self.open.store(store).ok_or(io::ErrorKind::NotFound)?;
        let inner = store.disk.open_queue(depth)?;
        let queue = OrderedQueue::new(inner, store, Arc::clone(&self.clock));
        Ok(Box::new(queue))
    }

    /// Returns the read to carry out for `plan`. It is the same read, or a longer read that includes the
    /// neighbours of the record if this saves other reads. Pass every returned plan to `finish_read`,
    /// `finish_fragment`, `fail_read` or `late_read` in the end: a longer read reserves memory until then.
    #[must_use]
    pub fn widen(&self, plan: &ReadPlan) -> ReadPlan {
        self.neighbours.widen(plan)
    }

    /// Checks the bytes that were read (place, incarnation, checksums, key), and takes the object into the
    /// RAM tier. If a newer object of the key was stored meanwhile, returns the newer object instead.
    ///
    /// # Errors
    /// An error means that the read counts as a miss. If the record is damaged, its entry is dropped. If the
    /// record belongs to another key, the entry stays.
    pub fn finish_read(
        &self,
        plan: &ReadPlan,
        key: &[u8],
        buf: AlignedBuf,
    ) -> Result<Arc<Object>, ReadMiss> {
        self.finish_read_if(plan, key, buf, |_| true)
    }

    /// Finishes a read like [`Reads::finish_read`], but the RAM tier takes the object only if `keep`
    /// returns true.
    ///
    /// # Errors
    /// As for [`Reads::finish_read`].
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

    /// Finishes the read of fragment `n` of `head` like [`Reads::finish_read`].
    ///
    /// # Errors
    /// As for [`Reads::finish_read`].
    pub fn finish_fragment(
        &self,
        plan: &ReadPlan,
        head: &Object,
        n: u32,
        buf: AlignedBuf,
    ) -> Result<Arc<Object>, ReadMiss> {
        self.finish_fragment_if(plan, head, n, buf, |_| true)
    }

    /// Finishes a read like [`Reads::finish_fragment`], but the RAM tier takes the fragment only if
    /// `keep` returns true.
    ///
    /// # Errors
    /// As for [`Reads::finish_fragment`].
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
                return Err(ReadMiss::CollidingKey);
            }
            rule!(
                "read: what a store missed purges of is dead",
                self.refuse_dead(plan, &object),
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
            self.neighbours.take_around(plan, &bytes);
            self.neighbours.end(plan);
        }
        result
    }

    /// Returns the object in the bytes that were read, if its record is complete and at the expected
    /// place.
    fn check_record(&self, plan: &ReadPlan, buf: AlignedBuf) -> Result<Object, ReadMiss> {
        let capacity = buf.capacity();
        self.check_bytes(plan, &buf.into_bytes(), capacity)
    }

    fn check_bytes(
        &self,
        plan: &ReadPlan,
        bytes: &Bytes,
        capacity: usize,
    ) -> Result<Object, ReadMiss> {
        let stores = self.open.load();
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

    /// Drops the entry of a damaged record. If the index no longer has the entry, the segment was reused or
    /// the object was superseded during the read. Then the record does not count as damaged.
    fn clear_damaged(&self, plan: &ReadPlan, store: &StoreShared) -> ReadMiss {
        if !self.catalogue.drop_entry(plan, store) {
            return ReadMiss::Superseded;
        }
        if let Some((segment, _)) = store.space.locate(plan.spot) {
            store.read_damage(segment, plan.at);
        }
        ReadMiss::Damaged
    }

    /// Refuses an object if its store missed purges that were made after the object was fetched. A store
    /// misses purges if its journal was damaged or if the store was missing in an earlier run.
    fn refuse_dead(&self, plan: &ReadPlan, object: &Object) -> Result<(), ReadMiss> {
        let stores = self.open.load();
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
            return Err(ReadMiss::CollidingKey);
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
            Err(ReadMiss::CollidingKey) => &counters.miss_twin,
            Err(ReadMiss::Superseded) => &counters.miss_superseded,
            Err(ReadMiss::Moved) => &counters.miss_moved,
            Err(ReadMiss::Damaged) => &counters.miss_damaged,
            Err(ReadMiss::Device) => &counters.miss_device,
        };
        add(counter, 1);
        if result.is_ok()
            && let Some(store) = self.open.load().by_id(plan.store)
        {
            store.condition.read_well();
        }
    }

    /// Reports that the device could not carry out the read. If it was a longer read, the entry stays, so
    /// that another lookup can read the object alone. Otherwise the entry is dropped, and a store whose reads
    /// fail repeatedly is not used any more. The request continues with the returned miss.
    pub fn fail_read(&self, plan: &ReadPlan, error: &io::Error) -> ReadMiss {
        if plan.wide {
            self.neighbours.end(plan);
            return self.neighbours.failed(plan);
        }
        add(&self.counters.miss_device, 1);
        let Some(store) = self.open.store(plan.store) else {
            return ReadMiss::Device;
        };
        self.catalogue.drop_entry(plan, &store);
        let segment = store.space.locate(plan.spot).map(|(segment, _)| segment);
        store.read_failed(segment, plan.at, error);
        ReadMiss::Device
    }

    /// Reports that the caller does not wait for this read any longer, though the device has not
    /// completed it. The store counts as slow and is not used for a while. The request continues with a
    /// miss. The caller must call [`Reads::late_read`] when the read ends.
    pub fn give_up_read(&self, plan: &ReadPlan) {
        add(&self.counters.miss_device, 1);
        if let Some(store) = self.open.store(plan.store) {
            add(&store.counters.reads_given_up, 1);
            let now = self.clock.mono();
            store
                .condition
                .given_up(&store.disk.describe(), plan.at, now);
        }
    }

    /// Reports that a read has ended after its caller gave it up.
    pub fn late_read(&self, plan: &ReadPlan) {
        self.neighbours.end(plan);
        if let Some(store) = self.open.store(plan.store) {
            store.condition.arrived(self.clock.mono());
        }
    }

    /// The number of reads that lookups requested so far.
    pub(crate) fn planned(&self) -> u64 {
        self.counters.disk_plans.load(Ordering::Relaxed)
    }

    /// Reads and checks a single record again, because a scrub found it damaged. Returns true if the record
    /// is still bad; then its entry is dropped, unless it is gone already.
    pub(crate) fn recheck(&self, store: &StoreShared, hash: KeyHash, spot: Spot) -> bool {
        let entry = self.tables.entry_at(hash, spot);
        let Some(plan) = entry.and_then(|entry| store.plan(hash, &entry)) else {
            return false;
        };
        match read(store, &plan) {
            Ok(buf) => self.check_record(&plan, buf).is_err(),
            Err(error) => {
                self.fail_read(&plan, &error);
                true
            }
        }
    }
}

fn read(store: &StoreShared, plan: &ReadPlan) -> io::Result<AlignedBuf> {
    let mut buf = AlignedBuf::new(plan.len as usize);
    buf.set_len(plan.len as usize);
    store.disk.read_at(plan.at, &mut buf)?;
    Ok(buf)
}

/// Copies the record if its buffer would keep much more memory allocated than the record needs.
fn compact(record: &Bytes, len: usize, capacity: usize) -> (Bytes, usize) {
    let (copied, kept) = (good_size(len), aligned_size(capacity));
    if copied * 5 / 4 < kept {
        (Bytes::copy_from_slice(&record[..len]), copied)
    } else {
        (record.clone(), kept)
    }
}
