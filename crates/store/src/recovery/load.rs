//! Loading: entries of all segments into the index, newest first, leaving out what was removed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_base::{KeyHash, MonoTime};
use foxy_disk::{AlignedBuf, Disk};
use foxy_format::{
    Entry, EntryKind, Geometry, LogPosition, Removed, SLOT_HEADER_BYTES, SegmentState, SlotHeader,
    UNIT, decode_slot_entries,
};
use foxy_index::Insert;

use super::scan::{Scan, scan_segment};
use crate::Engine;
use crate::removals::Removal;
use crate::shared::{Gone, StoreShared};
use crate::stats::add;
use crate::writer::collect_voids;

/// Entries whose places in the index are asked for at once: more than a core can have under way
/// (10 to 16 lines), few enough to stay in its first cache.
const LOAD_AHEAD: usize = 32;

/// A segment to load.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) index: u32,
    pub(crate) sequence: u64,
    pub(crate) used_units: u32,
    /// Its slot says that it is open.
    pub(crate) open: bool,
    /// Its slot, unless its clusters had to tell.
    header: Option<SlotHeader>,
    /// What its clusters told.
    pub(crate) entries: Vec<Entry>,
}

impl Part {
    pub(crate) const fn sealed(index: u32, header: SlotHeader) -> Self {
        Self {
            index,
            sequence: header.sequence,
            used_units: header.used_units,
            open: false,
            header: Some(header),
            entries: Vec::new(),
        }
    }
    pub(crate) fn scanned(index: u32, scan: Scan, open: bool) -> Self {
        Self {
            index,
            sequence: scan.sequence,
            used_units: scan.end_units,
            open,
            header: None,
            entries: scan.entries,
        }
    }
    /// Marked open, and nothing in it.
    pub(crate) const fn is_unused(&self) -> bool {
        self.open && self.used_units == 0
    }
    /// Its slot does not tell what is in it.
    pub(crate) const fn needs_slot(&self) -> bool {
        self.header.is_none()
    }
    /// Reads its entries now; `None` if that fails.
    pub(crate) fn make_scanned(&mut self, store: &StoreShared) -> Option<()> {
        if let Some(header) = self.header {
            let mut slot = vec![0; slot_len(&store.geometry, &header)];
            let read = store
                .disk
                .read_at(store.geometry.slot_at(self.index), &mut slot);
            let entries = read
                .ok()
                .and_then(|()| sealed_entries(store, &header, &slot));
            self.entries = match entries {
                Some(entries) => entries,
                None => scan_segment(store, self.index, Some(self.sequence))?.entries,
            };
            self.header = None;
        }
        Some(())
    }
}

/// Bytes of a slot that are used.
fn slot_len(geometry: &Geometry, header: &SlotHeader) -> usize {
    let summary = SLOT_HEADER_BYTES + header.entries as usize * foxy_format::ENTRY_BYTES;
    summary.min(geometry.slot_bytes as usize)
}

/// The entries of a segment whose slot was read; what the slot has no room for is read here.
/// `None` if that fails, or if they are damaged.
pub(crate) fn summary_entries(
    disk: &dyn Disk,
    geometry: &Geometry,
    header: &SlotHeader,
    slot: &[u8],
) -> Option<Vec<Entry>> {
    let entries = header.entries as usize;
    let spill = geometry.spill_bytes(entries);
    if spill == 0 {
        return decode_slot_entries(header, slot, geometry.segment_bytes).ok();
    }
    let at = geometry.spill_at(header.segment, entries)?;
    let first = geometry.slot_bytes as usize;
    let mut summary = slot.get(..first)?.to_vec();
    summary.resize(first + spill as usize, 0);
    disk.read_at(at, &mut summary[first..]).ok()?;
    decode_slot_entries(header, &summary, geometry.segment_bytes).ok()
}

/// The entries in a slot; `None` if they overflowed it or are damaged.
fn sealed_entries(store: &StoreShared, header: &SlotHeader, slot: &[u8]) -> Option<Vec<Entry>> {
    if header.state != SegmentState::Sealed {
        return None;
    }
    let entries = summary_entries(&*store.disk, &store.geometry, header, slot);
    let counters = &store.counters;
    add(
        &counters.load_bytes,
        store.geometry.spill_bytes(header.entries as usize),
    );
    add(
        if entries.is_some() {
            &counters.load_slots
        } else {
            &counters.damaged
        },
        1,
    );
    entries
}

/// The segments still to be loaded.
#[derive(Debug)]
pub(crate) struct Loader {
    store: Arc<StoreShared>,
    floor: LogPosition,
    began: Option<MonoTime>,
    /// Newest first.
    parts: VecDeque<Part>,
    /// Slots being read at once.
    at_once: usize,
    /// Sequences asked for and not yet answered.
    asked: HashSet<u64>,
    /// Slots read before their turn.
    slots: BTreeMap<u64, Option<AlignedBuf>>,
    /// Places removed, by life.
    voids: HashMap<u64, Vec<u32>>,
    /// Keys that the removal log names: their records before this place are gone.
    keys: HashMap<KeyHash, LogPosition>,
    /// The floor that the superblock shall have when all that was missed is void in the log.
    restore: Option<LogPosition>,
}

impl Loader {
    pub(crate) fn new(store: Arc<StoreShared>, floor: LogPosition, at_once: usize) -> Self {
        Self {
            store,
            floor,
            began: None,
            parts: VecDeque::new(),
            at_once: at_once.max(1),
            asked: HashSet::new(),
            slots: BTreeMap::new(),
            voids: HashMap::new(),
            keys: HashMap::new(),
            restore: None,
        }
    }

    /// Everything before `floor` is void.
    pub(crate) const fn set_floor(&mut self, floor: LogPosition) {
        self.floor = floor;
    }

    /// The store was away: it counts from `floor` on again, but for what the gone set names.
    pub(crate) const fn come_back(&mut self, floor: LogPosition) {
        self.floor = floor;
        self.restore = Some(floor);
    }

    /// Memory of what was read ahead, of tables and of removed keys.
    pub(crate) fn memory_bytes(&self) -> usize {
        let entries: usize = self.parts.iter().map(|p| p.entries.capacity()).sum();
        let ahead = (self.slots.len() + self.asked.len()) * self.store.geometry.slot_bytes as usize;
        let voids: usize = self.voids.values().map(|v| v.capacity() * 4 + 64).sum();
        let gone = self
            .store
            .gone
            .lock()
            .as_ref()
            .map_or(0, Gone::memory_bytes);
        entries * foxy_format::ENTRY_BYTES + ahead + voids + gone
    }

    /// Adds a segment older than those before it.
    pub(crate) fn add(&mut self, part: Part) {
        self.parts.push_back(part);
    }

    /// Takes in what the removal log of the run before says.
    pub(crate) fn recall(&mut self) -> std::io::Result<()> {
        let (voids, keys) = (&mut self.voids, &mut self.keys);
        self.store.recall_removals(|removed| match removed {
            Removed::Nothing => {}
            Removed::Place(at) => {
                voids
                    .entry(at.sequence())
                    .or_default()
                    .push(at.offset_units());
            }
            Removed::Key(hash, before) => {
                let place = keys.entry(hash).or_default();
                *place = before.max(*place);
            }
        })
    }

    /// Loads the newest segments up to the first that has a summary to read.
    pub(crate) fn load_scanned(&mut self, engine: &Engine) {
        while let Some(part) = self.parts.pop_front_if(|p| p.header.is_none()) {
            self.load(engine, &part, &part.entries);
        }
    }

    /// Slots to read next: sequence, offset and length. Lengths are whole blocks.
    pub(crate) fn wanted(&mut self) -> Vec<(u64, u64, usize)> {
        let mut wanted = Vec::new();
        for part in self.parts.iter().take(self.at_once) {
            let Some(header) = part.header else { continue };
            if self.slots.contains_key(&part.sequence) || !self.asked.insert(part.sequence) {
                continue;
            }
            let block = self.store.block_bytes as usize;
            let len = slot_len(&self.store.geometry, &header)
                .next_multiple_of(block)
                .min(self.store.geometry.slot_bytes as usize);
            wanted.push((part.sequence, self.store.geometry.slot_at(part.index), len));
        }
        wanted
    }

    /// A slot was read (or not).
    pub(crate) fn slot(&mut self, sequence: u64, slot: Option<AlignedBuf>) {
        self.asked.remove(&sequence);
        add(
            &self.store.counters.load_bytes,
            slot.as_ref().map_or(0, |s| s.len() as u64),
        );
        self.slots.insert(sequence, slot);
    }

    /// Loads what has been read, in order; true when everything is loaded.
    pub(crate) fn step(&mut self, engine: &Engine) -> bool {
        let mut budget = self.at_once;
        while budget > 0
            && let Some(part) = self.parts.front()
        {
            let entries = match part.header {
                None => None,
                Some(header) => {
                    let Some(slot) = self.slots.remove(&part.sequence) else {
                        return false;
                    };
                    Some(self.entries(part, &header, slot))
                }
            };
            let Some(part) = self.parts.pop_front() else {
                break;
            };
            self.load(engine, &part, entries.as_ref().unwrap_or(&part.entries));
            budget -= 1;
            if self.store.gone.lock().as_ref().is_none_or(|gone| gone.full) {
                self.give_up();
            }
        }
        self.parts.is_empty()
    }

    fn entries(&self, part: &Part, header: &SlotHeader, slot: Option<AlignedBuf>) -> Vec<Entry> {
        let entries = slot.and_then(|slot| sealed_entries(&self.store, header, &slot));
        entries.unwrap_or_else(|| {
            let scan = scan_segment(&self.store, part.index, Some(part.sequence));
            scan.map(|s| s.entries).unwrap_or_default()
        })
    }

    /// Too many removals to remember: what is older cannot be told from what they removed. Their
    /// removals are in the log, so the next start has all of it.
    fn give_up(&mut self) {
        let keys = self.keys.drain().map(|(hash, _)| Removal::Key(hash));
        self.store.remove_all(&keys.collect::<Vec<_>>());
        self.restore = None;
        add(&self.store.counters.load_given_up, self.parts.len() as u64);
        self.parts.clear();
    }

    /// Takes in the entries of one segment, later ones first.
    fn load(&mut self, engine: &Engine, part: &Part, entries: &[Entry]) {
        self.began.get_or_insert_with(|| engine.clock.mono());
        collect_voids(entries, &mut self.voids);
        let voids: HashSet<u32> = self
            .voids
            .remove(&part.sequence)
            .unwrap_or_default()
            .into_iter()
            .collect();
        let mut counts = (0, 0);
        let records = entries.iter().filter(|e| e.is_record()).count();
        engine.index.reserve(records as u64);
        for batch in entries.rchunks(LOAD_AHEAD) {
            for entry in batch {
                engine.index.warm(entry.hash);
            }
            for entry in batch.iter().rev() {
                self.load_entry(engine, part, entry, &voids, &mut counts);
            }
        }
        let (loaded, skipped) = counts;
        add(&self.store.counters.loaded, loaded);
        add(&self.store.counters.load_skipped, skipped);
    }

    /// Takes in one entry; counts whether it was loaded or left out.
    fn load_entry(
        &mut self,
        engine: &Engine,
        part: &Part,
        entry: &Entry,
        voids: &HashSet<u32>,
        (loaded, skipped): &mut (u64, u64),
    ) {
        match entry.kind {
            EntryKind::Void => {}
            EntryKind::Tombstone => {
                if let Some(gone) = self.store.gone.lock().as_mut() {
                    gone.add(entry.hash);
                }
            }
            _ => {
                let at = LogPosition::new(part.sequence, entry.offset_units);
                let void = voids.contains(&entry.offset_units) || self.removed(entry, at);
                if void && let Some(gone) = self.store.gone.lock().as_mut() {
                    // It had replaced every older record of its key. Their own removals may
                    // have been lost in a power cut that this record survived.
                    gone.add(entry.hash);
                }
                if !void && at >= self.floor && self.insert(engine, part.index, entry) {
                    *loaded += 1;
                } else {
                    *skipped += 1;
                }
            }
        }
    }

    /// Whether the removal log removes this record by its key. Then the place takes over: the
    /// record is void, and through it everything older of the key.
    fn removed(&mut self, entry: &Entry, at: LogPosition) -> bool {
        let before = self.keys.get(&entry.hash);
        if before.is_none_or(|before| at >= *before) {
            return false;
        }
        self.keys.remove(&entry.hash);
        self.store.remove(Removal::Place(at));
        true
    }

    /// Takes one record in, unless its key was removed or has a newer record.
    fn insert(&self, engine: &Engine, index: u32, entry: &Entry) -> bool {
        let Some(spot) = self.store.spot(index, entry.offset_units) else {
            return false;
        };
        let Some(new) = spot.entry(u64::from(entry.len_units) * UNIT) else {
            return false;
        };
        // The lock orders this with a removal of the same key.
        let _shard = engine.shard(entry.hash).write();
        let mut gone = self.store.gone.lock();
        let Some(gone) = gone.as_mut() else {
            return false;
        };
        if gone.has(entry.hash) {
            if gone.untold {
                let place = self.store.position(spot);
                self.store.remove_all(place.map(Removal::Place).as_slice());
            }
            return false;
        }
        match engine.index.insert_if_absent(entry.hash, new) {
            Insert::Stored | Insert::Replaced(_) => true,
            // The place is taken by a newer record of the key, or by a twin, or there is no room.
            // In case the twin goes: an older record of this key must not take its place. And this
            // one must not return once it is out of date, when nothing is known of it any more.
            Insert::Present(_) | Insert::Dropped => {
                gone.add(entry.hash);
                let place = self.store.position(spot);
                self.store.remove_all(place.map(Removal::Place).as_slice());
                false
            }
        }
    }

    /// Everything is loaded.
    pub(crate) fn finish(&self, engine: &Engine) {
        *self.store.gone.lock() = None;
        self.store.loading.store(false, Ordering::Release);
        self.store.all_recalled();
        let took = self
            .began
            .map_or(0, |began| engine.clock.mono().since(began).as_nanos());
        self.store
            .counters
            .load_nanos
            .store(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl crate::Writer {
    /// Takes loading a step further.
    pub(crate) fn load_step(&mut self) {
        let Some(mut loader) = self.loader.take() else {
            return;
        };
        if loader.step(&self.engine) {
            loader.finish(&self.engine);
            self.settle_removals();
            self.counts_again(loader.restore);
            return;
        }
        for (sequence, at, len) in loader.wanted() {
            self.read_slot(sequence, at, len);
        }
        self.loader = Some(loader);
    }

    /// A slot was read for loading.
    pub(crate) fn load_slot_done(
        &mut self,
        sequence: u64,
        result: &std::io::Result<()>,
        buf: Option<AlignedBuf>,
    ) {
        if let Some(loader) = &mut self.loader {
            loader.slot(sequence, buf.filter(|_| result.is_ok()));
        }
    }
}
