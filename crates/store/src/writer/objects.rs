//! The engine's tables as the parts of a writer see them. The functions follow an object on its way to
//! the disk, from its choice for a cluster to the index entry that leads to its record.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use foxy_base::{Clock, KeyHash, hash64, rule};
use foxy_format::{Entry, LogPosition, RecordKind};
use foxy_index::{Address, Entry as IndexEntry, Insert};
use foxy_policy::CachePolicy;

use crate::engine::StoreContext;
use crate::fleet::Fleet;
use crate::interface::{EngineCounters, Spot, add};
use crate::memory::{Holds, MemoryBudget, Numbers, Pending, Stage, Tables};
use crate::purge::{Purges, Verdict};
use crate::put::Puts;
use crate::read::Keys;
use crate::removal::Catalogue;
use crate::shared::{Item, StoreShared};
use crate::{Object, StoreId};

/// While the index is full, this part (1/n) of the new records replaces entries of other records. The
/// remaining new records get no entry and become dead. If every new record replaced an entry, each object
/// that is requested only once would displace an object that is requested often. If no new record replaced an
/// entry, no new object would be found until older records are overwritten.
const DISPLACING: u64 = 16;

/// Number of records whose index entries are prefetched together.
const COMMIT_AHEAD: usize = 32;

/// A record in a cluster that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) hash: KeyHash,
    pub(super) ticket: u64,
    pub(super) entry: IndexEntry,
    /// Length of the record on disk, in bytes.
    pub(super) bytes: u32,
}

/// The objects that one store writes. Everything that changes the state of a key happens under the lock
/// of its shard.
#[derive(Debug)]
pub(super) struct Objects {
    store: Arc<StoreShared>,
    tables: Tables,
    keys: Arc<Keys>,
    fleet: Arc<Fleet>,
    budget: Arc<MemoryBudget>,
    holds: Holds,
    numbers: Arc<Numbers>,
    catalogue: Arc<Catalogue>,
    purges: Arc<Purges>,
    puts: Arc<Puts>,
    counters: Arc<EngineCounters>,
    clock: Arc<dyn Clock>,
}

/// Returns true for one in [`DISPLACING`] records, chosen by their places on the disks. An object that is
/// stored again has another place, and so it may be chosen then.
fn may_displace(entry: &IndexEntry) -> bool {
    let place = entry.address.sectors() << 12 | u64::from(entry.hint);
    hash64(0, &place.to_le_bytes()).is_multiple_of(DISPLACING)
}

impl Objects {
    pub(super) fn new(context: &StoreContext, store: Arc<StoreShared>) -> Self {
        let core = &context.core;
        Self {
            store,
            tables: core.tables.clone(),
            keys: Arc::clone(&context.keys),
            fleet: Arc::clone(&core.fleet),
            budget: Arc::clone(&core.budget),
            holds: core.holds.clone(),
            numbers: Arc::clone(&core.numbers),
            catalogue: Arc::clone(&context.catalogue),
            purges: Arc::clone(&context.purges),
            puts: Arc::clone(&context.puts),
            counters: Arc::clone(&core.counters),
            clock: Arc::clone(&core.clock),
        }
    }

    /// Returns the object that waits with this item, or `None` if the object was superseded.
    pub(super) fn waiting(&self, item: &Item) -> Option<Arc<Object>> {
        let shard = self.tables.shard(item.hash).read();
        let pending = shard.pending.get(&item.hash);
        let pending = pending.filter(|p| p.ticket == item.ticket)?;
        Some(pending.object.clone())
    }

    /// Returns whether the object with this ticket waits, in memory or in a cluster that is being written.
    pub(super) fn waits(&self, hash: KeyHash, ticket: u64) -> bool {
        let shard = self.tables.shard(hash).read();
        shard.pending.get(&hash).is_some_and(|p| p.ticket == ticket)
    }

    /// Notes that from here on a crash may leave the object's record at `place`. Returns false if the
    /// object was superseded or purged since it was chosen.
    pub(super) fn begin_record(&self, item: &Item, place: LogPosition) -> bool {
        let mut shard = self.tables.shard(item.hash).write();
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
        // An object that a soft or hard purge covers is not written after that purge. So the purge can retire
        // once all records from before it are overwritten.
        if rule!(
            "write: what a purge covers is not written behind it",
            self.purges.verdict(&pending.object) == Verdict::Clean,
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
            add(&self.counters.drop_purged, 1);
        }
        false
    }

    /// Commits the records of a cluster, which are on the disk. For the ticket of a reinserted record,
    /// `replaces` returns the entry that this record replaces.
    pub(super) fn commit_all(
        &self,
        records: &[Written],
        replaces: impl Fn(u64) -> Option<(KeyHash, Address)>,
    ) {
        for some in records.chunks(COMMIT_AHEAD) {
            some.iter().for_each(|w| self.tables.index().warm(w.hash));
            some.iter()
                .for_each(|w| self.commit(w, || replaces(w.ticket)));
        }
    }

    /// Makes the index lead to the record, if its object was not superseded meanwhile.
    fn commit(&self, written: &Written, replaces: impl Fn() -> Option<(KeyHash, Address)>) {
        let mut shard = self.tables.shard(written.hash).write();
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
        let replaced =
            replaces().is_some_and(|(hash, old)| self.tables.index().replace_if(hash, old, entry));
        if !replaced {
            self.insert_entry(written.hash, entry);
        }
        if let Some(pending) = shard.pending.remove(&written.hash) {
            self.release(pending.store, pending.object.memory_bytes());
        }
    }

    fn insert_entry(&self, hash: KeyHash, entry: IndexEntry) {
        // An entry of another key with the same hash bits (a colliding key) is pushed out of the index. Its
        // record becomes dead. Otherwise a restart could bring the record back when it is out of date.
        for colliding in self.tables.index().lookup(hash) {
            rule!(
                "commit: a colliding key that loses its entry becomes dead",
                self.catalogue.log_record_tombstone(colliding),
                ()
            );
        }
        let index = self.tables.index();
        let inserted = match index.insert(hash, entry) {
            Insert::Dropped if may_displace(&entry) && self.make_room(hash) => {
                index.insert(hash, entry)
            }
            inserted => inserted,
        };
        match inserted {
            Insert::Replaced(_) => add(&self.store.counters.index_displaced, 1),
            Insert::Dropped => {
                rule!(
                    "commit: a record without a place in the index becomes dead",
                    self.catalogue.log_record_tombstone(entry),
                    ()
                );
                add(&self.store.counters.index_displaced, 1);
            }
            Insert::Stored | Insert::Present(_) => {}
        }
    }

    /// Removes one entry from the full index to free a slot for `hash`. Among the entries in slots that
    /// `hash` can use, it chooses the least used entry. Of equally used entries, it chooses the oldest.
    /// Returns false if there is no entry.
    fn make_room(&self, hash: KeyHash) -> bool {
        let index = self.tables.index();
        let stores = self.fleet.stores();
        let known = index.neighbours(hash).filter_map(|entry| {
            let store = stores.at(entry.address)?;
            let place = store.space.position(Spot::of(&entry))?;
            Some((entry.freq, place, entry))
        });
        let Some((_, _, least)) = known.min_by_key(|(freq, place, _)| (*freq, *place)) else {
            return false;
        };
        // The record tombstone comes before the removal of the entry: a record that the index does not know
        // any more must not return.
        rule!(
            "commit: an entry that gives way in a full index becomes dead",
            self.catalogue.log_record_tombstone(least),
            ()
        );
        add(&self.store.counters.index_displaced, 1);
        index.evict(hash, least)
    }

    /// Releases the memory of an object that waited for the store with this number.
    fn release(&self, store: StoreId, bytes: usize) {
        let stores = self.fleet.stores();
        self.budget.release_for(&stores, store, bytes);
    }

    /// Gives up an object on its way to disk.
    pub(super) fn forget(&self, hash: KeyHash, ticket: u64) {
        let mut shard = self.tables.shard(hash).write();
        if shard.pending.get(&hash).is_some_and(|p| p.ticket == ticket)
            && let Some(pending) = shard.pending.remove(&hash)
        {
            self.release(pending.store, pending.object.memory_bytes());
            add(&self.store.counters.drop_write_error, 1);
        }
    }
}

/// Reuse: the records of a segment that is about to be overwritten.
impl Objects {
    /// Returns the number of uses of a record since it was written, if the index still leads to it.
    pub(super) fn uses(&self, spot: Spot, hash: KeyHash) -> Option<u8> {
        let found = self.tables.entry_at(hash, spot)?;
        // An object that is still in RAM when its segment is about to be reused is in use, though it was not
        // read from disk.
        let in_ram = self.tables.shard(hash).read().ram.peek(&hash).is_some();
        Some(found.freq.max(u8::from(in_ram)))
    }

    /// Returns the object that the RAM tier has under this hash. This does not count as a use.
    pub(super) fn in_ram(&self, hash: KeyHash) -> Option<Arc<Object>> {
        self.tables.shard(hash).read().ram.peek(&hash).cloned()
    }

    /// Returns the fragments of the versions that requests are reading.
    pub(super) fn held_fragments(&self) -> HashSet<KeyHash> {
        // The fragments together are limited to the maximum length of one object.
        let room = self.puts.object_bytes_max();
        self.holds.fragments(self.tables.shards(), room)
    }

    /// Returns whether reinsertion may read more records. If not, the remaining memory for pending objects is
    /// left to new objects.
    pub(super) fn has_room_for_reinsertion(&self) -> bool {
        self.budget.has_room_for_reinsertion()
    }

    /// Makes the record at `spot` wait to be written again, if it is still the current record of its key. A
    /// record that is not `held` by a reader waits only if it is worth keeping, if there is memory for it
    /// among the pending objects, and if `spend` allows its bytes. Returns the ticket of the waiting
    /// object.
    pub(super) fn wait_again(
        &self,
        entry: &Entry,
        spot: Spot,
        object: Arc<Object>,
        held: bool,
        spend: impl FnOnce(u64) -> bool,
    ) -> Option<u64> {
        let held = held
            && self
                .holds
                .has_fragment(self.keys.hash(object.key()), &object);
        if !held && !self.worth_keeping(&object) {
            return None;
        }
        let ticket = self.numbers.next();
        let mut shard = self.tables.shard(entry.hash).write();
        let present = self.tables.leads_to(entry.hash, spot);
        // A superseded record, or a record that is being replaced, must not be written after its
        // successor.
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
        // The limit for pending objects does not apply to held fragments; `held_fragments` limits their
        // bytes.
        let bytes = object.memory_bytes();
        if held {
            self.budget.take(&self.store, bytes);
        } else if !self.budget.reserve(&self.store, bytes) {
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
        if object.meta().expires < self.clock.wall() {
            return false;
        }
        // A fragment without its head cannot be requested.
        object.kind != RecordKind::Fragment || {
            let head = self.keys.hash(object.key());
            self.tables.is_known(head)
        }
    }

    /// Drops the index entry of a record. Returns true if there was an entry.
    pub(super) fn drop_entry(&self, hash: KeyHash, spot: Spot) -> bool {
        let _shard = self.tables.shard(hash).write();
        self.tables.index().remove_if(hash, spot.address).is_some()
    }

    /// Drops all index entries of these sectors. Returns the number of dropped entries.
    pub(super) fn sweep(&self, sectors: Range<u64>) -> u64 {
        self.tables.index().sweep(sectors).run()
    }
}
