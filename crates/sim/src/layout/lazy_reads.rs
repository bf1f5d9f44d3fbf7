//! LAZY-READS: reads wait for further reads, and all waiting reads are issued together, sorted by position.
//!
//! Rule (USITS'99 section 3): a URL-read is queued. When N reads are queued (N = 10), or when a timeout below
//! a second has expired, all queued reads are issued, sorted by file position. So n reads cost n + 1 head
//! movements: one to each object, and one back to the position of the writes. The queue is
//! [`foxy_policy::ReadQueue`]; reads are not merged. If an object is deleted while its read still waits, that
//! read is issued first (the papers do not specify this).

use std::time::Duration;

use foxy_base::MonoTime;
use foxy_policy::{PendingRead, ReadOrder, ReadOrderConfig, ReadQueue};

use crate::model::SimTime;

/// Parameters of lazy reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LazyConfig {
    /// Number of reads in a batch.
    pub batch: u32,
    /// Longest wait of the oldest read.
    pub timeout: SimTime,
}

impl Default for LazyConfig {
    /// Batches of 10 reads, as in the papers. The papers state a timeout of "a fraction of a second"; the
    /// default is half a second.
    fn default() -> Self {
        Self {
            batch: 10,
            timeout: SimTime::from_millis(500.0),
        }
    }
}

/// The queue of waiting reads.
#[derive(Debug)]
pub struct LazyReads {
    most: usize,
    queue: ReadQueue<u64>,
    waiting: Vec<u64>,
    batch: Vec<PendingRead<u64>>,
}

const fn mono(time: SimTime) -> MonoTime {
    MonoTime(time.as_nanos())
}

impl LazyReads {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(config: LazyConfig) -> Self {
        let most = config.batch as usize;
        let config = ReadOrderConfig {
            // An object in several pieces counts as one read, but the queue would count each piece. Therefore
            // `LazyReads` counts up to N itself, and the queue has no limit.
            batch: usize::MAX,
            timeout: Duration::from_nanos(config.timeout.as_nanos()),
            order: ReadOrder::Ascending,
            merge_gap_bytes: 0,
            merge_max_bytes: 0,
        };
        Self {
            most,
            queue: ReadQueue::new(config),
            waiting: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// Queues a read of an object that is stored in `ranges`.
    pub fn push(&mut self, object: u64, ranges: &[(u64, u64)], now: SimTime) {
        for (at, len) in ranges {
            let len = u32::try_from(*len).unwrap_or(u32::MAX);
            self.queue.push(
                PendingRead {
                    at: *at,
                    len,
                    tag: object,
                },
                mono(now),
            );
        }
        self.waiting.push(object);
    }

    /// True if a batch should be issued: N objects wait, or the oldest read has waited too long.
    #[must_use]
    pub fn is_due(&self, now: SimTime) -> bool {
        let full = !self.waiting.is_empty() && self.waiting.len() >= self.most;
        full || self.queue.is_due(mono(now))
    }

    /// True if a read of the object waits.
    #[must_use]
    pub fn waits(&self, object: u64) -> bool {
        self.waiting.contains(&object)
    }

    /// Removes all waiting reads and returns their ranges, sorted by position.
    pub fn take(&mut self) -> Vec<(u64, u64)> {
        self.waiting.clear();
        self.queue.take(&mut self.batch);
        self.batch
            .iter()
            .map(|read| (read.at, u64::from(read.len)))
            .collect()
    }

    /// Number of objects that wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if no read waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_due_by_number_or_by_time_and_sorted() {
        let mut lazy = LazyReads::new(LazyConfig {
            batch: 3,
            timeout: SimTime::from_millis(100.0),
        });
        let at = SimTime::from_millis;
        lazy.push(1, &[(5120, 512), (9216, 512)], at(0.0));
        assert!(!lazy.is_due(at(99.0)) && lazy.is_due(at(100.0)));
        lazy.push(2, &[(0, 512)], at(50.0));
        assert!(!lazy.is_due(at(60.0)) && lazy.waits(2) && !lazy.waits(3));
        lazy.push(3, &[(1024, 512)], at(60.0));
        assert!(lazy.is_due(at(60.0)));
        assert_eq!(
            lazy.take(),
            [(0, 512), (1024, 512), (5120, 512), (9216, 512)]
        );
        assert!(lazy.is_empty() && !lazy.is_due(at(1e6)));
    }
}
