//! A logarithmic axis with labels at 1, 2, 5, 10, ... or at powers of two.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// Maximum number of labels of an axis.
const LABELS: usize = 10;

/// A logarithmic axis over a range of positive values.
#[derive(Clone, Debug)]
pub(super) struct LogAxis {
    range: Range<f64>,
    labels: Vec<f64>,
}

impl LogAxis {
    /// Creates an axis. If `doubling` is true, labels are at powers of two.
    pub(super) fn new(range: Range<f64>, doubling: bool) -> Self {
        Self {
            labels: labels(&range, doubling),
            range,
        }
    }
}

/// Returns the finest set of labels that has at most [`LABELS`] labels.
fn labels(range: &Range<f64>, doubling: bool) -> Vec<f64> {
    let base: f64 = if doubling { 2.0 } else { 10.0 };
    let power = |v: f64| v.log(base).floor() as i32;
    let exponents = power(range.start)..=power(range.end);
    let within = |factors: &[f64], step: i32| -> Vec<f64> {
        let powers = exponents.clone().filter(|e| e.rem_euclid(step) == 0);
        let all = powers.flat_map(|e| factors.iter().map(move |f| f * base.powi(e)));
        all.filter(|v| range.contains(v)).collect()
    };
    if !doubling {
        let fine = within(&[1.0, 2.0, 5.0], 1);
        if fine.len() <= LABELS {
            return fine;
        }
    }
    let mut steps = (1..64).map(|step| within(&[1.0], step));
    steps
        .find(|points| points.len() <= LABELS)
        .unwrap_or_default()
}

impl Ranged for LogAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (low, high) = (self.range.start.ln(), self.range.end.ln());
        let share = (value.ln() - low) / (high - low);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.labels.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_as_fine_as_there_is_room() {
        assert_eq!(
            labels(&(0.9..560.0), false),
            [1., 2., 5., 10., 20., 50., 100., 200., 500.]
        );
        assert_eq!(
            labels(&(55.0..1_300.0), false),
            [100.0, 200.0, 500.0, 1_000.0]
        );
        assert_eq!(
            labels(&(0.5..2e6), false),
            [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]
        );
        let kib = f64::from(1 << 10);
        assert_eq!(
            labels(&(14.0 * kib..70.0 * kib), true),
            [16.0 * kib, 32.0 * kib, 64.0 * kib]
        );
        assert!(labels(&(1.0..1e15), true).len() <= LABELS);
    }

    #[test]
    fn factors_are_distances() {
        let axis = LogAxis::new(1.0..100.0, false);
        assert_eq!(
            [1.0, 10.0, 100.0].map(|v| axis.map(&v, (0, 200))),
            [0, 100, 200]
        );
    }
}
