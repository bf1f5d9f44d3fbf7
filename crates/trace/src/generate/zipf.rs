//! Zipf-distributed ranks over a universe of any size, in constant time and memory: rejection-inversion
//! after W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone
//! discrete distributions", ACM TOMACS 6(3), 1996.

use foxy_base::Rng;

/// A distribution over the ranks `0..n`, each with a probability proportional to `1 / (rank + 1)^alpha`.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    n: f64,
    alpha: f64,
    /// Lower bound of the random draws: the integral of the hat function at 3/2, minus 1. (The hat function
    /// is the curve `x^-alpha`. It runs through the weights of the ranks, which are counted from 1 here.)
    low: f64,
    high: f64,
    squeeze: f64,
}

impl Zipf {
    /// Creates a distribution over `n` ranks (at least 1) with exponent `alpha` (0 is uniform).
    #[must_use]
    pub fn new(n: u64, alpha: f64) -> Self {
        let n = n.max(1) as f64;
        let mut zipf = Self {
            n,
            alpha,
            low: 0.0,
            high: 0.0,
            squeeze: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(n + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Draws one rank, from 0.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }

    /// The expected number of different ranks among `draws` independent draws. It is exact for the first 4096
    /// ranks; later ranks are summed in logarithmic steps.
    #[must_use]
    pub fn expected_distinct(&self, draws: f64) -> f64 {
        let total = self.weight_sum();
        let seen = |rank: f64| -(-draws * self.density(rank) / total).exp_m1();
        self.sum_over_ranks(seen)
    }

    fn weight_sum(&self) -> f64 {
        self.sum_over_ranks(|rank| self.density(rank))
    }

    fn sum_over_ranks(&self, value: impl Fn(f64) -> f64) -> f64 {
        const EXACT: f64 = 4096.0;
        let mut sum: f64 = (1..=self.n.min(EXACT) as u64)
            .map(|rank| value(rank as f64))
            .sum();
        let mut from = EXACT + 1.0;
        while from <= self.n {
            let to = (from * 1.002).floor().clamp(from, self.n);
            sum += value((from + to) / 2.0) * (to - from + 1.0);
            from = to + 1.0;
        }
        sum
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.alpha)
    }

    /// Integral of the density. The formula is also exact for `alpha` 1, where the integral is a logarithm.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_m1_over((1.0 - self.alpha) * log) * log
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.alpha)).max(-1.0);
        (ln_1p_over(t) * y).exp()
    }
}

/// `(e^x - 1) / x`, accurate near 0 too.
fn exp_m1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// `ln(1 + x) / x`, accurate near 0 too.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        for alpha in [0.0, 0.6, 1.0, 1.3] {
            let zipf = Zipf::new(100, alpha);
            let mut counts = [0u32; 100];
            let mut rng = Rng::new(11);
            for _ in 0..400_000 {
                counts[zipf.draw(&mut rng) as usize] += 1;
            }
            let total: f64 = (1..=100).map(|k| f64::from(k).powf(-alpha)).sum();
            for rank in [0usize, 1, 9, 99] {
                let want = 400_000.0 * (rank as f64 + 1.0).powf(-alpha) / total;
                let got = f64::from(counts[rank]);
                assert!(
                    (got - want).abs() < 6.0 * want.sqrt(),
                    "{alpha} {rank}: {got} {want}"
                );
            }
        }
    }

    #[test]
    fn expected_distinct_matches_a_draw() {
        let zipf = Zipf::new(50_000, 0.8);
        let mut rng = Rng::new(1);
        let seen: std::collections::HashSet<_> =
            (0..100_000).map(|_| zipf.draw(&mut rng)).collect();
        let expected = zipf.expected_distinct(100_000.0);
        assert!(
            (seen.len() as f64 / expected - 1.0).abs() < 0.01,
            "{} {expected}",
            seen.len()
        );
    }

    #[test]
    fn one_rank_and_huge_universes() {
        let mut rng = Rng::new(1);
        assert_eq!(Zipf::new(0, 0.7).draw(&mut rng), 0);
        assert!(Zipf::new(1 << 40, 0.7).draw(&mut rng) < 1 << 40);
    }
}
