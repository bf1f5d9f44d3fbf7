//! The engine's tables as the parts of a writer see them: objects on their way to the disk, from
//! their choice for a cluster to the index entry that leads to the record.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use foxy_base::{KeyHash, rule};
use foxy_format::{Entry, LogPosition, RecordKind};
use foxy_index::{Address, Entry as IndexEntry, Insert};
use foxy_policy::CachePolicy;

use crate::inbox::Item;
use crate::purge::Verdict;
use crate::shard::{Pending, Stage};
use crate::shared::StoreShared;
use crate::spot::Spot;
use crate::stats::add;
use crate::{Engine, Object, StoreId};

/// Records whose places in the index are asked for at once.
const COMMIT_AHEAD: usize = 32;

/// A record in a cluster under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) hash: KeyHash,
    pub(super) ticket: u64,
    pub(super) entry: IndexEntry,
    /// Length of the record on disk.
    pub(super) bytes: u32,
}

/// Objects that one store writes. Everything that changes the state of a key happens under the lock
/// of its shard.
#[derive(Debug)]
pub(super) struct Objects {
    engine: Arc<Engine>,
    store: Arc<StoreShared>,
}

impl Objects {
    pub(super) const fn new(engine: Arc<Engine>, store: Arc<StoreShared>) -> Self {
        Self { engine, store }
    }

    /// Returns the object that waits with this item; `None` if it was superseded.
    pub(super) fn waiting(&self, item: &Item) -> Option<Arc<Object>> {
        let shard = self.engine.tables.shard(item.hash).read();
        let pending = shard.pending.get(&item.hash);
        let pending = pending.filter(|p| p.ticket == item.ticket)?;
        Some(pending.object.clone())
    }

    /// Returns whether this very object waits, in memory or in a cluster under way.
    pub(super) fn waits(&self, hash: KeyHash, ticket: u64) -> bool {
        let shard = self.engine.tables.shard(hash).read();
        shard.pending.get(&hash).is_some_and(|p| p.ticket == ticket)
    }

    /// From here on a crash may leave the object's record at `place`. False if it was superseded
    /// or purged since it was chosen.
    pub(super) fn begin_record(&self, item: &Item, place: LogPosition) -> bool {
        let mut shard = self.engine.tables.shard(item.hash).write();
        let pending = shard.pending.get_mut(&item.hash);
        let pending = pending.filter(|p| {
            rule!(
                "write: what was superseded since it was chosen is not written",
                p.ticket == item.ticket,
                true
            )
        });
        let Some(pending) = pending else {
            return false;
        };
        // Objects that a purge covers, soft or not, are not written behind it: so purges grow old.
        if rule!(
            "write: what a purge covers is not written behind it",
            self.engine.purges.verdict(&pending.object) == Verdict::Clean,
            true
        ) {
            rule!(
                "write: an object in a cluster under way is known to be there",
                pending.stage = Stage::Assembled(place),
                ()
            );
            return true;
        }
        if let Some(pending) = shard.pending.remove(&item.hash) {
            self.release(pending.store, pending.object.memory_bytes());
            add(&self.engine.counters.drop_purged, 1);
        }
        false
    }

    /// The records of a cluster are on the disk. `replaces` gives the entry that a reinserted record
    /// takes the place of, by its ticket.
    pub(super) fn commit_all(
        &self,
        records: &[Written],
        replaces: impl Fn(u64) -> Option<(KeyHash, Address)>,
    ) {
        for some in records.chunks(COMMIT_AHEAD) {
            some.iter()
                .for_each(|w| self.engine.tables.index().warm(w.hash));
            some.iter()
                .for_each(|w| self.commit(w, || replaces(w.ticket)));
        }
    }

    /// From here on the index leads to the record, if its object is still the one.
    fn commit(&self, written: &Written, replaces: impl Fn() -> Option<(KeyHash, Address)>) {
        let mut shard = self.engine.tables.shard(written.hash).write();
        let pending = shard.pending.get(&written.hash);
        if rule!(
            "commit: a record that was superseded while it was written is not committed",
            pending.is_none_or(|p| p.ticket != written.ticket),
            false
        ) {
            return;
        }
        let entry = written.entry;
        // A reinserted record replaces its own earlier entry.
        let replaced = replaces()
            .is_some_and(|(hash, old)| self.engine.tables.index().replace_if(hash, old, entry));
        if !replaced {
            self.insert_entry(written.hash, entry);
        }
        if let Some(pending) = shard.pending.remove(&written.hash) {
            self.release(pending.store, pending.object.memory_bytes());
        }
    }

    fn insert_entry(&self, hash: KeyHash, entry: IndexEntry) {
        // A twin loses its entry: its record must not come back when it is out of date.
        for twin in self.engine.tables.index().lookup(hash) {
            rule!(
                "commit: a twin that loses its entry becomes void",
                self.engine.catalogue.void(twin),
                ()
            );
        }
        match self.engine.tables.index().insert(hash, entry) {
            Insert::Replaced(_) => add(&self.store.counters.index_displaced, 1),
            Insert::Dropped => {
                rule!(
                    "commit: a record without a place in the index becomes void",
                    self.engine.catalogue.void(entry),
                    ()
                );
                add(&self.store.counters.index_displaced, 1);
            }
            Insert::Stored | Insert::Present(_) => {}
        }
    }

    /// Gives the room of an object back that waited for the store of this number.
    fn release(&self, store: StoreId, bytes: usize) {
        let stores = self.engine.fleet.stores();
        self.engine
            .memory
            .budget()
            .release_for(&stores, store, bytes);
    }

    /// Gives up an object on its way to disk.
    pub(super) fn forget(&self, hash: KeyHash, ticket: u64) {
        let mut shard = self.engine.tables.shard(hash).write();
        if shard.pending.get(&hash).is_some_and(|p| p.ticket == ticket)
            && let Some(pending) = shard.pending.remove(&hash)
        {
            self.release(pending.store, pending.object.memory_bytes());
            add(&self.store.counters.drop_write_error, 1);
        }
    }
}

/// Reuse: records of a segment that is about to be overwritten.
impl Objects {
    /// How often a record was used since it was written, if it is still the one.
    pub(super) fn uses(&self, spot: Spot, hash: KeyHash) -> Option<u8> {
        let found = self.engine.tables.entry_at(hash, spot)?;
        // An object in RAM this long after it was written is in use, though not read from disk.
        let in_ram = self
            .engine
            .tables
            .shard(hash)
            .read()
            .ram
            .peek(&hash)
            .is_some();
        Some(found.freq.max(u8::from(in_ram)))
    }

    /// The object that the RAM tier has under this hash. Counts no use.
    pub(super) fn in_ram(&self, hash: KeyHash) -> Option<Arc<Object>> {
        self.engine
            .tables
            .shard(hash)
            .read()
            .ram
            .peek(&hash)
            .cloned()
    }

    /// The fragments of versions that are read.
    pub(super) fn held_fragments(&self) -> HashSet<KeyHash> {
        // No more than one object of the greatest length.
        let room = self.engine.object_bytes_max();
        self.engine
            .holds
            .fragments(self.engine.tables.shards(), room)
    }

    /// Returns whether reinsertion leaves room for new objects.
    pub(super) fn has_room_for_reinsertion(&self) -> bool {
        self.engine.memory.budget().has_room_for_reinsertion()
    }

    /// Lets the record at `spot` wait to be written again, if it is still what its key holds. One that
    /// is not `held` by a reader waits only if it is worth keeping, if there is room, and if `spend`
    /// allows its bytes. Returns its ticket.
    pub(super) fn wait_again(
        &self,
        entry: &Entry,
        spot: Spot,
        object: Arc<Object>,
        held: bool,
        spend: impl FnOnce(u64) -> bool,
    ) -> Option<u64> {
        let held = held && self.engine.holds.has_fragment(&self.engine.keys, &object);
        if !held && !self.worth_keeping(&object) {
            return None;
        }
        let ticket = self.engine.numbers.next();
        let mut shard = self.engine.tables.shard(entry.hash).write();
        let present = self.engine.tables.leads_to(entry.hash, spot);
        // Superseded meanwhile, or being replaced: then it must not be written after that.
        if rule!(
            "reinsert: what was superseded meanwhile is not written again",
            !present,
            false
        ) || rule!(
            "reinsert: what is being replaced is not written again",
            shard.pending.contains_key(&entry.hash),
            false
        ) {
            return None;
        }
        // Fragments that are in use do not wait for room; `held_fragments` bounds them.
        let bytes = object.memory_bytes();
        if held {
            self.engine.memory.budget().take(&self.store, bytes);
        } else if !self.engine.memory.budget().reserve(&self.store, bytes) {
            return None;
        }
        if !spend(object.record_bytes() as u64) && !held {
            self.release(self.store.id, object.memory_bytes());
            add(&self.store.counters.reinsert_over_budget, 1);
            return None;
        }
        let pending = Pending {
            object,
            store: self.store.id,
            ticket,
            stage: Stage::Waiting,
        };
        shard.pending.insert(entry.hash, pending);
        Some(ticket)
    }

    fn worth_keeping(&self, object: &Object) -> bool {
        if object.meta().expires < self.engine.clock.wall() {
            return false;
        }
        // A fragment without its head cannot be asked for.
        object.kind != RecordKind::Fragment || {
            let head = self.engine.key_hash(object.key());
            self.engine.tables.is_known(head)
        }
    }

    /// Drops the index entry of a record. True if there was one.
    pub(super) fn drop_entry(&self, hash: KeyHash, spot: Spot) -> bool {
        let _shard = self.engine.tables.shard(hash).write();
        self.engine
            .tables
            .index()
            .remove_if(hash, spot.address)
            .is_some()
    }

    /// Drops all index entries of these sectors. Returns how many there were.
    pub(super) fn sweep(&self, sectors: Range<u64>) -> u64 {
        self.engine.tables.index().sweep(sectors).run()
    }
}
