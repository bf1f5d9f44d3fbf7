//! A miniature of Foxy: memory before a store of segments that are reused in sequence.
//!
//! The rules are those of the production store. An object takes its body, its head, about 80 bytes for its
//! record, and an entry in a cluster's table (`Plan::record`). An object larger than one fragment is stored
//! in pieces. A replaced object stays in its segment until the segment is reused. When the open segment is
//! half full, the oldest segment is emptied. Some of its records are written again: records that were used
//! since they were written, and records whose objects are in memory. The most used and smallest records come
//! first, up to a fifth of the newly written bytes. The lengths of segments and the size of the memory tier
//! are those that the engine itself chooses. Time is not simulated: nothing expires or waits.

use std::collections::{HashMap, VecDeque};

use foxy_policy::{CachePolicy, MemoryTier, RewriteBudget};

use super::admission_filter::{AdmissionFilter, Rule};
use super::plan::{FRAGMENT, Plan};
use super::sample::Sampled;
use crate::model::hash::BuildIdHasher;

/// Bytes of an object in the memory tier besides body and head.
const CHARGE: u64 = 160;
/// Same value as `StoreOptions::reinsert_percent`.
const REINSERT: u32 = 20;

type Stamp = (u32, u32);

/// Position of the newest version of an object.
#[derive(Clone, Copy)]
struct Place {
    stamp: Stamp,
    ticket: u64,
    uses: u8,
}

/// A record or a piece of a record. It is valid if the index contains the same `ticket` for the object.
#[derive(Clone, Copy)]
struct Record {
    object: u64,
    ticket: u64,
    bytes: u64,
}

#[derive(Default)]
struct Segment {
    used: u64,
    records: Vec<Record>,
}

/// The miniature cache.
pub(super) struct StoreCache {
    plan: Plan,
    refused: u64,
    filter: Rule,
    ram: Option<MemoryTier<u64, Stamp>>,
    index: HashMap<u64, Place, BuildIdHasher>,
    sealed: VecDeque<Segment>,
    open: Segment,
    prepared: bool,
    budget: RewriteBudget,
    tickets: u64,
    written: u64,
}

impl StoreCache {
    /// Creates an empty cache. Among the objects that the filter admits, one in `refused` is not stored; 0:
    /// all are stored.
    pub(super) fn new(plan: Plan, filter: AdmissionFilter, refused: u64) -> Self {
        Self {
            ram: (plan.ram > 0).then(|| MemoryTier::new(plan.ram)),
            index: HashMap::default(),
            sealed: VecDeque::new(),
            open: Segment::default(),
            prepared: false,
            budget: RewriteBudget::new(REINSERT, plan.segment * 6 / 10),
            tickets: 0,
            written: 0,
            filter: Rule::new(filter, plan.uses),
            plan,
            refused,
        }
    }

    /// Bytes written to the disk so far, including records that were written again.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Handles a request; true if it was answered from the cache.
    pub(super) fn request(&mut self, request: &Sampled) -> bool {
        let (object, size) = (request.object, u64::from(request.size));
        let stamp = (request.size, request.version);
        if let Some(ram) = &mut self.ram
            && ram.get(&object) == Some(&stamp)
        {
            return true;
        }
        if let Some(place) = self.index.get_mut(&object)
            && place.stamp == stamp
        {
            place.uses = (place.uses + 1).min(3);
            self.remember(object, stamp);
            return true;
        }
        if self.replace(object) {
            self.filter.used(object);
        }
        let bytes = self.plan.record(size);
        let admitted = self.filter.admits(object, bytes);
        self.remember(object, stamp);
        self.tickets += u64::from(admitted);
        if admitted && (self.refused == 0 || !self.tickets.is_multiple_of(self.refused)) {
            self.budget.earn(bytes);
            self.write(object, stamp, bytes);
        }
        false
    }

    /// Removes the stored version. Returns true if there was one.
    fn replace(&mut self, object: u64) -> bool {
        let in_ram = self.ram.as_mut().and_then(|ram| ram.remove(&object));
        self.index.remove(&object).is_some() || in_ram.is_some()
    }

    fn remember(&mut self, object: u64, stamp: Stamp) {
        if let Some(ram) = &mut self.ram {
            let size = u64::from(stamp.0) + self.plan.head + CHARGE;
            let _ = ram.insert(object, stamp, size, &mut Vec::new());
        }
    }

    /// Writes a record to the open segment; a large record is written in pieces.
    fn write(&mut self, object: u64, stamp: Stamp, bytes: u64) {
        self.tickets += 1;
        let (ticket, uses) = (self.tickets, 0);
        let place = Place {
            stamp,
            ticket,
            uses,
        };
        self.index.insert(object, place);
        let mut left = bytes;
        while left > 0 {
            let bytes = left.min(FRAGMENT);
            left -= bytes;
            self.append(Record {
                object,
                ticket,
                bytes,
            });
        }
    }

    fn append(&mut self, record: Record) {
        if self.open.used > 0 && self.open.used + record.bytes > self.plan.segment {
            self.sealed.push_back(std::mem::take(&mut self.open));
            self.prepared = false;
        }
        self.open.used += record.bytes;
        self.written += record.bytes;
        self.open.records.push(record);
        if self.open.used > self.plan.segment / 2 && !self.prepared {
            self.prepared = true;
            // The number 2 counts the open segment and the prepared segment.
            while self.sealed.len() + 2 > self.plan.segments.max(3) {
                self.empty_oldest();
            }
        }
    }

    fn empty_oldest(&mut self) {
        let Some(victim) = self.sealed.pop_front() else {
            return;
        };
        let mut used = Vec::new();
        for record in victim.records {
            let Some(place) = self.index.get(&record.object).copied() else {
                continue;
            };
            if place.ticket != record.ticket {
                continue;
            }
            self.index.remove(&record.object);
            let in_ram = self.ram.as_ref().and_then(|r| r.peek(&record.object));
            let uses = place.uses.max(u8::from(in_ram == Some(&place.stamp)));
            if uses > 0 {
                used.push((uses, record, place));
            }
        }
        used.sort_by_key(|(uses, record, _)| (std::cmp::Reverse(*uses), record.bytes));
        for (_, record, place) in used {
            let bytes = self.plan.record(u64::from(place.stamp.0));
            if self.budget.spend(bytes) {
                self.write(record.object, place.stamp, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use foxy_policy::AdmissionRule;

    use super::*;

    const PLAN: Plan = Plan {
        segments: 4,
        segment: 10_000,
        ram: 0,
        head: 0,
        uses: None,
    };

    fn ask(cache: &mut StoreCache, object: u64, version: u32) -> bool {
        cache.request(&Sampled::of(object, 880, version))
    }

    #[test]
    fn first_in_first_out_but_what_was_used_is_written_again() {
        let mut cache = StoreCache::new(PLAN, AdmissionFilter::ADMIT_ALL, 0);
        for object in 0..10 {
            assert!(!ask(&mut cache, object, 0));
        }
        assert!(
            ask(&mut cache, 3, 0) && !ask(&mut cache, 4, 1),
            "a newer version"
        );
        for object in 100..136 {
            assert!(!ask(&mut cache, object, 0));
        }
        assert!(ask(&mut cache, 3, 0), "used, so written again");
        assert!(!ask(&mut cache, 5, 0), "not used, so gone");
    }

    #[test]
    fn memory_answers_and_refused_objects_are_not_on_disk() {
        let plan = Plan { ram: 1_100, ..PLAN };
        let mut cache = StoreCache::new(plan, AdmissionFilter::ADMIT_ALL, 1);
        assert!(!ask(&mut cache, 1, 0) && ask(&mut cache, 1, 0));
        assert!((2..30).all(|object| !ask(&mut cache, object, 0)));
        assert!(!ask(&mut cache, 2, 0) && cache.index.is_empty());
    }

    #[test]
    fn a_gate_lets_in_what_its_rule_says_and_memory_takes_the_rest() {
        let asked = |filter, uses: &[(u64, u32)]| {
            let mut cache = StoreCache::new(PLAN, filter, 0);
            let hits = uses.iter().map(|(o, v)| ask(&mut cache, *o, *v));
            (hits.collect::<Vec<_>>(), cache.written())
        };
        let record = PLAN.record(880);
        let uses = [(1, 0), (2, 0), (1, 0), (1, 0), (2, 0), (1, 1), (1, 1)];
        let (hits, written) = asked(AdmissionFilter::ADMIT_ALL, &uses);
        assert_eq!(hits, [false, false, true, true, true, false, true]);
        assert_eq!(written, 3 * record);
        // The disk admits an object only at its second use. If a stored object is replaced by a newer
        // version, that version counts as used before.
        let (hits, written) = asked(AdmissionFilter::Rule(AdmissionRule::SecondUse), &uses);
        assert_eq!(hits, [false, false, false, true, false, false, true]);
        assert_eq!(written, 3 * record);
        let (hits, written) = asked(AdmissionFilter::Rule(AdmissionRule::Frequency), &uses);
        assert_eq!(hits, [false, false, false, false, false, false, true]);
        assert_eq!(written, 2 * record);
        assert_eq!(asked(AdmissionFilter::MaxSize(record - 1), &uses).1, 0);
        assert_eq!(
            asked(AdmissionFilter::MaxSize(record), &uses),
            asked(AdmissionFilter::ADMIT_ALL, &uses)
        );
        let plan = Plan { ram: 5_000, ..PLAN };
        let mut cache = StoreCache::new(plan, AdmissionFilter::Rule(AdmissionRule::SecondUse), 0);
        assert!(!ask(&mut cache, 1, 0) && ask(&mut cache, 1, 0), "by memory");
        assert_eq!(cache.written(), 0);
    }

    #[test]
    fn a_large_object_takes_its_bytes_in_pieces() {
        let mut cache = StoreCache::new(
            Plan {
                segment: 400_000,
                ..PLAN
            },
            AdmissionFilter::ADMIT_ALL,
            0,
        );
        assert!(!cache.request(&Sampled::of(1, 900_000, 0)));
        assert!(cache.request(&Sampled::of(1, 900_000, 0)));
        assert!(!cache.request(&Sampled::of(2, 900_000, 0)));
        assert!(
            !cache.request(&Sampled::of(1, 900_000, 0)),
            "the first is gone"
        );
    }
}
