//! Foxy in miniature: memory before a store of segments that are reused in sequence.
//!
//! Rules, those of the production store: an object takes its body, its head and 80 bytes, in
//! units of 16; above one fragment it lies in pieces. What was replaced stays in its segment until
//! that is reused. When the open segment is half full the oldest is emptied: records that were
//! used since they were written, or are in memory, are written again, the most used and smallest
//! first, within a fifth of what was newly written. Lengths of segments and the memory tier's
//! share come from the engine itself; what is left out is time: nothing expires or waits.

use std::collections::{HashMap, VecDeque};

use foxy_policy::{CachePolicy, RewriteBudget, S3Fifo};

use super::sample::Sampled;
use crate::{model::Drive, model::hash::BuildIdHasher, systems::Store};

/// Bytes of a usual record besides body and head, and the unit of its length (decision 0030).
const RECORD: u64 = 80;
const UNIT: u64 = 16;
/// Bytes of an entry in a cluster's table.
const ENTRY: u64 = 24;
/// What the memory tier keeps of an object besides its bytes.
const CHARGE: u64 = 160;
/// Longest piece of a large object.
const FRAGMENT: u64 = 250 << 10;
/// Of a segment's room, what clusters' ends leave unused (measured: 0.03 of small segments).
const ROOM: f64 = 0.97;
/// As `StoreOptions::reinsert_percent`.
const REINSERT: u32 = 20;

/// Lengths of everything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    segments: usize,
    segment: u64,
    ram: u64,
    head: u64,
}

/// Of the setting `memory`, what the process leaves to the engine, bytes.
#[must_use]
pub const fn engine_share(memory: u64) -> u64 {
    const PROCESS: u64 = 72 << 20;
    let process = if memory / 2 < PROCESS {
        memory / 2
    } else {
        PROCESS
    };
    let rest = memory - process;
    rest - rest / 8
}

/// Buffers of a store's writer, which come out of the engine's memory when it runs.
const WRITER: u64 = 4 << 20;

impl Plan {
    /// As the engine divides a disk of `size` bytes and a budget of `memory` bytes. With no memory,
    /// or if the disk is too small for a store, the memory tier is left out.
    pub(super) fn of(size: u64, memory: u64, head: u64) -> Self {
        let engine = engine_share(memory).max(16 << 20);
        let opened = Drive::named("nvme")
            .ok_or_else(String::new)
            .and_then(|drive| Store::new(drive, engine, size, 1));
        let (segments, segment, ram) = opened.map_or((8, size / 8, 0), |store| store.geometry());
        let ram = ram.saturating_sub(WRITER).max(engine / 16);
        Self {
            segments: segments as usize,
            segment: (segment as f64 * ROOM) as u64,
            ram: if memory == 0 { 0 } else { ram },
            head,
        }
    }

    /// For a sample of this share of the objects.
    pub(super) fn scaled(self, rate: f64) -> Self {
        let scaled = |bytes: u64| ((bytes as f64 * rate) as u64).max(1);
        Self {
            segment: scaled(self.segment),
            ram: if self.ram == 0 { 0 } else { scaled(self.ram) },
            ..self
        }
    }

    /// Bytes on disk.
    fn record(&self, size: u64) -> u64 {
        let pieces = size.div_ceil(FRAGMENT).max(1);
        (size + self.head + pieces * (RECORD + UNIT / 2)).next_multiple_of(UNIT) + pieces * ENTRY
    }
}

type Stamp = (u32, u32);

/// Where the newest version of an object is.
#[derive(Clone, Copy)]
struct Place {
    stamp: Stamp,
    ticket: u64,
    uses: u8,
}

/// A record, or a piece of one: only the first piece has the ticket that the index knows.
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

/// The cache.
pub(super) struct StoreCache {
    plan: Plan,
    refused: u64,
    ram: Option<S3Fifo<u64, Stamp>>,
    index: HashMap<u64, Place, BuildIdHasher>,
    sealed: VecDeque<Segment>,
    open: Segment,
    prepared: bool,
    budget: RewriteBudget,
    tickets: u64,
}

impl StoreCache {
    /// Empty; one of `refused` new objects is not stored, 0: all are.
    pub(super) fn new(plan: Plan, refused: u64) -> Self {
        Self {
            ram: (plan.ram > 0).then(|| S3Fifo::new(plan.ram)),
            index: HashMap::default(),
            sealed: VecDeque::new(),
            open: Segment::default(),
            prepared: false,
            budget: RewriteBudget::new(REINSERT, plan.segment * 6 / 10),
            tickets: 0,
            plan,
            refused,
        }
    }

    /// True if it was answered.
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
        self.index.remove(&object);
        self.tickets += 1;
        self.remember(object, stamp);
        if self.refused == 0 || !self.tickets.is_multiple_of(self.refused) {
            let bytes = self.plan.record(size);
            self.budget.earn(bytes);
            self.write(object, stamp, bytes);
        }
        false
    }

    fn remember(&mut self, object: u64, stamp: Stamp) {
        if let Some(ram) = &mut self.ram {
            let size = u64::from(stamp.0) + self.plan.head + CHARGE;
            let _ = ram.insert(object, stamp, size, &mut Vec::new());
        }
    }

    /// A record goes to the open segment, a large one in pieces.
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
        self.open.records.push(record);
        if self.open.used > self.plan.segment / 2 && !self.prepared {
            self.prepared = true;
            // The open one and the one that is prepared are the other two.
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
    use super::*;

    const PLAN: Plan = Plan {
        segments: 4,
        segment: 10_000,
        ram: 0,
        head: 0,
    };

    fn ask(cache: &mut StoreCache, object: u64, version: u32) -> bool {
        cache.request(&Sampled::of(object, 880, version))
    }

    #[test]
    fn first_in_first_out_but_what_was_used_is_written_again() {
        let mut cache = StoreCache::new(PLAN, 0);
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
        let mut cache = StoreCache::new(plan, 1);
        assert!(!ask(&mut cache, 1, 0) && ask(&mut cache, 1, 0));
        assert!((2..30).all(|object| !ask(&mut cache, object, 0)));
        assert!(!ask(&mut cache, 2, 0) && cache.index.is_empty());
    }

    #[test]
    fn a_large_object_takes_its_bytes_in_pieces() {
        let mut cache = StoreCache::new(
            Plan {
                segment: 400_000,
                ..PLAN
            },
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

    #[test]
    fn lengths_are_the_engines() {
        let plan = Plan::of(100_000_000, 64 << 20, 300);
        assert!(
            plan.segments > 200 && (12 << 20..20 << 20).contains(&plan.ram),
            "{plan:?}"
        );
        let bytes = plan.segments as u64 * plan.segment;
        assert!((90_000_000..100_000_000).contains(&bytes), "{bytes}");
        assert_eq!(Plan::of(100_000_000, 0, 300).ram, 0);
        assert_eq!(Plan::of(1_000, 0, 300).segments, 8, "too small for a store");
    }
}
