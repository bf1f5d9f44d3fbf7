//! Budget for bytes that are written a second time: when a segment of a store is reused, objects in it that
//! are still in use are written again. Each first write increases the budget.
//!
//! The budget bounds write amplification: for every hundred bytes written for the first time, at most
//! `percent` bytes are rewritten. If a victim (the segment that is reused next) has little to rewrite, the
//! rest of the budget is kept, up to a limit, for a later victim.

/// A budget of bytes that may be rewritten.
#[derive(Clone, Copy, Debug)]
pub struct RewriteBudget {
    percent: u32,
    most: u64,
    hundredths: u64,
}

impl RewriteBudget {
    /// Creates a budget of `percent` bytes for each hundred new bytes. At most `most` bytes are kept.
    #[must_use]
    pub const fn new(percent: u32, most: u64) -> Self {
        Self {
            percent,
            most,
            hundredths: 0,
        }
    }

    /// Records bytes that were written for the first time.
    pub fn earn(&mut self, bytes: u64) {
        let earned = bytes.saturating_mul(u64::from(self.percent));
        let most = self.most.saturating_mul(100);
        self.hundredths = self.hundredths.saturating_add(earned).min(most);
    }

    /// Bytes that may be rewritten now.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.hundredths / 100
    }

    /// Takes `bytes` if they are available; returns false and takes nothing otherwise.
    pub fn spend(&mut self, bytes: u64) -> bool {
        let left = self.hundredths.checked_sub(bytes.saturating_mul(100));
        self.hundredths = left.unwrap_or(self.hundredths);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_never_exceed_their_share_of_new_writes() {
        let mut rng = foxy_base::Rng::new(1);
        let mut budget = RewriteBudget::new(15, 1 << 20);
        let (mut new, mut again, mut refused) = (0u64, 0u64, 0u64);
        for _ in 0..10_000 {
            let bytes = rng.below(5_000);
            budget.earn(bytes);
            new += bytes;
            let wanted = rng.below(1_500);
            if budget.spend(wanted) {
                again += wanted;
            } else {
                refused += 1;
            }
            assert!(again * 100 <= new * 15, "{again} of {new}");
        }
        // Nearly all of the budget can be used.
        assert!(again * 100 > new * 14 && refused > 0, "{again} of {new}");
    }

    #[test]
    fn what_is_left_over_is_kept_up_to_the_limit() {
        let mut budget = RewriteBudget::new(10, 1000);
        budget.earn(1_000_000);
        assert_eq!(budget.bytes(), 1000);
        assert!(!budget.spend(1001) && budget.spend(1000) && !budget.spend(1));
        budget.earn(9);
        assert_eq!(budget.bytes(), 0);
        budget.earn(1);
        assert!(budget.spend(1));
    }
}
