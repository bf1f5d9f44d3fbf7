//! The results of recent requests by key, for the command `foxy why`. They are in a table of fixed size, in
//! which newer results replace older results. Of the hits that need no fetch, only hits on large objects are
//! entered. The others are not entered, so that they need no additional work.

use std::sync::{Mutex, PoisonError};

use foxy_base::{KeyHash, WallTime};

use crate::Outcome;

/// Number of buckets in the table, which needs about 300 KiB.
const BUCKETS: usize = 4096;

/// The result of a request. For each key, the table keeps the last request that needed more than a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recent {
    /// The time when the answer was complete.
    pub at: WallTime,
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The reason for the outcome, as a fixed word; may be empty.
    pub reason: &'static str,
    /// Status sent to the client; 0 if no status was sent.
    pub status: u16,
    /// Status of the origin's answer, or 0.
    pub origin_status: u16,
}

/// The table of recent results.
#[derive(Debug)]
pub(crate) struct RecentTable {
    buckets: Mutex<Box<[Bucket]>>,
}

type Bucket = Option<(KeyHash, Recent)>;

impl Default for RecentTable {
    fn default() -> Self {
        Self {
            buckets: Mutex::new(vec![None; BUCKETS].into()),
        }
    }
}

impl RecentTable {
    fn bucket(key: KeyHash) -> usize {
        key.low() as usize % BUCKETS
    }

    pub(crate) fn note(&self, key: KeyHash, recent: Recent) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets[Self::bucket(key)] = Some((key, recent));
    }

    pub(crate) fn of(&self, key: KeyHash) -> Option<Recent> {
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets[Self::bucket(key)]
            .filter(|(owner, _)| *owner == key)
            .map(|(_, recent)| recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_ones_push_out_older_ones_and_nobody_gets_anothers() {
        let table = RecentTable::default();
        let recent = |status| Recent {
            at: WallTime(0),
            outcome: Outcome::Miss,
            reason: "",
            status,
            origin_status: 0,
        };
        let (a, colliding) = (KeyHash(1), KeyHash(1 + BUCKETS as u128));
        table.note(a, recent(200));
        assert_eq!(table.of(a), Some(recent(200)));
        assert_eq!(table.of(colliding), None);
        table.note(colliding, recent(404));
        assert_eq!(
            (table.of(a), table.of(colliding)),
            (None, Some(recent(404)))
        );
    }
}
