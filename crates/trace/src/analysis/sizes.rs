//! Exact quantiles of sizes, from the number of requests with each size.

use std::collections::BTreeMap;

/// Number of requests by size.
#[derive(Clone, Debug, Default)]
pub struct SizeCounts {
    counts: BTreeMap<u64, u64>,
    total: u64,
    sum: u128,
}

impl SizeCounts {
    /// Counts one size.
    pub fn add(&mut self, size: u64) {
        *self.counts.entry(size).or_insert(0) += 1;
        self.total += 1;
        self.sum += u128::from(size);
    }

    /// The mean; 0 if nothing was counted.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.total.max(1) as f64
    }

    /// Quantile `q` (0 to 1): the smallest size `s` such that a share `q` of all sizes is at most `s`; 0 if
    /// nothing was counted.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        let wanted = ((self.total as f64 * q).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (size, count) in &self.counts {
            seen += count;
            if seen >= wanted {
                return *size;
            }
        }
        0
    }

    /// Share of sizes below `limit`.
    #[must_use]
    pub fn below(&self, limit: u64) -> f64 {
        super::ratio(self.counts.range(..limit).map(|(_, n)| n).sum(), self.total)
    }

    /// Share of all bytes that belongs to sizes of at least `limit`.
    #[must_use]
    pub fn bytes_from(&self, limit: u64) -> f64 {
        let bytes: u128 = self
            .counts
            .range(limit..)
            .map(|(s, n)| u128::from(*s) * u128::from(*n))
            .sum();
        bytes as f64 / (self.sum as f64).max(1.0)
    }

    /// The largest size; 0 if nothing was counted.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.counts.keys().next_back().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_shares() {
        let mut sizes = SizeCounts::default();
        for size in [5, 1, 3, 3, 8] {
            sizes.add(size);
        }
        assert_eq!(
            (
                sizes.quantile(0.5),
                sizes.quantile(0.0),
                sizes.quantile(1.0)
            ),
            (3, 1, 8)
        );
        assert!((sizes.mean() - 4.0).abs() < 1e-9 && (sizes.below(5) - 0.6).abs() < 1e-9);
        assert!((sizes.bytes_from(5) - 13.0 / 20.0).abs() < 1e-9);
        assert_eq!((sizes.max(), SizeCounts::default().quantile(0.5)), (8, 0));
    }
}
