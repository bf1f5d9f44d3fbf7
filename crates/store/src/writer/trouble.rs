//! The writer's reaction to failures of the disk: the pause before it writes again, and the notice to the
//! other stores that this store records no removals any more.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::MonoTime;

use crate::shared::{Failure, StoreShared};

/// A failed write or flush, to which the writer reacts.
#[derive(Debug)]
pub(super) struct Fault {
    doing: &'static str,
    at: Option<u64>,
    error: io::Error,
}

impl Fault {
    /// Makes the fault of a write at byte `at` of the disk.
    pub(super) const fn write(at: u64, error: io::Error) -> Self {
        Self {
            doing: "write",
            at: Some(at),
            error,
        }
    }

    /// Makes the fault of a write at byte `at` that was reported as done, but is not there.
    pub(super) fn lost(at: u64) -> Self {
        Self::write(at, io::Error::other("what was written is not there"))
    }

    /// Makes the fault of a flush.
    pub(super) const fn flush(error: io::Error) -> Self {
        Self {
            doing: "flush",
            at: None,
            error,
        }
    }
}

/// The state of the writer after failures of its disk.
#[derive(Debug)]
pub(super) struct Trouble {
    store: Arc<StoreShared>,
    retry_at: Option<MonoTime>,
    /// True if the other stores were informed that this store records no removals any more.
    left_behind: bool,
}

impl Trouble {
    pub(super) const fn new(store: Arc<StoreShared>) -> Self {
        Self {
            store,
            retry_at: None,
            left_behind: false,
        }
    }

    /// Handles a failure: the store may become read-only, and writing pauses. The pause doubles with
    /// each failure in a row.
    pub(super) fn failed(&mut self, fault: &Fault, now: MonoTime) {
        let count = self.store.write_failed(&Failure {
            doing: fault.doing,
            at: fault.at,
            error: &fault.error,
        });
        self.retry_at = Some(now + Duration::from_millis(100 << count.min(6)));
    }

    /// Returns whether writing still pauses.
    pub(super) fn pauses(&self, now: MonoTime) -> bool {
        self.retry_at.is_some_and(|at| now < at)
    }

    /// The end of the pause, if the pause is not over.
    pub(super) fn next_due(&self, now: MonoTime) -> Option<MonoTime> {
        self.retry_at.filter(|at| *at > now)
    }

    pub(super) fn may_write(&self, now: MonoTime) -> bool {
        self.store.takes_writes() && !self.pauses(now)
    }

    /// Notes that the other stores were informed that this store records no removals any more. Returns true
    /// at the first call.
    pub(super) const fn leave_behind(&mut self) -> bool {
        !std::mem::replace(&mut self.left_behind, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::stand::{NOW, Stand};

    #[test]
    fn the_pause_doubles_until_nothing_is_written_any_more() {
        let stand = Stand::new();
        let mut trouble = Trouble::new(stand.store);
        assert!(trouble.may_write(NOW) && trouble.next_due(NOW).is_none());
        for pause in [200, 400] {
            trouble.failed(&Fault::lost(0), NOW);
            let end = NOW + Duration::from_millis(pause);
            assert!(trouble.pauses(NOW) && !trouble.may_write(NOW));
            assert_eq!(trouble.next_due(NOW), Some(end));
            assert!(trouble.may_write(end));
        }
        trouble.failed(&Fault::lost(0), NOW);
        assert!(!trouble.may_write(NOW + Duration::from_secs(60)));
    }

    #[test]
    fn the_others_are_told_once() {
        let mut trouble = Trouble::new(Stand::new().store);
        assert_eq!(
            [trouble.leave_behind(), trouble.leave_behind()],
            [true, false]
        );
    }
}
