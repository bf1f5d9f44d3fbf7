//! The writer's part of the purge journal: it makes the journal's writes and flushes, one write at a
//! time.

use std::sync::Arc;

use super::io::{Io, Purpose};
use super::trouble::Fault;
use crate::engine::StoreContext;
use crate::interface::add;
use crate::purge::{Journal, Purges};
use crate::shared::StoreShared;

/// The purge journal of an open store, with the disk to which it is written.
#[derive(Debug)]
pub(super) struct PurgeNotes {
    purges: Arc<Purges>,
    store: Arc<StoreShared>,
    journal: Journal,
}

impl PurgeNotes {
    pub(super) fn new(context: &StoreContext, store: Arc<StoreShared>, journal: Journal) -> Self {
        Self {
            purges: Arc::clone(&context.purges),
            store,
            journal,
        }
    }

    /// Returns whether nothing waits and nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.journal.is_idle(&self.store)
    }

    /// Ends the tickets of notes that are durable. Begins the next write, unless writing `pauses`.
    pub(super) fn step(&mut self, pauses: bool, io: &mut Io) {
        if let Some((write, at, len)) = self.journal.settle(|number| io.flushed(number)) {
            io.read(Purpose::JournalCheck(write), at, len);
        }
        if !self.store.takes_writes() {
            self.journal.give_up(&self.store);
            return;
        }
        if pauses {
            return;
        }
        if self.journal.is_broken() {
            self.journal.try_again(&self.store);
        }
        if let Some(write) = self.journal.begin(self.purges.set(), &self.store) {
            let len = write.bytes.len();
            add(&self.store.counters.meta_bytes, len as u64);
            add(&self.store.counters.journal_writes, 1);
            let purpose = Purpose::Journal(write.number);
            io.write(purpose, write.at, len, write.bytes);
        }
    }

    /// Handles the end of the write with this number, successful or not.
    pub(super) fn written(&mut self, write: u64, written: bool, io: &mut Io) {
        self.journal.written(write, written, || io.want_flush());
    }

    /// Checks the bytes that were read back after a write.
    pub(super) fn checked(&mut self, write: u64, found: Option<&[u8]>) -> Result<(), Fault> {
        match self.journal.checked(write, found) {
            true => Ok(()),
            false => Err(Fault::lost(self.store.space.geometry().journal_at())),
        }
    }
}
