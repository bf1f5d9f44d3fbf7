//! The sweep: compares everything stored with the active purges, counts what they cover, and lets
//! hard purges retire once what they removed cannot come back without them.
//!
//! Purges are effective without a sweep. One thread of its own drives the sweep, step by step.

use std::collections::HashSet;
use std::sync::Arc;

use foxy_base::rule;

use super::Purges;
use super::walk::{Walk, Walked};
use crate::Durable;
use crate::purge::Verdict;
use crate::ticket::SyncTicket;

/// Hashes that one sweep remembers, so as not to count twice what is in memory and on disk.
const COUNTED_MAX: usize = 1 << 20;

/// The way of a sweep: everything that was stored when it began.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) walk: Walk,
    /// Stores that had been opened by then.
    pub(super) opened: u64,
}

/// A sweep under way.
#[derive(Debug)]
pub struct Sweep {
    purges: Arc<Purges>,
    way: Way,
    /// It deals with purges up to this number.
    goal: u64,
    counted: HashSet<u64>,
    /// Waits until removals are durable.
    ticket: Option<SyncTicket>,
}

/// One step of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepStep {
    /// This number of bytes was read; pause accordingly.
    Read(u64),
    /// Writers have to make removals durable; look again soon.
    Wait,
    /// It is over.
    Done,
}

impl Sweep {
    /// Goes along `way`, for purges up to number `goal`.
    pub(super) fn new(purges: Arc<Purges>, way: Way, goal: u64) -> Self {
        Self {
            purges,
            way,
            goal,
            counted: HashSet::new(),
            ticket: None,
        }
    }

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

    /// Goes through everything once more, as soon as no store comes, goes or is loaded.
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

fn visit(purges: &Purges, counted: &mut HashSet<u64>, walked: &Walked) {
    let object = &walked.object;
    match purges.verdict(object) {
        Verdict::Clean => {}
        Verdict::Gone(number) => purges.take_away_purged(object, number),
        Verdict::Stale => {
            let Some(number) = purges.set().soft_unswept(object) else {
                return;
            };
            // It is in memory and on disk, or the sweep has begun anew.
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
