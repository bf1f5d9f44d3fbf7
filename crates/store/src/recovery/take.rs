//! Enters the records of segments into the index. A record is entered only if the index does not have its key
//! yet, and the record was not removed.
//!
//! Two *lanes* share the work, each with its own shards of the index. All entries of one key are in the same
//! lane and keep their order. The same applies to all entries of keys that the index cannot distinguish. The
//! result does not depend on whether the lanes run at the same time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::{KeyHash, rule};
use foxy_format::{Entry, EntryKind, LogPosition, UNIT};
use foxy_index::{Index, Insert, LANES};

use super::part::Part;
use crate::interface::add;
use crate::shared::{Removal, RemovedKeys, StoreShared};

/// The number of entries whose index slots are prefetched ahead. Each entry needs two cache lines, and a
/// core can fetch only 10 to 24 cache lines at once, so this number keeps the core busy. The prefetched
/// lines still fit into the core's first-level cache.
const LOAD_AHEAD: usize = 32;

/// The index counts as full if the number of records that found no room is above this part (1/n) of the
/// number of its entries. See also [`UNPLACED_LEAST`].
const UNPLACED_PART: u64 = 64;
/// The index does not count as full if at most this many records found no room, because one of its shards may
/// be full before the other shards.
const UNPLACED_LEAST: u64 = 4096;

/// An entry that is to be entered into the index, with its segment.
type Due<'a> = (&'a Told, &'a Entry);

/// Keys in the removal log. Each key has a log position; the records of the key before this position are
/// removed.
pub(super) type Keys = HashMap<KeyHash, LogPosition>;

/// A segment with everything that is known about it.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) part: Part,
    /// The records and tombstones of the segment, by lane.
    pub(super) entries: [Vec<Entry>; LANES],
    /// The places, in this segment or older segments, of the records that the entries of this segment remove.
    pub(super) removes: Vec<LogPosition>,
    /// True if the contents are unknown.
    pub(super) lost: bool,
    /// The places of the removed records in the segment, in ascending order.
    pub(super) dead_places: Vec<u32>,
}

/// The number of records that were entered into the index, and the number of records that were left out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) loaded: u64,
    skipped: u64,
}

/// The result for an entry.
enum Fate {
    Loaded,
    Skipped,
    /// No older record of the entry's key may be entered into the index. If the entry is a record, the entry
    /// is left out too.
    Last {
        record: bool,
    },
    /// The same as [`Fate::Last`], for a record for which the index has no room.
    Unplaced,
}

/// The number of records for which the index had no room.
#[derive(Debug, Default)]
pub(super) struct Unplaced(AtomicU64);

impl Unplaced {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of records for which the index had no room.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns true if the index counts as full: see [`UNPLACED_PART`] and [`UNPLACED_LEAST`]. Then one floor
    /// makes all older records dead. Without this limit, each record without room would need an entry in the
    /// removal log and a record tombstone.
    pub(super) fn is_index_full(&self, index: &Index) -> bool {
        let count = self.count();
        count > UNPLACED_LEAST && count > index.len() / UNPLACED_PART
    }
}

/// The input that the two lanes share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker<'a> {
    pub(super) index: &'a Index,
    pub(super) store: &'a StoreShared,
    /// Records before this position are dead.
    pub(super) floor: LogPosition,
    /// The number of entries for which the index should have room before entries are taken in.
    pub(super) room: u64,
    pub(super) unplaced: &'a Unplaced,
}

impl Taker<'_> {
    /// Takes in the entries of `lane`: segments in the given order, and later entries of a segment
    /// first. It leaves out the remaining entries when there are too many removals to remember, or when
    /// the index is full.
    pub(super) fn take(self, lane: usize, keys: &mut Keys, segments: &[Told]) -> Taken {
        self.index.reserve(lane, self.room);
        let due = segments.iter().flat_map(|told| {
            let entries = told.entries[lane].iter().rev();
            entries.map(move |entry| (told, entry))
        });
        // For every entry that this iterator returns, the index slot is prefetched.
        let mut due = due.inspect(|(_, entry)| self.index.warm(entry.hash));
        let mut taken = Taken::default();
        let mut batch: Vec<Due<'_>> = due.by_ref().take(LOAD_AHEAD).collect();
        let mut next = Vec::with_capacity(LOAD_AHEAD);
        while !batch.is_empty() {
            self.take_batch(&batch, keys, &mut taken, || next.extend(due.next()));
            std::mem::swap(&mut batch, &mut next);
            next.clear();
        }
        add(&self.store.counters.loaded, taken.loaded);
        add(&self.store.counters.load_skipped, taken.skipped);
        taken
    }

    /// Takes in a batch of entries. Before each entry, it prefetches the index slot of an entry of the next
    /// batch, so that memory and processor work at the same time.
    fn take_batch(
        self,
        batch: &[Due<'_>],
        keys: &mut Keys,
        taken: &mut Taken,
        mut ask_for_next: impl FnMut(),
    ) {
        // A thread that removes a key adds the key to `removed_keys` before it searches the index. If an
        // entry of the key goes into the index before the key is added, the search finds the entry. Otherwise
        // the entry is left out here.
        let mut removed_keys = self.store.loading.removed_keys();
        for (told, entry) in batch {
            ask_for_next();
            let fate = match removed_keys.as_ref() {
                Some(removed_keys) => self.take_entry(entry, told, keys, removed_keys),
                None => Fate::Skipped,
            };
            taken.loaded += u64::from(matches!(fate, Fate::Loaded));
            let skipped = matches!(
                fate,
                Fate::Skipped | Fate::Last { record: true } | Fate::Unplaced
            );
            taken.skipped += u64::from(skipped);
            if matches!(fate, Fate::Last { .. } | Fate::Unplaced) {
                drop(removed_keys);
                self.nothing_older(entry.hash, &fate);
                removed_keys = self.store.loading.removed_keys();
            }
        }
    }

    /// Notes that no older record of this key may be taken in. If the index is full, this applies to
    /// the older records of all keys.
    fn nothing_older(self, hash: KeyHash, fate: &Fate) {
        if matches!(fate, Fate::Unplaced) {
            self.unplaced.add();
        }
        if let Some(removed_keys) = self.store.loading.removed_keys_mut().as_mut() {
            removed_keys.add(hash);
            removed_keys.full |= self.unplaced.is_index_full(self.index);
        }
    }

    fn take_entry(
        self,
        entry: &Entry,
        told: &Told,
        keys: &mut Keys,
        removed_keys: &RemovedKeys,
    ) -> Fate {
        if entry.kind == EntryKind::Tombstone {
            return rule!(
                "load: a tombstone keeps what is older of its hash out",
                Fate::Last { record: false },
                Fate::Skipped
            );
        }
        let at = LogPosition::new(told.part.sequence, entry.offset_units);
        let dead = rule!(
            "load: a dead record is left out",
            told.dead_places.binary_search(&entry.offset_units).is_ok(),
            false
        );
        if dead || self.removed(entry, at, keys) {
            // This record had replaced every older record of its key. The removals of the older records may
            // have been lost in a power cut that this record survived. So the older records are left out too.
            return rule!(
                "load: a dead record takes the older ones of its key with it",
                Fate::Last { record: true },
                Fate::Skipped
            );
        }
        if rule!(
            "load: everything before the floor is dead",
            at < self.floor,
            false
        ) {
            return Fate::Skipped;
        }
        if rule!(
            "load: a hash among the removed keys is left out",
            removed_keys.has(entry.hash),
            false
        ) {
            if rule!(
                "load: what a returning store missed becomes dead in its log",
                removed_keys.untold,
                false
            ) {
                self.store.remove(Removal::Place(at));
            }
            return Fate::Skipped;
        }
        self.insert(told.part.index, entry)
    }

    /// Returns whether the removal log removes this record by its key. If it does, logs a record tombstone
    /// for this record. At later starts, that tombstone also keeps out all older records of the key.
    fn removed(self, entry: &Entry, at: LogPosition, keys: &mut Keys) -> bool {
        let before = keys.get(&entry.hash);
        if rule!(
            "load: a key in the removal log takes what lies before its place, and no more",
            before.is_none_or(|before| at >= *before),
            before.is_none()
        ) {
            return false;
        }
        keys.remove(&entry.hash);
        rule!(
            "load: what the removal log removes by key becomes dead",
            self.store.remove(Removal::Place(at)),
            ()
        );
        true
    }

    /// Enters one record into the index if the index does not have its key yet.
    fn insert(self, index: u32, entry: &Entry) -> Fate {
        let Some(spot) = self.store.space.spot(index, entry.offset_units) else {
            return Fate::Skipped;
        };
        let Some(new) = spot.entry(u64::from(entry.len_units) * UNIT) else {
            return Fate::Skipped;
        };
        let fate = match self.index.insert_if_absent(entry.hash, new) {
            Insert::Stored | Insert::Replaced(_) => return Fate::Loaded,
            // A newer record of the key, or a record of a colliding key, already has the index entry. In
            // the second case, no older record of the entry's key may get an index entry after the
            // colliding key is removed.
            Insert::Present(_) => Fate::Last { record: true },
            Insert::Dropped => Fate::Unplaced,
        };
        // Nothing in memory refers to this record from now on, so no removal is logged when it becomes
        // out of date. The record must not return after that.
        let place = self.store.space.position(spot);
        rule!(
            "load: a record that finds its place in the index taken becomes dead",
            self.store.remove_all(place.map(Removal::Place).as_slice()),
            ()
        );
        rule!(
            "load: nothing older may take the place of a record that found none",
            fate,
            Fate::Skipped
        )
    }
}

/// Runs both lanes. They run at the same time if `together` is true and a thread can be started. The thread
/// ends before this function returns.
pub(super) fn take_all(
    taker: Taker<'_>,
    keys: &mut [Keys; LANES],
    segments: &[Told],
    together: bool,
) -> Taken {
    let [first, second] = keys;
    let (here, there) = beside(
        together,
        || taker.take(0, first, segments),
        || taker.take(1, second, segments),
    );
    let there = there.unwrap_or_else(|| taker.take(1, &mut keys[1], segments));
    Taken {
        loaded: here.loaded + there.loaded,
        skipped: here.skipped + there.skipped,
    }
}

/// Runs `here`. If `together` is true and a thread can be started, also runs `there` on that thread, which
/// ends before this function returns.
pub(super) fn beside<A, B: Send>(
    together: bool,
    here: impl FnOnce() -> A,
    there: impl FnOnce() -> B + Send,
) -> (A, Option<B>) {
    if !together {
        return (here(), None);
    }
    std::thread::scope(|scope| {
        let name = std::thread::Builder::new().name("foxy-load".into());
        let thread = name.spawn_scoped(scope, there);
        let here = here();
        let join = |thread: std::thread::ScopedJoinHandle<'_, B>| {
            let joined = thread.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (here, thread.ok().map(join))
    })
}
