//! A histogram of times with logarithmic buckets. The width of a bucket is at most 0.8 % of its values. The
//! memory is constant, and histograms can be merged.

use std::time::Duration;

/// Number of buckets per power of two.
const STEPS: u64 = 128;
/// Each value below this limit has a separate bucket.
const EXACT: u64 = STEPS * 2;
const BUCKETS: usize = (EXACT + (64 - 8) * STEPS) as usize;

/// A histogram of times in nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    most: u64,
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
            sum: 0,
            most: 0,
        }
    }
}

impl Histogram {
    /// Counts one time.
    pub fn add(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.sum += u128::from(nanos);
        self.most = self.most.max(nanos);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.most = self.most.max(other.most);
    }

    /// Number of values counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// The mean; zero if nothing was counted.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let mean = self.sum / u128::from(self.total.max(1));
        Duration::from_nanos(mean as u64)
    }

    /// The largest value.
    #[must_use]
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.most)
    }

    /// The quantile `q` (0 to 1): at least a fraction `q` of all values is not above this time. The result is
    /// the upper end of a bucket, but not more than the largest value. It is zero if nothing was counted.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Duration {
        let wanted = ((self.total as f64 * q).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_end(at).min(self.most));
            }
        }
        self.max()
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < EXACT {
        return nanos as usize;
    }
    let shift = 63 - 7 - nanos.leading_zeros(); // leaves 8 bits, of which the top bit is 1
    let step = (nanos >> shift) - STEPS;
    (EXACT + u64::from(shift - 1) * STEPS + step) as usize
}

fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let (shift, step) = ((bucket - EXACT) / STEPS + 1, (bucket - EXACT) % STEPS);
    (u128::from(STEPS + step + 1) << shift)
        .saturating_sub(1)
        .min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for shift in 0..64 {
            for low in [0u64, 1, 77] {
                let value = (1u64 << shift).saturating_add(low << shift.max(7) >> 7);
                let at = bucket(value);
                assert!(upper_end(at) >= value, "{value}");
                assert!(
                    upper_end(at) as f64 <= value as f64 * 1.008 + 1.0,
                    "{value}"
                );
                last = last.max(at);
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for n in 1..BUCKETS {
            assert_eq!(bucket(upper_end(n - 1) + 1), n);
        }
    }

    #[test]
    fn quantiles_agree_with_sorting() {
        let mut rng = Rng::new(2);
        let mut all: Vec<u64> = (0..10_000)
            .map(|_| {
                let bits = rng.below(40) + 1;
                rng.below(1 << bits)
            })
            .collect();
        let (mut a, mut b) = (Histogram::default(), Histogram::default());
        for (n, value) in all.iter().enumerate() {
            if n % 3 == 0 {
                a.add(*value);
            } else {
                b.add(*value);
            }
        }
        a.merge(&b);
        all.sort_unstable();
        for q in [0.0, 0.25, 0.5, 0.99, 0.9999, 1.0] {
            let exact = all[((all.len() as f64 * q).ceil() as usize).max(1) - 1] as f64;
            let got = a.quantile(q).as_nanos() as f64;
            assert!(
                (exact..=exact * 1.008 + 1.0).contains(&got),
                "{q}: {got} {exact}"
            );
        }
        assert_eq!(a.count(), 10_000);
        assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);
    }
}
