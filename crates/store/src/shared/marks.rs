//! The marks of a store with which threads compare records: the end of the log, and purge numbers from the
//! purge journal.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_format::LogPosition;

/// The marks of one store. The writer and the opening code set them; all threads read them.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// The end of the log as a [`LogPosition`]: the next cluster is written at this position or later.
    log_end: AtomicU64,
    /// Each record contains the number of the newest purge at the time of its fetch. If that number is below
    /// this floor, the record is dead.
    purge_floor: AtomicU64,
    /// The number of the newest purge in the store's journal when the journal was opened.
    journal_seen: AtomicU64,
}

impl Marks {
    /// The end of the log: the next cluster is written at this position or later.
    pub(crate) fn log_end(&self) -> LogPosition {
        LogPosition(self.log_end.load(Ordering::Acquire))
    }

    pub(crate) fn set_log_end(&self, end: LogPosition) {
        self.log_end.store(end.0, Ordering::Release);
    }

    /// Each record contains the number of the newest purge at the time of its fetch. If that number is below
    /// this floor, the record is dead.
    pub(crate) fn purge_floor(&self) -> u64 {
        self.purge_floor.load(Ordering::Acquire)
    }

    pub(crate) fn set_purge_floor(&self, floor: u64) {
        self.purge_floor.store(floor, Ordering::Release);
    }

    /// Raises the floor of purges to `floor`; a higher floor stays.
    pub(crate) fn raise_purge_floor(&self, floor: u64) {
        self.purge_floor.fetch_max(floor, Ordering::AcqRel);
    }

    /// The number of the newest purge in the store's journal when the journal was opened.
    pub(crate) fn journal_seen(&self) -> u64 {
        self.journal_seen.load(Ordering::Acquire)
    }

    pub(crate) fn set_journal_seen(&self, seen: u64) {
        self.journal_seen.store(seen, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_floor_never_falls() {
        let marks = Marks::default();
        marks.set_purge_floor(5);
        marks.raise_purge_floor(3);
        assert_eq!(marks.purge_floor(), 5);
        marks.raise_purge_floor(7);
        assert_eq!(marks.purge_floor(), 7);
    }
}
