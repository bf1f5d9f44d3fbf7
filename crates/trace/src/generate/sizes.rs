//! Object sizes. A size follows from the object's id, so that no table is needed.

use foxy_base::Rng;

use super::dist;

/// A distribution of sizes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// The same number of bytes for all objects.
    Fixed(u64),
    /// Exponential distribution (Polygraph).
    Exponential {
        /// Mean size, bytes.
        mean: f64,
    },
    /// A lognormal body, with a Pareto tail for a share of the objects.
    Heavy {
        /// Median of the body, bytes.
        median: f64,
        /// Standard deviation of the body's logarithm.
        sigma: f64,
        /// Share of objects whose size comes from the tail, 0 to 1.
        tail: f64,
        /// Start of the tail, in bytes.
        from: f64,
        /// Exponent of the tail; below 2 the variance is infinite.
        alpha: f64,
        /// Largest size; larger values are reduced to it.
        most: u64,
    },
}

impl Sizes {
    /// Sizes with a heavy tail, as on the web. The body has a median of about 3 KB and a sigma of 1.2. The
    /// tail has 3 % of the sizes. It starts at 32 KB and has the exponent 1.3. The maximum is 64 MB.
    #[must_use]
    pub const fn web() -> Self {
        Self::Heavy {
            median: 2_900.0,
            sigma: 1.2,
            tail: 0.03,
            from: 32_768.0,
            alpha: 1.3,
            most: 64 << 20,
        }
    }

    /// Size of an object; at least 1.
    #[must_use]
    pub fn of(&self, seed: u64, object: u64, version: u32) -> u64 {
        let mut rng = Rng::new(
            seed ^ object.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(version).rotate_left(40),
        );
        self.draw(&mut rng)
    }

    /// Draws one size; at least 1.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let size = match *self {
            Self::Fixed(size) => return size.max(1),
            Self::Exponential { mean } => dist::exponential(rng, mean),
            Self::Heavy {
                median,
                sigma,
                tail,
                from,
                alpha,
                most,
            } => {
                let size = if rng.chance(tail) {
                    dist::pareto(rng, from, alpha)
                } else {
                    dist::lognormal(rng, median.ln(), sigma)
                };
                size.min(most as f64)
            }
        };
        (size.round() as u64).max(1)
    }

    /// Mean size of objects, by sampling with a fixed seed (within about 2 %).
    #[must_use]
    pub fn mean(&self) -> f64 {
        let mut rng = Rng::new(0x5123);
        (0..200_000)
            .map(|_| self.draw(&mut rng) as f64)
            .sum::<f64>()
            / 200_000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_has_a_median_of_3_kb_and_a_tail() {
        let mut all: Vec<u64> = (0..100_000).map(|id| Sizes::web().of(7, id, 0)).collect();
        all.sort_unstable();
        let median = all[50_000];
        assert!((2_900..3_200).contains(&median), "{median}");
        let total: u64 = all.iter().sum();
        let top: u64 = all[99_000..].iter().sum();
        assert!(top * 4 > total, "the top 1 % has {top} of {total}");
        assert!(all[99_999] > 1 << 20);
    }

    #[test]
    fn a_size_belongs_to_its_object_and_version() {
        let sizes = Sizes::Exponential { mean: 5000.0 };
        assert_eq!(sizes.of(1, 2, 0), sizes.of(1, 2, 0));
        assert_ne!(sizes.of(1, 2, 0), sizes.of(1, 2, 1));
        assert!((sizes.mean() / 5000.0 - 1.0).abs() < 0.02);
        assert_eq!(Sizes::Fixed(0).of(1, 1, 1), 1);
    }
}
