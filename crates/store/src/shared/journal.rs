//! The inbox of a store's purge journal: new notes (each note describes a purge of many objects, or a soft
//! purge), and the tickets of callers that wait until the notes are durable.

use std::mem;

use foxy_format::PurgeNote;

use crate::interface::{Durable, TicketPart};

/// Notes that wait to be written to a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalInbox {
    pub(crate) notes: Vec<PurgeNote>,
    pub(crate) waiting: Vec<TicketPart>,
    /// True if a snapshot was requested although no caller waits for it.
    pub(crate) snapshot: bool,
    /// The outcome for waiting callers; it is set once the writer has ended.
    closed: Option<Durable>,
}

impl JournalInbox {
    /// Takes everything that waits.
    pub(crate) fn take(&mut self) -> Self {
        let closed = self.closed;
        let taken = mem::take(self);
        self.closed = closed;
        taken
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.waiting.is_empty() && !self.snapshot
    }

    /// Adds a ticket part that ends when all notes so far are durable.
    pub(crate) fn ask(&mut self, part: TicketPart) {
        match self.closed {
            Some(outcome) => part.finish(outcome),
            None => self.waiting.push(part),
        }
    }

    /// Requests a snapshot, which contains all published purges.
    pub(crate) const fn want_snapshot(&mut self) {
        self.snapshot = true;
    }

    /// Handles the end of the writer. Waiting tickets end with `outcome`. If another writer continues with
    /// the store, they are passed to `heir`, the inbox of that writer.
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
