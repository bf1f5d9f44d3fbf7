//! Tickets and the periodic flush: when data is durable, and which callers are notified.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{MonoTime, rule};

use super::gather::{Gather, QueuePosition};
use super::io::Io;
use crate::Durable;
use crate::interface::{Health, TicketPart};
use crate::shared::{StoreShared, SyncRequest};

/// A ticket that has not ended yet.
#[derive(Debug)]
struct Waiting {
    part: Option<TicketPart>,
    failed: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Some of the objects and removals for which the ticket waits are not in a cluster yet. They are all in
    /// clusters once the gatherer's departures reach this position.
    Gathering(QueuePosition),
    /// The clusters up to this number have not all been written yet.
    Writing(u64),
    /// This flush has not been carried out yet.
    Flushing(u64),
}

/// The progress of the log with which a ticket is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    /// The number of items and removals that have left the gatherer.
    pub(super) left: QueuePosition,
    /// Number of the newest cluster.
    pub(super) last: u64,
    /// Number of the first cluster under way.
    pub(super) first_in_flight: Option<u64>,
}

/// The tickets that wait until something is durable, and the periodic flushes for which no caller
/// waits.
#[derive(Debug)]
pub(super) struct Tickets {
    store: Arc<StoreShared>,
    waiting: Vec<Waiting>,
    interval: Duration,
    /// All entries of the removal log with lower numbers than this were written before the last periodic
    /// flush began.
    removals_flushed: u64,
}

impl Tickets {
    pub(super) fn new(store: Arc<StoreShared>, interval: Duration) -> Self {
        let removals_flushed = store.removals.lock().next();
        Self {
            store,
            waiting: Vec::new(),
            interval,
            removals_flushed,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Begins to work on a ticket. Everything that arrived before it is already in the gatherer.
    pub(super) fn begin(&mut self, request: SyncRequest, gather: &mut Gather, now: MonoTime) {
        if request.objects {
            gather.fill_up(u64::MAX, now);
        }
        let mut position = gather.came();
        if !request.objects {
            position.items = 0;
        }
        self.waiting.push(Waiting {
            part: Some(request.part),
            failed: false,
            stage: Stage::Gathering(position),
        });
    }

    /// Returns whether a ticket waits for objects or removals beyond `left`, the position up to which
    /// objects and removals have left the gatherer.
    pub(super) fn wait_for_more_than(&self, left: QueuePosition) -> bool {
        self.waiting
            .iter()
            .any(|w| matches!(w.stage, Stage::Gathering(position) if !left.covers(position)))
    }

    /// Continues every ticket by one step.
    pub(super) fn step(&mut self, reached: Reached, io: &mut Io) {
        for ticket in &mut self.waiting {
            let flushed = ticket.advance(reached, io);
            let given_up = ticket.failed
                || rule!(
                    "ticket: a store that takes no writes ends it as failed",
                    self.store.health() != Health::Good,
                    false
                );
            let outcome = match flushed {
                Some(true) if !ticket.failed => Some(Durable::Yes),
                Some(_) => Some(Durable::Failed),
                None => given_up.then_some(Durable::Failed),
            };
            if let Some(outcome) = outcome
                && let Some(part) = ticket.part.take()
            {
                part.finish(outcome);
            }
        }
        self.waiting.retain(|w| w.part.is_some());
    }

    /// Handles a failed write: no waiting ticket may end as durable.
    pub(super) fn fail(&mut self) {
        for ticket in &mut self.waiting {
            ticket.failed = rule!(
                "ticket: one that was open when a write failed ends as failed",
                true,
                false
            );
        }
    }

    /// Makes written data durable at regular intervals. This includes entries of the removal log,
    /// because their tombstones may have to wait for a segment.
    pub(super) fn periodic_flush(&mut self, io: &mut Io, now: MonoTime) {
        if now < io.flushed_at() + self.interval {
            return;
        }
        let logged = self.store.removals.lock().next();
        let unflushed = rule!(
            "flush: what the removal log got asks for one too",
            logged != self.removals_flushed && self.store.takes_writes(),
            false
        );
        if io.is_dirty() || unflushed {
            self.removals_flushed = logged;
            io.want_flush();
        }
    }

    /// The time at which the next periodic flush is due, if there is something to flush.
    pub(super) fn next_due(&self, io: &Io) -> Option<MonoTime> {
        io.is_dirty().then(|| io.flushed_at() + self.interval)
    }
}

impl Waiting {
    /// Advances the ticket as far as possible. Returns the outcome of the flush for which it waits.
    fn advance(&mut self, reached: Reached, io: &mut Io) -> Option<bool> {
        if let Stage::Gathering(position) = self.stage
            && rule!(
                "ticket: it waits for what is still gathered",
                reached.left.covers(position),
                true
            )
        {
            self.stage = Stage::Writing(reached.last);
        }
        if let Stage::Writing(number) = self.stage
            && rule!(
                "ticket: it waits for the clusters under way",
                reached.first_in_flight.is_none_or(|first| first > number),
                true
            )
        {
            self.stage = Stage::Flushing(io.want_flush());
        }
        match self.stage {
            Stage::Flushing(number) => rule!(
                "ticket: it ends after a flush",
                io.flushed(number),
                Some(true)
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::stand::{NOW, Stand, item};
    use crate::{StoreOptions, SyncTicket};

    fn begin(tickets: &mut Tickets, gather: &mut Gather) -> SyncTicket {
        let (ticket, parts) = SyncTicket::new(1);
        for part in parts {
            let objects = true;
            tickets.begin(SyncRequest { objects, part }, gather, NOW);
        }
        ticket
    }

    #[test]
    fn a_ticket_waits_for_what_is_gathered_then_written_then_flushed() {
        for fails in [false, true] {
            let mut stand = Stand::new();
            let mut tickets = Tickets::new(stand.store.clone(), Duration::from_secs(1));
            let mut gather = Gather::new(&StoreOptions::default());
            gather.item(item(100), NOW);
            let ticket = begin(&mut tickets, &mut gather);
            let mut reached = Reached {
                left: gather.left(),
                last: 6,
                first_in_flight: Some(6),
            };
            assert!(tickets.wait_for_more_than(gather.left()));
            tickets.step(reached, &mut stand.io);
            // The cluster that contains the item is under way.
            gather.pop(u64::MAX).unwrap();
            assert!(!tickets.wait_for_more_than(gather.left()));
            (reached.left, reached.last) = (gather.left(), 7);
            tickets.step(reached, &mut stand.io);
            stand.run();
            tickets.step(reached, &mut stand.io);
            assert!(!ticket.is_done());
            // The cluster is written.
            reached.first_in_flight = Some(8);
            tickets.step(reached, &mut stand.io);
            assert!(!ticket.is_done());
            if fails {
                tickets.fail();
            }
            stand.run();
            tickets.step(reached, &mut stand.io);
            let right = if fails { Durable::Failed } else { Durable::Yes };
            assert_eq!(ticket.outcome(), Some(right));
            assert!(tickets.is_empty());
        }
    }

    #[test]
    fn what_nobody_waits_for_is_flushed_now_and_then() {
        let mut stand = Stand::new();
        let mut tickets = Tickets::new(stand.store.clone(), Duration::from_secs(1));
        let flushes = |stand: &Stand| stand.store.counters.read().flushes;
        stand
            .store
            .remove(crate::shared::Removal::Place(foxy_format::LogPosition(9)));
        tickets.periodic_flush(&mut stand.io, NOW);
        stand.run();
        assert_eq!(flushes(&stand), 0, "not yet");
        for later in [1, 2] {
            let now = NOW + Duration::from_secs(later);
            tickets.periodic_flush(&mut stand.io, now);
            stand.run();
            assert_eq!(flushes(&stand), 1, "once for one removal");
        }
    }
}
