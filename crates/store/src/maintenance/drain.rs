//! Draining: the records of a store move to the other stores if they are worth keeping (`is_wanted`).
//! Meanwhile the store is still read.
//!
//! The caller drives the drain step by step, as it drives a scrub. A record is moved by sending it to another
//! store like a newly stored object. The old record becomes dead in the log, and its index entry is removed.
//! Lookups find the record in memory until it is written to the other disk. The record keeps its version and
//! its fetch times.

use std::collections::VecDeque;
use std::sync::Arc;

use foxy_base::{Clock, WallTime, rule};
use foxy_policy::CachePolicy;

use super::walk::{Place, Walk};
use crate::fleet::Fleet;
use crate::interface::{Duty, Spot, add};
use crate::memory::{EngineCore, MemoryBudget, Numbers, Pending, Stage, Tables};
use crate::purge::Purges;
use crate::put::{Routes, largest_record};
use crate::shared::{Item, Removal, StoreShared};
use crate::{Object, StoreId};

/// A drain under way.
#[derive(Debug)]
pub struct Drain {
    fleet: Arc<Fleet>,
    mover: Arc<Mover>,
    walk: Walk,
    /// The stores that are drained.
    stores: Vec<StoreId>,
    /// The records that were read and not moved yet.
    found: VecDeque<(Arc<Object>, Place)>,
}

/// One step of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainStep {
    /// The step read this number of bytes. Pause before the next step in proportion to this number, so that
    /// reads of requests are not delayed.
    Read(u64),
    /// The other stores must write first; call again soon.
    Wait,
    /// The drain has ended.
    Done,
}

/// The result of moving a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moved {
    Yes,
    /// The record is not wanted, or the index does not lead to it any more.
    No,
    /// No other store has room for the record at the moment.
    NotYet,
}

/// Returns whether a record is worth moving. It must not have expired. It must also have been used since
/// it was written (`uses` > 0), or the other store must have unused segments (`free_room`).
fn is_wanted(expires: WallTime, now: WallTime, uses: u8, free_room: bool) -> bool {
    expires >= now && (uses > 0 || free_room)
}

/// Sends records from one store to another.
#[derive(Debug)]
pub(crate) struct Mover {
    tables: Tables,
    purges: Arc<Purges>,
    routes: Arc<Routes>,
    budget: Arc<MemoryBudget>,
    numbers: Arc<Numbers>,
    clock: Arc<dyn Clock>,
}

impl Mover {
    pub(crate) fn new(core: &EngineCore, purges: &Arc<Purges>, routes: &Arc<Routes>) -> Self {
        Self {
            tables: core.tables.clone(),
            purges: Arc::clone(purges),
            routes: Arc::clone(routes),
            budget: Arc::clone(&core.budget),
            numbers: Arc::clone(&core.numbers),
            clock: Arc::clone(&core.clock),
        }
    }

    /// The part that chooses the store to which a record moves.
    #[cfg(test)]
    pub(crate) fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Sends a record of `from` to another store.
    fn move_out(&self, from: &StoreShared, object: &Arc<Object>, spot: Spot) -> Moved {
        let hash = object.hash();
        let mut shard = self.tables.shard(hash).write();
        let entry = self.tables.entry_at(hash, spot);
        let dead = object.meta().purge_sequence < from.marks.purge_floor();
        let purged = self.purges.has_removed(object);
        let covered = rule!("drain: what is purged does not move", dead || purged, false);
        let Some(entry) = entry.filter(|_| !covered) else {
            return Moved::No;
        };
        // An object of this key waits to be written: it is newer than the record and will replace it.
        if rule!(
            "drain: what is about to be replaced does not move",
            shard.pending.contains_key(&hash),
            false
        ) {
            return Moved::No;
        }
        let uses = entry.freq.max(u8::from(shard.ram.peek(&hash).is_some()));
        let Some(to) = self.routes.route(object.route()) else {
            return Moved::NotYet;
        };
        let fits = object.record_bytes() <= largest_record(to.space.geometry().cluster_bytes);
        let free = to.space.incarnations().any(|incarnation| incarnation == 0);
        if !fits || !is_wanted(object.meta().expires, self.clock.wall(), uses, free) {
            return Moved::No;
        }
        if !self.budget.reserve(&to, object.memory_bytes()) {
            return Moved::NotYet;
        }
        if let Some(place) = from.space.position(spot) {
            rule!(
                "drain: a record that moves becomes dead in its old place",
                from.remove(Removal::Place(place)),
                ()
            );
        }
        self.tables.index().remove_if(hash, spot.address);
        let ticket = self.numbers.next();
        let pending = Pending {
            object: Arc::clone(object),
            store: to.id,
            ticket,
            stage: Stage::Waiting,
        };
        shard.pending.insert(hash, pending);
        drop(shard);
        to.push(Item {
            hash,
            ticket,
            group: object.group(),
            bytes: object.record_bytes() as u32,
        });
        add(&from.counters.moved, 1);
        add(&from.counters.moved_bytes, object.record_bytes() as u64);
        Moved::Yes
    }
}

impl Drain {
    /// Begins a drain of the stores with the duty [`Duty::Draining`]. Returns `None` in three cases: there is
    /// no such store, a store is still being loaded, or objects still wait to be written to a store that
    /// should be drained.
    pub(crate) fn begin(tables: &Tables, fleet: &Arc<Fleet>, mover: &Arc<Mover>) -> Option<Self> {
        let stores = fleet.stores();
        let draining = |s: &&Arc<StoreShared>| s.member.duty() == Duty::Draining;
        let ids: Vec<_> = stores.iter().filter(draining).map(|s| s.id).collect();
        let loading = stores.iter().any(|s| s.loading.is_on());
        if ids.is_empty() || loading {
            return None;
        }
        // Objects that wait to be written to a draining store must be written before the store is walked.
        // After the barrier, no thread sends new objects to such a store. If objects still wait, the
        // caller tries again later.
        tables.shards().barrier();
        let waits = |s: &&Arc<StoreShared>| s.load.has_pending();
        if stores.iter().filter(draining).any(|s| waits(&s)) {
            return None;
        }
        let mut walk = Walk::new(tables, fleet, false).thorough().copying();
        walk.drop_segments(|store| !ids.contains(&store.id));
        Some(Self {
            fleet: Arc::clone(fleet),
            mover: Arc::clone(mover),
            walk,
            stores: ids,
            found: VecDeque::new(),
        })
    }

    /// Makes one step. It blocks for at most one read.
    pub fn step(&mut self) -> DrainStep {
        self.leave_out();
        while let Some((object, place)) = self.found.pop_front() {
            if self.send(&object, place) == Moved::NotYet {
                self.found.push_front((object, place));
                return DrainStep::Wait;
            }
        }
        let found = &mut self.found;
        let step = self
            .walk
            .step(|walked| found.push_back((walked.object, walked.place)));
        self.walk.take_faults();
        self.tell();
        if step.more || !self.found.is_empty() {
            return DrainStep::Read(step.read);
        }
        self.end();
        DrainStep::Done
    }

    /// Removes from the drain the stores that do not drain any more: stores that were taken out or are being
    /// taken out, and stores whose drain was cancelled.
    fn leave_out(&mut self) {
        let stores = self.fleet.stores();
        let drains = |id: &StoreId| {
            stores
                .by_id(*id)
                .is_some_and(|s| s.member.duty() == Duty::Draining)
        };
        let before = self.stores.len();
        self.stores.retain(drains);
        if self.stores.len() < before {
            let rest = &self.stores;
            self.walk.drop_segments(|store| !rest.contains(&store.id));
            self.found.retain(
                |(_, place)| matches!(place, Place::Store { store, .. } if rest.contains(store)),
            );
        }
    }

    fn send(&self, object: &Arc<Object>, place: Place) -> Moved {
        let Place::Store {
            store,
            segment,
            offset,
            ..
        } = place
        else {
            return Moved::No;
        };
        let units = u32::try_from(offset / foxy_format::UNIT).unwrap_or(u32::MAX);
        let stores = self.fleet.stores();
        let from = stores.by_id(store);
        match from.and_then(|from| Some((from, from.space.spot(segment, units)?))) {
            Some((from, spot)) => self.mover.move_out(from, object, spot),
            None => Moved::No,
        }
    }

    /// Publishes, for each store of the drain, the number of segments that are still to be walked.
    fn tell(&self) {
        for store in self.fleet.stores().iter() {
            if self.stores.contains(&store.id) {
                let left = self.walk.segments_left_of(store.id);
                store.member.set_left(left);
            }
        }
    }

    fn end(&self) {
        for store in self.fleet.stores().iter() {
            if self.stores.contains(&store.id) && store.member.duty() == Duty::Draining {
                store.member.set_duty(Duty::Drained);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_moves_and_the_rest_where_there_is_free_room() {
        let (now, later) = (WallTime::from_secs(5), WallTime::from_secs(6));
        assert!(is_wanted(later, now, 1, false) && is_wanted(later, now, 0, true));
        assert!(!is_wanted(later, now, 0, false));
        assert!(!is_wanted(now, later, 3, true), "past every use");
    }
}
