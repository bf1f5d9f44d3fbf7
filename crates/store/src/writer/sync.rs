//! Tickets and the periodic flush: when something is durable, and who is told.

use crate::Durable;
use crate::inbox::SyncRequest;
use crate::stats::Health;
use crate::ticket::TicketPart;
use foxy_base::rule;

use super::Writer;
use super::gather::Mark;

/// A ticket on its way.
#[derive(Debug)]
pub(super) struct Waiting {
    part: Option<TicketPart>,
    failed: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The objects and removals before the ticket have not all been assembled.
    Gathering(Mark),
    /// Clusters up to this number have to be written.
    Writing(u64),
    /// This flush has to be carried out.
    Flushing(u64),
}

impl Writer {
    /// Begins to work on a ticket. Everything that came before it is in the gatherer already.
    pub(super) fn begin_ticket(&mut self, request: SyncRequest) {
        if request.objects {
            self.gather.fill_up(u64::MAX, self.now);
        }
        let mut mark = self.gather.came;
        if !request.objects {
            mark.items = 0;
        }
        self.waiting.push(Waiting {
            part: Some(request.part),
            failed: false,
            stage: Stage::Gathering(mark),
        });
    }

    /// Returns whether a ticket waits for objects or removals that have not left the gatherer.
    pub(super) fn tickets_gathering(&self) -> bool {
        self.waiting
            .iter()
            .any(|w| matches!(w.stage, Stage::Gathering(mark) if !self.gather.left.covers(mark)))
    }

    /// Takes every ticket a step further.
    pub(super) fn sync_step(&mut self) {
        let first_in_flight = self
            .clusters
            .iter()
            .map(|c| c.number)
            .min()
            .unwrap_or(u64::MAX);
        let mut waiting = std::mem::take(&mut self.waiting);
        for ticket in &mut waiting {
            if let Stage::Gathering(mark) = ticket.stage
                && rule!(
                    "ticket: it waits for what is still gathered",
                    self.gather.left.covers(mark),
                    true
                )
            {
                ticket.stage = Stage::Writing(self.chain.last());
            }
            if let Stage::Writing(number) = ticket.stage
                && rule!(
                    "ticket: it waits for the clusters under way",
                    first_in_flight > number,
                    true
                )
            {
                ticket.stage = Stage::Flushing(self.io.want_flush());
            }
            let flushed = match ticket.stage {
                Stage::Flushing(number) => rule!(
                    "ticket: it ends after a flush",
                    self.io.flushed(number),
                    Some(true)
                ),
                _ => None,
            };
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
        waiting.retain(|w| w.part.is_some());
        self.waiting = waiting;
    }

    /// A write failed: nobody who waits may be told that it is durable.
    pub(super) fn fail_tickets(&mut self) {
        for ticket in &mut self.waiting {
            ticket.failed = rule!(
                "ticket: one that was open when a write failed ends as failed",
                true,
                false
            );
        }
    }

    /// Makes what was written durable every now and then; entries of the removal log too, for their
    /// tombstones may have to wait for a segment.
    pub(super) fn periodic_flush(&mut self) {
        if self.now < self.io.flushed_at + self.sync_interval {
            return;
        }
        let logged = self.store.removals.lock().next();
        let unflushed = rule!(
            "flush: what the removal log got asks for one too",
            logged != self.removals_flushed && self.store.takes_writes(),
            false
        );
        if self.io.dirty || unflushed {
            self.removals_flushed = logged;
            self.io.want_flush();
        }
    }
}
