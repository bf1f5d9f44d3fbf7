//! State that the threads of a run share: the beginning and the end of the measurement, counts, the versions
//! of the objects, and the record of the answers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::record::Recorder;
use super::version_tracker::VersionTracker;

/// Shared state of a run.
#[derive(Debug)]
pub(crate) struct Shared {
    measuring: AtomicBool,
    cooling: AtomicBool,
    stop: AtomicBool,
    taken: AtomicU64,
    warm_up: u64,
    requests: u64,
    /// Number of measured requests that have no answer yet.
    waiting: AtomicU64,
    /// Number of correct answers, including the warm-up. The progress line shows this number, and the number
    /// of faults (`failed`).
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Start of the run, in ns.
    pub(crate) start: u64,
    pub(crate) tracker: Option<Mutex<VersionTracker>>,
    pub(crate) record: Option<Mutex<Recorder>>,
}

/// Treatment of the next request: whether it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    WarmUp,
    Measured,
    /// There are no more requests.
    None,
}

impl Shared {
    /// The first `warm_up` requests are not measured, the next `requests` requests are measured. If
    /// `measuring` is false, no request is measured before a call of [`measure`](Self::measure).
    pub(crate) fn new(start: u64, warm_up: u64, requests: u64, measuring: bool) -> Self {
        Self {
            measuring: AtomicBool::new(measuring),
            cooling: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            warm_up,
            requests,
            waiting: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            start,
            tracker: None,
            record: None,
        }
    }

    pub(crate) fn take(&self) -> Taken {
        if !self.measuring() || self.cooling.load(Relaxed) {
            return Taken::WarmUp;
        }
        let n = self.taken.fetch_add(1, Relaxed);
        if n < self.warm_up {
            Taken::WarmUp
        } else if n - self.warm_up < self.requests {
            self.waiting.fetch_add(1, Relaxed);
            Taken::Measured
        } else {
            Taken::None
        }
    }

    pub(crate) fn warm(&self) -> bool {
        self.measuring() && self.taken.load(Relaxed) >= self.warm_up
    }

    pub(crate) fn measuring(&self) -> bool {
        self.measuring.load(Relaxed)
    }

    pub(crate) fn measure(&self) {
        self.measuring.store(true, Relaxed);
    }

    /// Ends the measurement. Requests that begin later do not count.
    pub(crate) fn cool_down(&self) {
        self.cooling.store(true, Relaxed);
    }

    /// Counts the end of a measured request. Must be called when the request has been answered or has failed.
    pub(crate) fn ended(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    pub(crate) fn all_ended(&self) -> bool {
        self.waiting.load(Relaxed) == 0
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }
}
