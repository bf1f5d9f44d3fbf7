//! The sweep: compares everything stored with the active purges, counts what they cover, and lets
//! hard purges retire once what they removed cannot come back without them.
//!
//! Purges are true without it. It is driven by one thread of its own, step by step.

use std::collections::HashSet;
use std::sync::Arc;

use foxy_base::rule;

use super::walk::{Place, Walk, Walked};
use crate::fleet::ticket_of;
use crate::purge::Verdict;
use crate::ticket::SyncTicket;
use crate::{Durable, Engine};

/// Hashes that one sweep remembers, so as not to count twice what is in memory and on disk.
const COUNTED_MAX: usize = 1 << 20;

/// A sweep under way.
#[derive(Debug)]
pub struct Sweep {
    engine: Arc<Engine>,
    walk: Walk,
    /// It deals with purges up to this number.
    goal: u64,
    counted: HashSet<u64>,
    /// Waits until removals are durable.
    ticket: Option<SyncTicket>,
}

/// One step of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepStep {
    /// So many bytes were read; pause accordingly.
    Read(u64),
    /// Writers have to make removals durable; look again soon.
    Wait,
    /// It is over.
    Done,
}

impl Engine {
    /// Begins a sweep, if a purge waits for one and everything is loaded. Also retires purges
    /// that are older than all that is stored.
    #[must_use]
    pub fn sweep(self: &Arc<Self>) -> Option<Sweep> {
        let stores = self.stores();
        if self.purges.age(&stores) {
            self.tell_journals();
        }
        let goal = self.purges.unswept()?;
        let loading = stores.iter().any(|s| s.loading.is_on());
        if rule!("sweep: it begins when everything is loaded", loading, false) {
            return None;
        }
        Some(Sweep {
            walk: self.walk(true),
            engine: self.clone(),
            goal,
            counted: HashSet::new(),
            ticket: None,
        })
    }

    /// Journals shall be written anew, without the purges that are done with.
    fn tell_journals(&self) {
        for store in self.stores().iter() {
            store.journal.lock().snapshot = true;
            store.bell.ring();
        }
    }
}

impl Sweep {
    /// Goes on. Blocks for at most one read.
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
            let all = durable && !self.walk.has_missed();
            if self.engine.purges.swept(self.goal, all) {
                self.engine.tell_journals();
            }
            return SweepStep::Done;
        }
        let (engine, counted) = (&self.engine, &mut self.counted);
        let step = self.walk.step(|walked| visit(engine, counted, &walked));
        if !step.more {
            self.ticket = Some(ticket_of(&self.engine.stores(), false));
        }
        SweepStep::Read(step.read)
    }
}

fn visit(engine: &Engine, counted: &mut HashSet<u64>, walked: &Walked) {
    let object = &walked.object;
    match engine.purges.verdict(object) {
        Verdict::Clean => {}
        Verdict::Gone(number) => engine.take_away_purged(object, number),
        Verdict::Stale => {
            let Some(number) = engine.purges.soft_unswept(object) else {
                return;
            };
            let on_disk = matches!(walked.place, Place::Store { .. });
            if on_disk && counted.contains(&object.hash().low()) {
                return;
            }
            if counted.len() < COUNTED_MAX {
                counted.insert(object.hash().low());
            }
            engine.purges.count(number, 1);
        }
    }
}
