//! Reinsertion: before a segment (the *victim*) is overwritten, some of its records are written again. These
//! are records that were used after they were written. A budget limits their bytes. The most used records
//! come first. Of equally used records, the shortest come first.

use std::collections::HashMap;
use std::sync::Arc;

use super::io::{Io, Purpose};
use super::objects::{Objects, Written};
use crate::Object;
use crate::interface::add;
use crate::memory::good_size;
use crate::shared::{Item, StoreShared};
use foxy_base::{KeyHash, rule};
use foxy_disk::AlignedBuf;
use foxy_format::{Entry, EntryKind, UNIT, parse_record};
use foxy_index::Address;
use foxy_policy::RewriteBudget;

/// Maximum length of a read from the victim, in units.
const PART_MAX: u32 = (1 << 20) / UNIT as u32;
/// Maximum distance, in units, between two wanted records that one read covers. The units between the two
/// records are read as well, but not used.
const GAP_MAX: u32 = (64 << 10) / UNIT as u32;

/// The maximum number of bytes that may be reinserted from one victim. If all records were reinserted,
/// reuse would free no space.
fn bytes_max(store: &StoreShared) -> u64 {
    u64::from(store.space.geometry().segment_bytes) * 6 / 10
}

/// The work on one victim.
#[derive(Debug, Default)]
pub(super) struct Reinsertion {
    index: u32,
    /// The incarnation that the victim's segment begins next.
    sequence: u64,
    /// The chosen records that are still to be read, in order of place.
    chosen: Vec<Entry>,
    /// The chosen records that requests are reading: see [`Reinserter::held`].
    held: Vec<Entry>,
    /// The part that is being read: the chosen records in it, and its first unit in the segment.
    reading: Option<(Vec<Entry>, u32)>,
    /// The records that wait to be written again and are not yet committed.
    outstanding: Vec<(KeyHash, u64)>,
}

impl Reinsertion {
    /// Returns whether all chosen records have been read, or were in memory.
    pub(super) const fn is_read(&self) -> bool {
        self.chosen.is_empty() && self.reading.is_none()
    }

    /// Returns whether another record may be read. If records are read faster than they are written, they
    /// use up the memory for pending objects.
    fn may_go_on(&self, objects: &Objects) -> bool {
        self.outstanding.is_empty() || objects.has_room_for_reinsertion()
    }

    /// Gives up the chosen records that no reader needs, since writing waits for this segment.
    /// Returns their number.
    fn hurry(&mut self) -> u64 {
        let before = self.chosen.len();
        self.chosen.retain(|entry| self.held.contains(entry));
        (before - self.chosen.len()) as u64
    }
}

/// The records that are written again: their choice, their budget, and the entry that each of them
/// replaces.
#[derive(Debug)]
pub(super) struct Reinserter {
    store: Arc<StoreShared>,
    budget: RewriteBudget,
    /// The tickets of reinserted objects that wait, each with the entry that the object replaces.
    waiting: HashMap<u64, (KeyHash, Address)>,
    /// The items of reinserted objects that are not in the gatherer yet.
    items: Vec<Item>,
}

impl Reinserter {
    /// Makes a reinserter that may write `percent` bytes again for every 100 new bytes written.
    pub(super) fn new(store: Arc<StoreShared>, percent: u32) -> Self {
        Self {
            budget: RewriteBudget::new(percent, bytes_max(&store)),
            store,
            waiting: HashMap::new(),
            items: Vec::new(),
        }
    }

    /// Returns the entry that the record with this ticket replaces.
    pub(super) fn replaces(&self, ticket: u64) -> Option<(KeyHash, Address)> {
        self.waiting.get(&ticket).copied()
    }

    /// Notes that these records are in a cluster that is written now. The new records among them add to
    /// the budget.
    pub(super) fn earn(&mut self, records: &[Written]) {
        let waiting = &self.waiting;
        let new = records.iter().filter(|w| !waiting.contains_key(&w.ticket));
        self.budget.earn(new.map(|w| u64::from(w.bytes)).sum());
    }

    /// Takes the items for the gatherer, in order.
    pub(super) fn take_items(&mut self) -> impl Iterator<Item = Item> {
        self.items.drain(..)
    }

    /// Chooses the records of the victim that are worth writing again.
    pub(super) fn begin(
        &mut self,
        index: u32,
        sequence: u64,
        victim: &[Entry],
        objects: &Objects,
    ) -> Reinsertion {
        self.waiting
            .retain(|ticket, (hash, _)| objects.waits(*hash, *ticket));
        let held = self.held(index, victim, objects);
        let mut chosen = held.clone();
        let mut used: Vec<(u8, Entry)> = victim
            .iter()
            .filter(|e| e.is_record() && !chosen.contains(e))
            .filter_map(|entry| Some((self.uses(index, entry, objects)?, *entry)))
            .filter(|(uses, _)| *uses > 0)
            .collect();
        used.sort_by_key(|(uses, entry)| {
            (
                std::cmp::Reverse(*uses),
                entry.len_units,
                entry.offset_units,
            )
        });
        let mut budget = self.budget.bytes() / UNIT;
        for (_, entry) in used {
            if u64::from(entry.len_units) > budget {
                add(&self.store.counters.reinsert_over_budget, 1);
                continue;
            }
            budget -= u64::from(entry.len_units);
            chosen.push(entry);
        }
        if !self.store.takes_writes() {
            chosen.clear();
        }
        // The records are taken from the end of the Vec, so the record with the lowest offset must be last.
        chosen.sort_by_key(|entry| std::cmp::Reverse(entry.offset_units));
        Reinsertion {
            index,
            sequence,
            chosen,
            held,
            ..Reinsertion::default()
        }
    }

    /// Returns the records that readers still need. The budget does not limit them, since their bytes may
    /// exist nowhere else.
    fn held(&self, index: u32, victim: &[Entry], objects: &Objects) -> Vec<Entry> {
        let is_fragment = |e: &&Entry| e.kind == EntryKind::Fragment;
        if !victim.iter().any(|e| is_fragment(&e)) {
            return Vec::new();
        }
        let held = objects.held_fragments();
        let fragments = victim.iter().filter(is_fragment);
        fragments
            .filter(|e| held.contains(&e.hash) && self.uses(index, e, objects).is_some())
            .copied()
            .collect()
    }

    /// Returns the number of uses of a record since it was written, if the index still leads to it.
    fn uses(&self, index: u32, entry: &Entry, objects: &Objects) -> Option<u8> {
        let spot = self.store.space.spot(index, entry.offset_units)?;
        objects.uses(spot, entry.hash)
    }

    /// Makes one step. Returns true when everything is written again. If `hurry` is true, writing waits for
    /// the victim. Then the method returns true earlier: as soon as the records that readers need are in
    /// memory. Requests read these records from memory until the records are written.
    pub(super) fn step(
        &mut self,
        work: &mut Reinsertion,
        hurry: bool,
        io: &mut Io,
        objects: &Objects,
    ) -> bool {
        if hurry {
            add(&self.store.counters.reinsert_cut_short, work.hurry());
        }
        while work.reading.is_none()
            && !work.chosen.is_empty()
            && (hurry || work.may_go_on(objects))
        {
            if !self.reinsert_from_memory(work, objects) {
                self.read_part(work, io);
            }
        }
        work.outstanding
            .retain(|(hash, ticket)| objects.waits(*hash, *ticket));
        work.is_read() && (hurry || work.outstanding.is_empty())
    }

    /// Reinserts the next record without a read, if the RAM tier has the same version.
    fn reinsert_from_memory(&mut self, work: &mut Reinsertion, objects: &Objects) -> bool {
        let Some(entry) = work.chosen.last().copied() else {
            return false;
        };
        let Some(object) = objects.in_ram(entry.hash) else {
            return false;
        };
        work.chosen.pop();
        self.reinsert(work, &entry, object, objects);
        true
    }

    fn read_part(&self, work: &mut Reinsertion, io: &mut Io) {
        let Some(first) = work.chosen.pop() else {
            return;
        };
        let blocks = (self.store.space.block_bytes() / UNIT) as u32;
        let start = first.offset_units / blocks * blocks;
        let mut end = first.offset_units + first.len_units;
        let mut part = vec![first];
        while let Some(next) = work.chosen.pop_if(|n| {
            n.offset_units <= end + GAP_MAX && n.offset_units + n.len_units - start <= PART_MAX
        }) {
            end = end.max(next.offset_units + next.len_units);
            part.push(next);
        }
        let end = end
            .next_multiple_of(blocks)
            .min(self.store.space.geometry().segment_bytes / UNIT as u32);
        let at = self.store.space.geometry().segment_at(work.index) + u64::from(start) * UNIT;
        io.read(
            Purpose::VictimPart(work.sequence),
            at,
            (u64::from(end - start) * UNIT) as usize,
        );
        work.reading = Some((part, start));
    }

    /// Handles a part of the victim that was read.
    pub(super) fn part_done(
        &mut self,
        work: &mut Reinsertion,
        buf: Option<AlignedBuf>,
        objects: &Objects,
    ) {
        let Some((part, start)) = work.reading.take() else {
            return;
        };
        match buf {
            Some(buf) => self.reinsert_part(work, &(part, start), buf, objects),
            None => add(&self.store.counters.read_errors, 1),
        }
    }

    fn reinsert_part(
        &mut self,
        work: &mut Reinsertion,
        (part, start): &(Vec<Entry>, u32),
        buf: AlignedBuf,
        objects: &Objects,
    ) {
        let bytes = buf.into_bytes();
        for entry in part {
            let at = (u64::from(entry.offset_units - start) * UNIT) as usize;
            let len = entry.len_units as usize * UNIT as usize;
            let Some(record) = bytes.get(at..at + len) else {
                continue;
            };
            let place = self.store.space.spot(work.index, entry.offset_units);
            let place = place.and_then(|spot| self.store.space.place(spot));
            let Some(Ok((head, layout))) = place.map(|place| parse_record(record, &place)) else {
                add(&self.store.counters.damaged, 1);
                continue;
            };
            let right = rule!(
                "reinsert: the record is of the entry's hash",
                head.hash == entry.hash,
                true
            );
            let owned = bytes::Bytes::copy_from_slice(record);
            let object = Object::from_record(&head, &layout, &owned, good_size(owned.len()));
            if let Some(object) = object.filter(|_| right) {
                self.reinsert(work, entry, Arc::new(object), objects);
            }
        }
    }

    /// Sends a record of the victim to the disk again, if it is still the current record of its key.
    fn reinsert(
        &mut self,
        work: &mut Reinsertion,
        entry: &Entry,
        object: Arc<Object>,
        objects: &Objects,
    ) {
        let Some(spot) = self.store.space.spot(work.index, entry.offset_units) else {
            return;
        };
        let (group, bytes) = (object.group(), object.record_bytes() as u32);
        let held = work.held.contains(entry);
        let spend = |bytes| self.budget.spend(bytes);
        let waits = objects.wait_again(entry, spot, object, held, spend);
        let Some(ticket) = waits else { return };
        self.waiting.insert(ticket, (entry.hash, spot.address));
        work.outstanding.push((entry.hash, ticket));
        self.items.push(Item {
            hash: entry.hash,
            ticket,
            group,
            bytes,
        });
        add(&self.store.counters.reinserted, 1);
        add(&self.store.counters.reinserted_bytes, u64::from(bytes));
    }
}
