//! Limits retries: requests that are sent again to another origin. The limit is 20 % of all requests, with a
//! burst of 100 retries.

/// Number of parts that a retry costs. Each request earns one part, so five requests earn one retry.
const PARTS: u32 = 5;
/// Largest number of unused retries that the budget keeps.
const BURST: u32 = 100;

/// The remaining retries, counted in parts. A retry costs [`PARTS`] parts.
#[derive(Clone, Debug)]
pub(super) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(BURST * PARTS)
    }
}

impl Budget {
    /// Counts a request.
    pub(super) fn earn(&mut self) {
        self.0 = (self.0 + 1).min(BURST * PARTS);
    }

    /// Takes a retry. Returns false if no retry is left.
    pub(super) fn spend(&mut self) -> bool {
        let left = self.0.checked_sub(PARTS);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    #[test]
    fn retries_stay_below_a_fifth_and_the_burst() {
        for seed in 0..20 {
            let (mut rng, mut budget) = (Rng::new(seed), Budget::default());
            let (mut requests, mut retries) = (0, 0);
            for _ in 0..10_000 {
                requests += 1;
                budget.earn();
                for _ in 0..rng.below(4) {
                    retries += u64::from(budget.spend());
                }
                assert!(retries <= requests / 5 + 100, "seed {seed}");
            }
            assert!(retries >= requests / 5, "seed {seed}: {retries}");
        }
    }
}
