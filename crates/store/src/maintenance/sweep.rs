//! The sweep: it compares everything that is stored with the active purges, and counts the covered objects.
//! It lets a hard purge retire once no restart can bring the removed objects back, because then the purge
//! need not be active any more.
//!
//! Purges are effective without a sweep. A thread of the caller drives the sweep, step by step.

use std::collections::HashSet;
use std::sync::Arc;

use foxy_base::rule;

use super::walk::{Walk, Walked};
use crate::Durable;
use crate::interface::SyncTicket;
use crate::purge::{Purges, Verdict};

/// The maximum number of hashes that one sweep remembers. It remembers hashes so that an object that is
/// in memory and on disk is counted once.
const COUNTED_MAX: usize = 1 << 20;

/// The scope of a sweep: everything that was stored when it began.
#[derive(Debug)]
struct Way {
    walk: Walk,
    /// The number of stores that had been opened when the sweep began.
    opened: u64,
}

/// A sweep under way.
#[derive(Debug)]
pub struct Sweep {
    purges: Arc<Purges>,
    way: Way,
    /// The sweep compares objects with the purges up to this number.
    goal: u64,
    counted: HashSet<u64>,
    /// The ticket for the removals that the sweep made, while the sweep waits until they are durable.
    ticket: Option<SyncTicket>,
}

/// One step of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepStep {
    /// The step read this number of bytes. Pause before the next step in proportion to this number, so that
    /// reads of requests are not delayed.
    Read(u64),
    /// Writers must make removals durable; call again soon.
    Wait,
    /// The sweep has ended.
    Done,
}

impl Sweep {
    /// Makes a sweep of the scope `way`, for purges up to number `goal`.
    fn new(purges: Arc<Purges>, way: Way, goal: u64) -> Self {
        Self {
            purges,
            way,
            goal,
            counted: HashSet::new(),
            ticket: None,
        }
    }

    /// Makes one step. It blocks for at most one read.
    pub fn step(&mut self) -> SweepStep {
        if let Some(ticket) = &self.ticket {
            let Some(outcome) = ticket.outcome() else {
                return SweepStep::Wait;
            };
            let durable = rule!(
                "sweep: a purge ends when what it removed has durable tombstones",
                outcome == Durable::Yes,
                true
            );
            let all = durable && !self.way.walk.has_missed();
            return match self.purges.end_sweep(&self.way, self.goal, all) {
                true => SweepStep::Done,
                false => self.begin_anew(),
            };
        }
        let (purges, counted) = (&self.purges, &mut self.counted);
        let step = self.way.walk.step(|walked| visit(purges, counted, &walked));
        if !step.more {
            self.ticket = Some(self.purges.removals());
        }
        SweepStep::Read(step.read)
    }

    /// Begins the sweep again from the start. Returns [`SweepStep::Wait`] while a store is being added,
    /// taken out or loaded.
    fn begin_anew(&mut self) -> SweepStep {
        match self.purges.way() {
            Some(way) => {
                self.way = way;
                self.ticket = None;
                SweepStep::Read(0)
            }
            None => SweepStep::Wait,
        }
    }
}

impl Purges {
    /// First retires the swept purges that are older than everything stored. Then begins a sweep if a
    /// purge waits for a sweep. Returns `None` if no purge waits, or while a store is being added, taken
    /// out or loaded.
    #[must_use]
    pub fn sweep(self: &Arc<Self>) -> Option<Sweep> {
        let stores = self.fleet().stores();
        if self.set().age(&stores) {
            self.tell_journals();
        }
        let goal = self.set().unswept()?;
        let way = self.way()?;
        Some(Sweep::new(Arc::clone(self), way, goal))
    }

    /// Returns the scope of a sweep. Returns `None` while a store is being added, taken out or loaded.
    fn way(&self) -> Option<Way> {
        let _none_comes = self.fleet().try_lock_membership()?;
        let stores = self.fleet().stores();
        let loading = stores.iter().any(|s| s.loading.is_on());
        if rule!("sweep: it begins when everything is loaded", loading, false) {
            return None;
        }
        let walk = Walk::new(self.tables(), self.fleet(), true);
        Some(Way {
            walk: rule!(
                "sweep: a soft purge makes stale each copy in memory",
                walk.each_copy(),
                walk
            ),
            opened: self.fleet().registry().opened(),
        })
    }

    /// Ends a sweep that has reached the end of its scope `way` and compared objects with the purges up to
    /// number `goal`. `all` is true if the sweep could compare everything and its removals are durable.
    /// Returns false, and does not end the sweep, if a store was added since the sweep began, or may be in
    /// the process of being added. That store may have objects that the purges cover.
    fn end_sweep(&self, way: &Way, goal: u64, all: bool) -> bool {
        // While this lock is held, no store can be added: so no store is added between the next check and the
        // end of the sweep.
        let Some(_none_comes) = self.fleet().try_lock_membership() else {
            return false;
        };
        let came = self.fleet().registry().opened() != way.opened;
        if rule!(
            "sweep: it goes through a store that comes meanwhile",
            came,
            false
        ) {
            return false;
        }
        if self.set().swept(goal, all) {
            self.tell_journals();
        }
        true
    }
}

fn visit(purges: &Purges, counted: &mut HashSet<u64>, walked: &Walked) {
    let object = &walked.object;
    match purges.verdict(object) {
        Verdict::Clean => {}
        Verdict::Gone(number) => purges.take_away_purged(object, number),
        Verdict::Stale => {
            let Some(number) = purges.set().soft_unswept(object) else {
                return;
            };
            // The walk met this object before: it is in memory and on disk, or the sweep has begun again.
            if counted.contains(&object.hash().low()) {
                return;
            }
            if counted.len() < COUNTED_MAX {
                counted.insert(object.hash().low());
            }
            purges.set().count(number, 1);
        }
    }
}
