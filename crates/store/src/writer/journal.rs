//! The writer's part of the purge journal: writes and flushes, one write at a time.

use foxy_disk::AlignedBuf;

use super::Writer;
use super::io::Purpose;
use super::trouble::Fault;
use crate::stats::add;

impl Writer {
    /// Begins the next write of the purge journal, and ends what is durable.
    pub(super) fn journal_step(&mut self) {
        if let Some((write, at, len)) = self.journal.settle(|number| self.io.flushed(number)) {
            self.io.read(Purpose::JournalCheck(write), at, len);
        }
        if !self.store.takes_writes() {
            self.journal.give_up(&self.store);
            return;
        }
        if self.trouble.pauses(self.now) {
            return;
        }
        if self.journal.is_broken() {
            self.journal.try_again(&self.store);
        }
        if let Some(write) = self.journal.begin(&self.engine, &self.store) {
            let len = write.bytes.len();
            add(&self.store.counters.meta_bytes, len as u64);
            add(&self.store.counters.journal_writes, 1);
            let purpose = Purpose::Journal(write.number);
            self.io.write(purpose, write.at, len, write.bytes);
        }
    }

    /// The write of the purge journal with this number has completed or failed.
    pub(super) fn journal_done(&mut self, write: u64, result: std::io::Result<()>) {
        let written = result.is_ok();
        if let Err(error) = result {
            let at = self.store.geometry.journal_at();
            self.write_failed(&Fault::write(at, error));
        }
        self.journal
            .written(write, written, || self.io.want_flush());
    }

    /// Checks the bytes that were read back after a write of the journal.
    pub(super) fn journal_checked(
        &mut self,
        write: u64,
        result: &std::io::Result<()>,
        buf: Option<&AlignedBuf>,
    ) {
        let found = buf.filter(|_| result.is_ok());
        if !self.journal.checked(write, found.map(|buf| &buf[..])) {
            let at = self.store.geometry.journal_at();
            self.write_failed(&Fault::lost(at));
        }
    }
}
