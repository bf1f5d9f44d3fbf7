//! Loading: the entries of all segments are entered into the index, newest first, except entries
//! that were removed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_base::{Clock, MonoTime, rule};
use foxy_disk::AlignedBuf;
use foxy_format::{LogPosition, Removed};
use foxy_index::{Index, LANES};

use super::part::{Part, slot_len};
use super::pieces::{Piece, Pieces, Raw, tell};
use super::take::{Keys, Taker, Unplaced, take_all};
use crate::interface::add;
use crate::memory::{EngineCore, Tables};
use crate::shared::StoreShared;

/// Number of turns (calls of [`Loader::step`]) whose pieces of segments ([`Piece`]) are read ahead. So the
/// disk works while the entries of one turn go into the index.
const TURNS_AHEAD: usize = 2;
/// One turn takes in several segments only if they have at most this many entries together. Such a turn
/// lasts about ten milliseconds.
const TURN_ENTRIES: u64 = 1 << 18;
/// Number of entries that a running thread could load in the time that the start of another thread takes.
/// With fewer entries, a second thread is not worth its start.
const WORTH_A_THREAD: u64 = 4096;
/// Before a turn enters its entries into the index, it reserves index slots for them, and for further
/// entries that are expected. The further entries are at most this part (1/n) of the entries that the index
/// contains. Without these additional slots the table would be nearly full, and about one entry would have
/// to move to another slot for every new entry.
const ROOM_AHEAD: u64 = 4;

/// The segments that are still to be loaded.
#[derive(Debug)]
pub(crate) struct Loader {
    store: Arc<StoreShared>,
    tables: Tables,
    time: LoadTime,
    floor: LogPosition,
    /// The segments, newest first.
    parts: VecDeque<Part>,
    /// The maximum number of segments in a turn.
    at_once: usize,
    pieces: Pieces,
    /// The places of removed records: for each incarnation of a segment, their offsets in units.
    dead_places: HashMap<u64, Vec<u32>>,
    /// The keys in the removal log, by their lane. (A lane is a part of the work on the index; two threads
    /// can work on two lanes at the same time: see [`super::take`].)
    keys: [Keys; LANES],
    progress: Progress,
    /// The number of available processors.
    cores: usize,
    /// Set if the store was detached: the floor for its superblock. The superblock gets this floor as soon
    /// as the log contains durable tombstones for all records that were removed meanwhile.
    restore: Option<LogPosition>,
    /// The floor that must still be written to the superblock: everything before it is dead.
    owed: Option<LogPosition>,
}

/// The progress of loading, counted in entries of all segments.
#[derive(Debug, Default)]
struct Progress {
    /// The number of entries that are not processed yet.
    left: u64,
    /// The number of processed entries.
    seen: u64,
    /// The number of processed entries that are in the index now.
    stored: u64,
    unplaced: Unplaced,
}

impl Progress {
    /// Returns the number of entries for which the index should have free slots now: `count`, and some of
    /// the entries that follow.
    fn room(&mut self, index: &Index, count: u64) -> u64 {
        let part = u128::from(self.stored + 1) * u128::from(self.left);
        let expected = u64::try_from(part / u128::from(self.seen + 1)).unwrap_or(u64::MAX);
        let ahead = index.len() / ROOM_AHEAD + count;
        self.left = self.left.saturating_sub(count);
        self.seen += count;
        ahead.min(expected)
    }
}

/// The time that loading takes, from its first step on.
#[derive(Debug)]
struct LoadTime {
    clock: Arc<dyn Clock>,
    began: Option<MonoTime>,
}

impl LoadTime {
    fn begin(&mut self) {
        self.began.get_or_insert_with(|| self.clock.mono());
    }

    fn nanos(&self) -> u64 {
        let took = |began| self.clock.mono().since(began).as_nanos();
        let nanos = self.began.map_or(0, took);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

impl Loader {
    pub(crate) fn new(
        core: &EngineCore,
        store: Arc<StoreShared>,
        floor: LogPosition,
        at_once: usize,
    ) -> Self {
        Self {
            store,
            tables: core.tables.clone(),
            time: LoadTime {
                clock: Arc::clone(&core.clock),
                began: None,
            },
            floor,
            parts: VecDeque::new(),
            at_once: at_once.max(1),
            pieces: Pieces::default(),
            dead_places: HashMap::new(),
            keys: Default::default(),
            progress: Progress::default(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            restore: None,
            owed: None,
        }
    }

    /// Makes everything before `floor` dead.
    pub(crate) fn raise_floor(&mut self, floor: LogPosition) {
        self.floor = self.floor.max(floor);
        self.raise_restored(floor);
    }

    /// Makes everything before `floor` dead for the next start. The present loading does not change.
    pub(crate) fn raise_restored(&mut self, floor: LogPosition) {
        self.restore = self.restore.map(|restore| restore.max(floor));
    }

    /// Returns whether everything is loaded, but the superblock does not contain the new floor yet.
    pub(crate) const fn waits(&self) -> bool {
        self.owed.is_some()
    }

    /// The floor that must still be written to the superblock: everything before it is dead.
    pub(crate) const fn owed(&self) -> Option<LogPosition> {
        self.owed
    }

    /// If the store was detached, returns the floor for its superblock. The superblock gets this floor as
    /// soon as the log contains durable tombstones for all records that were removed meanwhile.
    pub(crate) const fn restores(&self) -> Option<LogPosition> {
        self.restore
    }

    /// Notes that the store was detached: its records from `floor` on are live again, except the records of
    /// removed keys.
    pub(crate) const fn reattach(&mut self, floor: LogPosition) {
        self.floor = floor;
        self.restore = Some(floor);
    }

    /// The bytes of memory for pieces that were read ahead, for tables, and for removed keys.
    pub(crate) fn memory_bytes(&self) -> usize {
        let entries: usize = self.parts.iter().map(|p| p.entries.capacity()).sum();
        let ahead = self.pieces.memory_bytes();
        let dead_places: usize = self
            .dead_places
            .values()
            .map(|v| v.capacity() * 4 + 64)
            .sum();
        let removed_keys = self.store.loading.memory_bytes();
        entries * foxy_format::ENTRY_BYTES + ahead + dead_places + removed_keys
    }

    /// Adds a segment that is older than the segments added before.
    pub(crate) fn add(&mut self, part: Part) {
        self.progress.left += part.count();
        self.parts.push_back(part);
    }

    /// Replays the removal log of the previous run.
    pub(crate) fn replay_removals(&mut self) -> std::io::Result<()> {
        let (dead_places, keys) = (&mut self.dead_places, &mut self.keys);
        let index = self.tables.index();
        self.store.replay_removals(|removed| match removed {
            Removed::Nothing => {}
            Removed::Place(at) => {
                dead_places
                    .entry(at.sequence())
                    .or_default()
                    .push(at.offset_units());
            }
            Removed::Key(hash, before) => {
                let place = keys[index.lane(hash)].entry(hash).or_default();
                *place = before.max(*place);
            }
        })
    }

    /// Loads the newest segments: the segments whose entries are already known, up to the first segment whose
    /// summary must still be read.
    pub(crate) fn load_scanned(&mut self) {
        while let Some(part) = self.parts.pop_front_if(|p| p.header.is_none()) {
            self.take_in(vec![Raw::of(part)]);
        }
        // If the store grows or returns, there may already be too many removals to remember.
        self.lose_if_full(self.store.marks.log_end());
    }

    /// Returns the pieces to read next, each with its offset and length in whole blocks.
    pub(crate) fn wanted(&mut self) -> Vec<(Piece, u64, usize)> {
        let (geometry, block) = (
            self.store.space.geometry(),
            self.store.space.block_bytes() as usize,
        );
        let mut wanted = Vec::new();
        for part in self.parts.iter().take(self.turn() * TURNS_AHEAD) {
            let Some(header) = part.header else { continue };
            let len = slot_len(geometry, &header)
                .next_multiple_of(block)
                .min(geometry.slot_bytes as usize);
            if !self.pieces.ask(Piece::Slot(part.sequence), len) {
                continue;
            }
            let slot = geometry.slot_at(part.index);
            wanted.push((Piece::Slot(part.sequence), slot, len));
            let entries = header.entries as usize;
            if let Some(at) = geometry.spill_at(part.index, entries) {
                let len = geometry.spill_bytes(entries) as usize;
                self.pieces.ask(Piece::Spill(part.sequence), len);
                wanted.push((Piece::Spill(part.sequence), at, len));
            }
        }
        wanted
    }

    /// The number of segments that the next turn takes in. Later turns are assumed to take in as many
    /// segments. The number is 1 if the index could become full: if that happens during a turn, all segments
    /// of the turn count as lost.
    fn turn(&self) -> usize {
        let most = match self.tables.index().room() {
            room if room < 2 * TURN_ENTRIES => 0,
            _ => TURN_ENTRIES,
        };
        let mut entries = 0;
        let next = self.parts.iter().take(self.at_once).take_while(|part| {
            entries += part.count();
            entries <= most
        });
        next.count().max(1)
    }

    /// Notes the bytes of a piece; `None`: they could not be read.
    pub(crate) fn read(&mut self, piece: Piece, buf: Option<AlignedBuf>) {
        let bytes = buf.as_ref().map_or(0, |buf| buf.len() as u64);
        add(&self.store.counters.load_bytes, bytes);
        self.pieces.answer(piece, buf);
    }

    /// Loads the next segments whose pieces were all read, newest first. Returns true when all segments
    /// are loaded.
    pub(crate) fn step(&mut self) -> bool {
        self.time.begin();
        let (mut group, turn) = (Vec::new(), self.turn());
        while group.len() < turn
            && let Some(part) = self.parts.pop_front_if(|part| self.pieces.has_all_of(part))
        {
            let (slot, spill) = self.pieces.take(&part);
            group.push(Raw { part, slot, spill });
        }
        if let Some(newest) = group.first().map(|raw| raw.part.sequence) {
            self.take_in(group);
            self.lose_if_full(LogPosition::new(newest + 1, 0));
        }
        self.parts.is_empty()
    }

    /// Takes in the entries of segments, newer segments first.
    fn take_in(&mut self, group: Vec<Raw>) {
        let counts = group.iter().map(|raw| raw.part.count());
        let count = counts.sum::<u64>();
        let together = self.cores > 1 && count >= WORTH_A_THREAD;
        let mut segments = tell(self.tables.index(), &self.store, group, together);
        let lost = segments.iter().position(|told| told.lost);
        if let Some(at) = rule!(
            "load: a segment that neither summary nor clusters tell is lost, and all before it",
            lost,
            None::<usize>
        ) {
            self.lose(LogPosition::new(segments[at].part.sequence + 1, 0));
            segments.truncate(at);
        }
        for at in segments.iter().flat_map(|told| &told.removes) {
            let places = self.dead_places.entry(at.sequence()).or_default();
            places.push(at.offset_units());
        }
        for told in &mut segments {
            told.dead_places = self
                .dead_places
                .remove(&told.part.sequence)
                .unwrap_or_default();
            told.dead_places.sort_unstable();
        }
        let room = self.progress.room(self.tables.index(), count);
        let taker = Taker {
            index: self.tables.index(),
            store: &self.store,
            floor: self.floor,
            room,
            unplaced: &self.progress.unplaced,
        };
        let taken = take_all(taker, &mut self.keys, &segments, together);
        self.progress.stored += taken.loaded;
    }

    /// Gives up the records before `floor` if there are too many removals to remember, because then these
    /// records cannot be distinguished from removed records. Also gives these records up if the index is
    /// full.
    fn lose_if_full(&mut self, floor: LogPosition) {
        let full = self
            .store
            .loading
            .removed_keys()
            .as_ref()
            .is_none_or(|removed_keys| removed_keys.full);
        if rule!(
            "load: everything older is dead once there are too many removals to remember",
            full,
            false
        ) {
            self.lose(floor);
        }
    }

    /// Returns true if the index has no room for the entries that are still to be loaded.
    fn is_index_full(&self) -> bool {
        let unplaced = &self.progress.unplaced;
        unplaced.is_index_full(self.tables.index())
    }

    /// Ends loading early, and declares everything dead that was written before `floor`. Loading cannot
    /// continue with older segments, because the entries that are left out may remove records in these
    /// segments. A later start must not load the records that are left out, either: after loading, nothing is
    /// logged when a record that the index does not contain is superseded.
    fn lose(&mut self, floor: LogPosition) {
        self.raise_floor(floor);
        rule!(
            "load: what is lost while loading is recorded in the superblock",
            self.owed = Some(self.owed.map_or(floor, |owed| owed.max(floor))),
            ()
        );
        let lost = self.parts.len() as u64 + 1;
        let store = self.store.disk.describe();
        let sequence = floor.sequence();
        if self.is_index_full() {
            tracing::warn!(
                %store, sequence, lost, objects = self.progress.stored,
                "the index is full: older objects than these count as lost; with a larger `memory` a start finds more"
            );
        } else {
            tracing::warn!(
                %store, sequence, lost,
                "what was written up to this segment cannot be told from what was removed: it counts as lost"
            );
            add(&self.store.counters.load_given_up, lost);
        }
        add(
            &self.store.counters.load_unplaced,
            self.progress.unplaced.count(),
        );
        self.parts.clear();
    }

    /// Logs one line for a start that found damage.
    fn tell_damage(&self) {
        let counts = self.store.counters.read();
        if counts.damaged == 0 && counts.load_given_up == 0 {
            return;
        }
        tracing::warn!(
            store = %self.store.disk.describe(),
            damaged = counts.damaged,
            segments_given_up = counts.load_given_up,
            objects = counts.loaded,
            "this start found damaged tables; what they told of is lost, the rest is loaded"
        );
    }

    /// Ends loading: logs the damage that was found, and the time that loading took.
    pub(crate) fn finish(&self) {
        self.tell_damage();
        let took = self.time.nanos();
        self.store
            .counters
            .load_nanos
            .store(took, Ordering::Relaxed);
    }
}
