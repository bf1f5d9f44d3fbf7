//! The removals on their way to the disk. Before a removal becomes visible, it is written to the removal log,
//! a ring buffer near the beginning of the store. So the removal stays in effect if the process dies. Then it
//! is passed to the writer, which puts it into a cluster of the store's log as a *tombstone*.

use foxy_base::{KeyHash, rule};
use foxy_format::{
    EntryKind, LogPosition, REMOVAL_BYTES, RemovalEntry, Removed, StoreUuid, read_removals,
};

use super::agreed::read_agreed;
use crate::interface::add;
use crate::shared::StoreShared;

/// The maximum number of removals in the inbox of a writer. If there are more, all removals in the inbox are
/// forgotten, and everything that is in the log so far is declared dead instead.
const REMOVALS_MAX: usize = 1 << 20;
/// The number of entries that are encoded together in one buffer on the stack.
const BATCH: usize = 16;

/// A removal that must stay in effect after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// Removes all older records under this hash.
    Key(KeyHash),
    /// Removes the record at this place.
    Place(LogPosition),
}

impl Removal {
    /// The kind and the hash field of the removal's entry in a cluster.
    pub(crate) fn entry(self) -> (EntryKind, KeyHash) {
        match self {
            Self::Key(hash) => (EntryKind::Tombstone, hash),
            Self::Place(at) => (EntryKind::RecordTombstone, KeyHash(u128::from(at.0))),
        }
    }
}

/// A removal with its number in the removal log. A removal that found no room in the removal log has
/// the number of the next entry, so that numbers never decrease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    pub(crate) removal: Removal,
    pub(crate) number: u64,
}

/// The state of the removal log.
#[derive(Debug)]
pub(crate) struct RemovalLog {
    /// The number of the next entry.
    next: u64,
    /// The number of the oldest entry that is still active, because its tombstone is not confirmed;
    /// `next` if there is none.
    first: u64,
    /// The value of `first` when the newest entry was written; the entry contains it.
    told: u64,
    places: u64,
    /// The number of the oldest active entry of an earlier run. Entries from this number on are active until
    /// the removed records have durable tombstones. The removals of an earlier run may have been made long
    /// ago, and even a power cut must not undo such a removal.
    hold: Option<u64>,
    /// Set once recovery has loaded everything. All removals that recovery made have numbers below this
    /// number.
    loaded: Option<u64>,
}

impl RemovalLog {
    pub(crate) fn new(places: u64) -> Self {
        Self {
            next: 1,
            first: 1,
            told: 1,
            places,
            hold: None,
            loaded: None,
        }
    }

    /// The number of the next entry.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether active entries take more than half of the ring. Then tombstones should be written
    /// without delay.
    pub(crate) const fn is_pressed(&self) -> bool {
        (self.next - self.first) * 2 > self.places
    }

    /// Writes entries with as few writes as the ring allows. Returns false if the ring has too little room
    /// or a write fails. Entries of a failed write may have reached the disk, so their numbers are not used
    /// again.
    fn write(&mut self, store: &StoreShared, removed: &[Removed]) -> bool {
        if rule!(
            "removal log: an active entry is not overwritten",
            self.next + removed.len() as u64 > self.first + self.places,
            false
        ) {
            add(&store.counters.removal_log_full, removed.len() as u64);
            return false;
        }
        let mut whole = true;
        for batch in removed.chunks(BATCH) {
            let mut bytes = [[0; REMOVAL_BYTES]; BATCH];
            for (out, removed) in bytes.iter_mut().zip(batch) {
                *out = self.encode_next(store.space.uuid(), *removed);
            }
            let place = ((self.next - batch.len() as u64) % self.places) as usize;
            let bytes = &bytes[..batch.len()];
            let (here, round) = bytes.split_at(bytes.len().min(self.places as usize - place));
            let written = store.write_removals(place, here.as_flattened());
            whole &= written
                .and_then(|()| store.write_removals(0, round.as_flattened()))
                .is_ok();
        }
        add(&store.counters.removals_logged, removed.len() as u64);
        if !whole {
            add(&store.counters.write_errors, 1);
        }
        whole
    }

    fn encode_next(&mut self, uuid: StoreUuid, removed: Removed) -> [u8; REMOVAL_BYTES] {
        let entry = RemovalEntry {
            number: self.next,
            before: u32::try_from(self.next - self.first).unwrap_or(u32::MAX),
            removed,
        };
        self.next += 1;
        self.told = self.first;
        entry.encode(uuid)
    }

    /// Notes that entries before `first` need not be active any more. However, entries from `hold` on stay
    /// active.
    fn advance(&mut self, store: &StoreShared, first: u64) {
        let hold = rule!(
            "removal log: entries of an earlier run are active until all of theirs are confirmed",
            self.hold,
            None::<u64>
        );
        self.first = first.min(hold.unwrap_or(self.next)).max(self.first);
        // If no entry is active any more, a new entry is written now to state this. So a restart does not
        // process old entries.
        if self.first == self.next && self.told < self.first {
            self.write(store, &[Removed::Nothing]);
            self.first = self.next;
        }
    }
}

impl StoreShared {
    fn write_removals(&self, place: usize, bytes: &[u8]) -> std::io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let at = self.space.geometry().removals_at() + (place * REMOVAL_BYTES) as u64;
        self.disk.write_cached(at, bytes)
    }

    /// Passes a removal to the writer. When this returns, a kill of the process does not undo the
    /// removal. Call it under the lock of the key's shard, before any other thread can see that the key
    /// was removed.
    pub(crate) fn remove(&self, removal: Removal) {
        self.remove_all(&[removal]);
    }

    /// Passes several removals at once, like [`StoreShared::remove`].
    pub(crate) fn remove_all(&self, removals: &[Removal]) {
        let mut log = self.removals.lock();
        let end = self.marks.log_end();
        for batch in removals.chunks(BATCH) {
            let mut removed = [Removed::Nothing; BATCH];
            for (out, removal) in removed.iter_mut().zip(batch) {
                *out = match *removal {
                    Removal::Place(place) => Removed::Place(place),
                    Removal::Key(hash) => Removed::Key(
                        hash,
                        rule!(
                            "removal log: a key is removed up to the end of the log, not behind it",
                            end,
                            LogPosition(u64::MAX)
                        ),
                    ),
                };
            }
            let number = log.next;
            rule!(
                "removal log: a removal is written there before it shows",
                log.write(self, &removed[..batch.len()]),
                true
            );
            self.post(batch, number, log.next);
        }
    }

    /// Puts removals into the writer's inbox. Their numbers ascend from `number`. If the removal log had no
    /// room for them, they all have the number `next`.
    fn post(&self, removals: &[Removal], number: u64, next: u64) {
        let mut inbox = self.inbox.lock();
        if inbox.removals.len() >= REMOVALS_MAX {
            inbox.removals.clear();
            inbox.overflow = true;
            add(&self.counters.tombstone_overflows, 1);
        }
        let first = inbox.removals.is_empty();
        let numbered = (number..).zip(removals).map(|(number, removal)| Numbered {
            removal: *removal,
            number: number.min(next),
        });
        inbox.removals.extend(numbered);
        drop(inbox);
        if first {
            self.bell.nudge();
        }
    }

    /// Notes which removals are confirmed. The number of a confirmed removal is below the numbers of all
    /// removals in the inbox and, if `waiting` is set, below `waiting`. Returns true if all removals of an
    /// earlier run are confirmed and not yet released: the caller can then release them by
    /// [`StoreShared::let_go`].
    pub(crate) fn removals_settled(&self, waiting: Option<u64>) -> bool {
        let mut log = self.removals.lock();
        let inbox = self.inbox.lock();
        // An overflow of the inbox drops removals. In their place, a raised floor makes all earlier records
        // dead. Until the floor is raised, no removal may count as confirmed.
        if rule!(
            "removal log: it does not settle before the floor of an overflow is raised",
            inbox.overflow,
            false
        ) {
            return false;
        }
        let posted = rule!(
            "removal log: an entry is active while its removal is in the inbox",
            inbox.removals.first().map(|r| r.number),
            None
        );
        drop(inbox);
        let first = [waiting, posted].into_iter().flatten().min();
        let first = first.unwrap_or(log.next);
        log.advance(self, first);
        log.hold.is_some() && log.loaded.is_some_and(|loaded| first >= loaded)
    }

    /// Notes that everything is loaded: recovery makes no more removals.
    pub(crate) fn all_replayed(&self) {
        let mut log = self.removals.lock();
        log.loaded = Some(log.next);
    }

    /// Releases the removals of an earlier run: the removed records have durable tombstones.
    pub(crate) fn let_go(&self) {
        self.removals.lock().hold = None;
    }

    /// Replays the removal log of an earlier run. An entry that removes the record at a place is active only
    /// if a record of a present incarnation can be at that place. The record at such a place becomes dead,
    /// and the removal is passed to the writer. For an entry that removes a key, the loader must first find
    /// the records of the key; until then the entry is active.
    pub(crate) fn replay_removals(&self, mut apply: impl FnMut(Removed)) -> std::io::Result<()> {
        let mut bytes = vec![0; self.space.geometry().removals_bytes as usize];
        let at = self.space.geometry().removals_at();
        read_agreed(&mut bytes, |into| self.disk.read_cached(at, into))?;
        let (entries, next) = read_removals(&bytes, self.space.uuid());
        let mut log = self.removals.lock();
        let mut inbox = self.inbox.lock();
        log.next = next;
        log.told = entries.first().map_or(next, |e| e.number);
        for entry in entries {
            let counts = match entry.removed {
                Removed::Place(place) => self.is_present(place),
                removed => matches!(removed, Removed::Key(..)),
            };
            if !counts {
                continue;
            }
            log.hold = log.hold.or(Some(entry.number));
            if let Removed::Place(place) = entry.removed {
                inbox.removals.push(Numbered {
                    removal: Removal::Place(place),
                    number: entry.number,
                });
            }
            add(&self.counters.removals_recalled, 1);
            apply(entry.removed);
        }
        drop(inbox);
        log.first = log.hold.unwrap_or(next);
        log.advance(self, next);
        Ok(())
    }

    /// Returns whether a record can be at this place. The incarnation of the place must be the present
    /// incarnation of a segment, and the place must be before the end of the log.
    fn is_present(&self, place: LogPosition) -> bool {
        let incarnation = self
            .space
            .incarnation(self.space.geometry().segment_of(place.sequence()));
        let end = self.marks.log_end();
        place.sequence() != 0
            && rule!(
                "removal log: a place of an earlier incarnation does not matter",
                incarnation == place.sequence(),
                true
            )
            && rule!(
                "removal log: a place behind the end of the log does not matter",
                place < end,
                true
            )
    }
}
