//! Marks that threads compare records with: the end of the log, and how far purges are known.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_format::LogPosition;

/// Marks of one store. The writer and the opening set them, everybody reads them.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Clusters not yet assembled begin here or later: a [`LogPosition`].
    log_end: AtomicU64,
    /// Records fetched when a smaller number was the newest purge are void.
    purge_floor: AtomicU64,
    /// The newest purge that its journal knew of when it was opened.
    journal_seen: AtomicU64,
}

impl Marks {
    /// Clusters not yet assembled begin here or later.
    pub(crate) fn log_end(&self) -> LogPosition {
        LogPosition(self.log_end.load(Ordering::Acquire))
    }

    pub(crate) fn set_log_end(&self, end: LogPosition) {
        self.log_end.store(end.0, Ordering::Release);
    }

    /// Records fetched when a smaller number was the newest purge are void.
    pub(crate) fn purge_floor(&self) -> u64 {
        self.purge_floor.load(Ordering::Acquire)
    }

    pub(crate) fn set_purge_floor(&self, floor: u64) {
        self.purge_floor.store(floor, Ordering::Release);
    }

    /// Raises the floor of purges to `floor`; a higher one stays.
    pub(crate) fn raise_purge_floor(&self, floor: u64) {
        self.purge_floor.fetch_max(floor, Ordering::AcqRel);
    }

    /// The newest purge that its journal knew of when it was opened.
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
