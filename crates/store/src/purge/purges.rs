//! The purges of the engine: how purges are made, looked up and swept. Objects are compared with the
//! purges before they are returned.

use std::sync::Arc;

use foxy_base::{Clock, rule};

use super::set::{PurgeSet, Verdict};
use super::{Places, Purge, PurgeError, PurgeStatus};
use crate::fleet::{Fleet, ticket_of};
use crate::interface::{EngineCounters, SyncTicket, add};
use crate::memory::{EngineCore, Tables};
use crate::removal::Catalogue;
use crate::shared::StoreShared;
use crate::{Object, StoreId};

/// Everything about purges of many objects: the set of purges, the removal of the objects that they
/// cover, and the journals that note the purges.
#[derive(Debug)]
pub struct Purges {
    set: PurgeSet,
    tables: Tables,
    catalogue: Arc<Catalogue>,
    fleet: Arc<Fleet>,
    clock: Arc<dyn Clock>,
    counters: Arc<EngineCounters>,
}

impl Purges {
    pub(crate) fn new(core: &EngineCore, catalogue: &Arc<Catalogue>) -> Self {
        Self {
            set: PurgeSet::default(),
            tables: core.tables.clone(),
            catalogue: Arc::clone(catalogue),
            fleet: Arc::clone(&core.fleet),
            clock: Arc::clone(&core.clock),
            counters: Arc::clone(&core.counters),
        }
    }

    /// Carries out `purge`. When this returns, no lookup returns a covered object any more (after a soft
    /// purge, lookups return it as stale). No covered object whose fetch began before the purge will be
    /// stored. Once the ticket has ended, the purge survives a power cut. This method never blocks on a disk.
    /// Returns the purge's number and the ticket.
    ///
    /// # Errors
    /// An error if the purge was not accepted. Then nothing was changed.
    pub fn purge_many(
        &self,
        purge: &Purge,
        places: Places,
    ) -> Result<(u64, SyncTicket), PurgeError> {
        let now = self.clock.wall();
        let (note, stores) = self.set.publish(purge, places, now, &self.fleet)?;
        add(&self.counters.purges, 1);
        if rule!(
            "purge: not durable while a store is missing that nobody can note",
            self.fleet.is_unnoted(),
            false
        ) {
            return Ok((note.sequence, SyncTicket::failed()));
        }
        let (ticket, parts) = SyncTicket::new(stores.len() as u32);
        for (store, part) in stores.iter().zip(parts) {
            store.journal.lock().ask(part);
            store.bell.ring();
        }
        Ok((note.sequence, ticket))
    }

    /// Handles a store that notes no removals any more: its contents may be out of date when it is used
    /// again. The journals of the other stores record a new purge number, so that the next start does not
    /// trust this store. (If the engine has no other store, nothing records this number.)
    pub(crate) fn leave_behind(&self, store: StoreId) {
        self.set.leave_behind();
        let able = |s: &&Arc<StoreShared>| s.id != store && s.takes_writes();
        for other in self.fleet.stores().iter().filter(able) {
            other.journal.lock().snapshot = true;
            other.bell.ring();
        }
    }

    /// The number of the newest purge. The caller reads this number before it sends a request to the
    /// origin, and stores the number with the response ([`crate::ObjectMeta::purge_sequence`]).
    #[must_use]
    pub fn purge_sequence(&self) -> u64 {
        self.set.latest()
    }

    /// Returns the progress of the purge with this number. Returns `None` if there was no such purge, or if
    /// the purge is forgotten. The engine remembers a limited number of the newest purges. After a restart it
    /// remembers only the purges that were still active.
    #[must_use]
    pub fn purge_status(&self, number: u64) -> Option<PurgeStatus> {
        self.set.status(number)
    }

    /// Returns the latest purges, newest first.
    #[must_use]
    pub fn purge_statuses(&self, limit: usize) -> Vec<PurgeStatus> {
        self.set.statuses(limit)
    }

    /// The number of purges with which objects are compared at present.
    #[must_use]
    pub fn active_purges(&self) -> usize {
        self.set.active()
    }

    /// The tables of keys.
    pub(crate) const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The stores.
    pub(crate) const fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// The set of purges, for journals and sweeps.
    pub(crate) const fn set(&self) -> &PurgeSet {
        &self.set
    }

    /// Returns the verdict of all purges on an object. This takes two atomic loads if the object was already
    /// compared with all of them.
    pub(crate) fn verdict(&self, object: &Object) -> Verdict {
        self.set.verdict(object)
    }

    /// Returns whether a purge has removed an object.
    pub(crate) fn has_removed(&self, object: &Object) -> bool {
        matches!(self.verdict(object), Verdict::Gone(_))
    }

    /// Returns the object if no hard purge covers it. Otherwise removes the object and returns `None`.
    pub(crate) fn unless_purged(&self, object: Arc<Object>) -> Option<Arc<Object>> {
        match self.set.verdict(&object) {
            Verdict::Clean | Verdict::Stale => Some(object),
            Verdict::Gone(number) => {
                self.take_away_purged(&object, number);
                None
            }
        }
    }

    /// Removes an object that purge `number` covers, if no other object in memory has replaced it.
    #[cold]
    pub(crate) fn take_away_purged(&self, object: &Object, number: u64) {
        let mut shard = self.tables.shard(object.hash()).write();
        let other = shard
            .in_memory(object.hash())
            .is_some_and(|present| present.meta().version != object.meta().version);
        let replaced = rule!(
            "purge: what took the place of a purged object stays",
            other,
            false
        );
        if !replaced && self.catalogue.supersede_locked(&mut shard, object.hash()) {
            drop(shard);
            add(&self.counters.purged_by_many, 1);
            self.set.count(number, 1);
        }
    }

    /// Requests new snapshots, without the retired purges, in all journals.
    pub(crate) fn tell_journals(&self) {
        for store in self.fleet.stores().iter() {
            store.journal.lock().snapshot = true;
            store.bell.ring();
        }
    }

    /// Returns a ticket for the removals that are on their way to disk.
    pub(crate) fn removals(&self) -> SyncTicket {
        ticket_of(&self.fleet.stores(), false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::tests::rig::{bare_store, hash, object, parts};
    use crate::{Object, Places, Purge, PurgeKind};

    fn everything() -> Purge {
        Purge {
            kind: PurgeKind::All,
            text: Vec::new(),
            partition: String::new(),
            soft: false,
        }
    }

    #[test]
    fn what_a_purge_covers_goes_when_somebody_asks_for_it() {
        let engine = parts(64 << 20);
        let purges = engine.purges();
        let old = Arc::new(Object::from_new(object("k", b"body"), 1));
        let shard = engine.core().tables.shard(hash("k"));
        shard.write().insert_ram(Arc::clone(&old));
        assert!(purges.unless_purged(Arc::clone(&old)).is_some());
        let (number, _) = purges.purge_many(&everything(), Places::Shared).unwrap();
        assert_eq!(
            (purges.purge_sequence(), purges.active_purges()),
            (number, 1)
        );
        assert!(purges.has_removed(&old) && engine.core().tables.is_known(hash("k")));
        assert!(purges.unless_purged(old).is_none() && !engine.core().tables.is_known(hash("k")));
        assert_eq!(
            purges.purge_status(number).map(|status| status.objects),
            Some(1)
        );
    }

    #[test]
    fn the_journals_of_those_that_stay_note_a_store_that_does_not() {
        let engine = parts(64 << 20);
        let stores = [bare_store(0), bare_store(1)];
        stores
            .iter()
            .for_each(|store| engine.fleet().registry().add(store, None));
        let before = engine.purges().purge_sequence();
        engine.purges().leave_behind(stores[0].id);
        assert!(engine.purges().purge_sequence() > before);
        let asked = stores
            .each_ref()
            .map(|store| !store.journal.lock().is_empty());
        assert_eq!(asked, [false, true]);
    }
}
