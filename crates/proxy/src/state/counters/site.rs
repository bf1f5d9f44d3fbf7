//! Counts of the requests of one site, by the result of the cache lookup and by class of the status.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::class::{CLASSES, class};
use super::{add_all, bump};
use crate::Outcome;

/// Labels of the result of the cache lookup: the cache answered the request, the cache did not answer it, or
/// the cache was not asked.
pub const CACHED: [&str; 3] = ["hit", "miss", "none"];

/// Counts of requests: the outer index is a position in [`CACHED`], the inner index a position in
/// [`CLASSES`].
pub type SiteTotals = [[u64; CLASSES.len()]; CACHED.len()];

/// The counts of one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OfWorker([[AtomicU64; CLASSES.len()]; CACHED.len()]);

/// The counts of a site's requests. Clones share these counts.
#[derive(Clone, Debug)]
pub(crate) struct SiteCounters(Arc<[OfWorker]>);

impl SiteCounters {
    /// Creates counts for this number of workers, at least one.
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers.max(1)).map(|_| OfWorker::default()).collect())
    }

    /// Counts a finished request. This needs only one addition. Only the thread of this worker may call this
    /// function.
    #[inline]
    pub(crate) fn finished(&self, worker: usize, outcome: Outcome, status: u16) {
        let cached = match outcome {
            _ if outcome.is_hit() => 0,
            _ if outcome.asks_cache() => 1,
            _ => 2,
        };
        if let Some(own) = self.0.get(worker) {
            bump(&own.0[cached][class(status)], 1);
        }
    }

    /// Returns the sum over all workers.
    pub(crate) fn totals(&self) -> SiteTotals {
        let mut totals = SiteTotals::default();
        for worker in self.0.iter() {
            for (to, from) in totals.iter_mut().zip(&worker.0) {
                add_all(to, from);
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_counted_once() {
        let site = SiteCounters::new(2);
        for (worker, outcome, status) in [
            (0, Outcome::MemoryHit, 200),
            (1, Outcome::HitOnError, 200),
            (1, Outcome::Miss, 404),
            (0, Outcome::OriginError, 502),
            (0, Outcome::ClientGone, 0),
            // Worker 2 does not exist, so this request is not counted.
            (2, Outcome::Miss, 200),
        ] {
            site.finished(worker, outcome, status);
        }
        let wanted = [[0, 0, 2, 0, 0, 0], [0, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 1]];
        assert_eq!(site.totals(), wanted);
    }
}
