//! The inbox of a store's purge journal: new notes, and the callers that wait for them.

use std::mem;

use foxy_format::PurgeNote;

use crate::interface::{Durable, TicketPart};

/// Notes that wait to be written to a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalInbox {
    pub(crate) notes: Vec<PurgeNote>,
    pub(crate) waiting: Vec<TicketPart>,
    /// A snapshot is wanted, without anybody waiting for it.
    pub(crate) snapshot: bool,
    /// Set once the writer has ended: the outcome that waiting callers are told.
    closed: Option<Durable>,
}

impl JournalInbox {
    /// Takes what waits.
    pub(crate) fn take(&mut self) -> Self {
        let closed = self.closed;
        let taken = mem::take(self);
        self.closed = closed;
        taken
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.waiting.is_empty() && !self.snapshot
    }

    /// Adds a ticket part that ends when the notes so far are durable.
    pub(crate) fn ask(&mut self, part: TicketPart) {
        match self.closed {
            Some(outcome) => part.finish(outcome),
            None => self.waiting.push(part),
        }
    }

    /// Asks for a snapshot, which contains everything that is published.
    pub(crate) const fn want_snapshot(&mut self) {
        self.snapshot = true;
    }

    /// The writer has ended; those who wait are told, or handed over.
    pub(crate) fn close(&mut self, outcome: Durable, heir: Option<&mut Self>) {
        self.closed = Some(outcome);
        self.notes.clear();
        let waiting = mem::take(&mut self.waiting);
        match heir {
            Some(heir) => heir.waiting.extend(waiting),
            None => waiting.into_iter().for_each(|part| part.finish(outcome)),
        }
    }
}
