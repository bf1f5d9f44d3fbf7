//! Fits Zipf exponents to the popularity of objects, by least squares of log(frequency) on log(rank).

/// The Zipf exponent (the slope as a positive number), fitted over three choices of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ZipfFit {
    /// Fit over all ranks.
    pub all: f64,
    /// Fit over the objects that were requested at least twice.
    pub repeated: f64,
    /// Fit over ranks with even logarithmic spacing: the fairest fit, because all decades have equal weight.
    pub spaced: f64,
}

/// Ranks per factor of ten in the spaced fit.
const PER_DECADE: f64 = 10.0;

/// Fits the request counts of objects (in any order).
#[must_use]
pub fn zipf_fit(mut references: Vec<u32>) -> ZipfFit {
    references.sort_unstable_by(|a, b| b.cmp(a));
    let point = |rank: usize| ((rank as f64 + 1.0).ln(), f64::from(references[rank]).ln());
    let repeated = references.partition_point(|n| *n >= 2);
    let mut spaced = Vec::new();
    let mut exponent = 0.0;
    loop {
        let rank = 10f64.powf(exponent / PER_DECADE).round() as usize;
        if rank > references.len() {
            break;
        }
        if spaced.last() != Some(&(rank - 1)) {
            spaced.push(rank - 1);
        }
        exponent += 1.0;
    }
    ZipfFit {
        all: -slope((0..references.len()).map(point)),
        repeated: -slope((0..repeated).map(point)),
        spaced: -slope(spaced.into_iter().map(point)),
    }
}

/// Slope by least squares; 0 for fewer than two points.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut n, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (px, py) in points {
        n += 1.0;
        x += px;
        y += py;
        xx += px * px;
        xy += px * py;
    }
    let below: f64 = n * xx - x * x;
    if below.abs() < 1e-12 {
        0.0
    } else {
        (n * xy - x * y) / below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pure_law_is_found() {
        let references = (1..=2000u32)
            .map(|r| (1e7 * f64::from(r).powf(-0.8)) as u32)
            .collect();
        let fit = zipf_fit(references);
        for slope in [fit.all, fit.repeated, fit.spaced] {
            assert!((slope - 0.8).abs() < 0.005, "{fit:?}");
        }
        assert_eq!(
            zipf_fit(vec![3]),
            ZipfFit {
                all: -0.0,
                repeated: -0.0,
                spaced: -0.0
            }
        );
        assert_eq!(zipf_fit(Vec::new()).all, 0.0);
    }
}
