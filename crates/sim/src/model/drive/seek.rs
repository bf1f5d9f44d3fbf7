//! The seek curve: time of an arm movement as a function of the number of cylinders crossed.

use crate::model::SimTime;

/// Seek times as a data sheet states them, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekTimes {
    /// Time of a seek to the next cylinder.
    pub single: f64,
    /// Mean time of seeks between random pairs of cylinders.
    pub average: f64,
    /// Time of a seek from the first cylinder to the last.
    pub full: f64,
}

/// Time of a seek over `d` cylinders: `t(d) = a + b * sqrt(d) + c * d`. Short seeks only accelerate and brake
/// (square root); long seeks also move at constant speed (linear).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SeekCurve {
    a: f64,
    b: f64,
    c: f64,
}

impl SeekCurve {
    /// The curve through the three values of the data sheet.
    ///
    /// For random pairs on `n` cylinders the mean of `d` is `n / 3` and the mean of `sqrt(d)` is
    /// `8/15 * sqrt(n)`, so each value gives one linear equation for the three parameters.
    pub(super) fn fit(times: SeekTimes, cylinders: u32) -> Self {
        let n = f64::from(cylinders.max(2) - 1);
        let root = n.sqrt();
        // `single` is subtracted from the two other times. The differences give two equations for b and c.
        let (b1, c1, t1) = (
            8.0 / 15.0 * root - 1.0,
            n / 3.0 - 1.0,
            times.average - times.single,
        );
        let (b2, c2, t2) = (root - 1.0, n - 1.0, times.full - times.single);
        let determinant = b1 * c2 - b2 * c1;
        if determinant.abs() < 1e-12 {
            return Self {
                a: times.single,
                b: 0.0,
                c: 0.0,
            };
        }
        let b = (t1 * c2 - t2 * c1) / determinant;
        let c = (b1 * t2 - b2 * t1) / determinant;
        Self {
            a: times.single - b - c,
            b,
            c,
        }
    }

    /// Time to move the arm over `cylinders` cylinders and to settle; zero for 0 cylinders.
    pub(super) fn time(&self, cylinders: u32) -> SimTime {
        if cylinders == 0 {
            return SimTime::ZERO;
        }
        let d = f64::from(cylinders);
        SimTime::from_millis(self.a + self.b * d.sqrt() + self.c * d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_meets_all_three_figures_and_never_falls() {
        let times = SeekTimes {
            single: 0.6,
            average: 8.0,
            full: 17.0,
        };
        let n = 3_711;
        let curve = SeekCurve::fit(times, n);
        assert!((curve.time(1).as_millis() - 0.6).abs() < 0.001);
        assert!((curve.time(n - 1).as_millis() - 17.0).abs() < 0.001);
        let (mut sum, mut weights) = (0.0, 0.0);
        for d in 1..n {
            assert!(curve.time(d) <= curve.time(d + 1));
            let weight = f64::from(n - d);
            sum += weight * curve.time(d).as_millis();
            weights += weight;
        }
        assert!((sum / weights - 8.0).abs() < 0.02, "{}", sum / weights);
        assert_eq!(curve.time(0), SimTime::ZERO);
    }
}
