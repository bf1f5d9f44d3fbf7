//! Histograms of durations. The bounds of the buckets are powers of two, in microseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{add_all, bump};

/// Number of buckets of a latency histogram. Bucket `i` counts durations below `2^i` microseconds, if no
/// lower bucket counts them. The last bucket counts all longer durations.
pub const BUCKETS: usize = 28;

/// A histogram of durations. Only one worker writes it.
#[derive(Debug)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_us: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Counts one duration. Only the owning worker's thread may call this function.
    pub(super) fn note(&self, duration: Duration) {
        bump(&self.buckets[bucket(duration)], 1);
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        bump(&self.sum_us, us);
    }
}

fn bucket(duration: Duration) -> usize {
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    ((64 - us.leading_zeros()) as usize).min(BUCKETS - 1)
}

/// The sum of the histograms of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Requests per bucket (not cumulative): bucket `i` counts durations below `2^i` µs.
    pub buckets: [u64; BUCKETS],
    /// Sum of all durations, in microseconds.
    pub sum_us: u64,
}

impl Latency {
    pub(super) fn add(&mut self, histogram: &Histogram) {
        add_all(&mut self.buckets, &histogram.buckets);
        self.sum_us = self
            .sum_us
            .wrapping_add(histogram.sum_us.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_two_microseconds() {
        let us = Duration::from_micros;
        assert_eq!(bucket(us(0)), 0);
        assert_eq!(bucket(us(1)), 1);
        assert_eq!(bucket(us(3)), 2);
        assert_eq!(bucket(us(4)), 3);
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }
}
