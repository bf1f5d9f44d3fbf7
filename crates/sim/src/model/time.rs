//! Simulated time: nanoseconds since the start of a run, or a span of nanoseconds.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign, Div, Mul, Sub},
};

/// A point in time of a simulated run, or the time between two points, in nanoseconds.
///
/// The range ends after 584 years; additions saturate there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(u64);

/// The nearest whole number, as returned by `f64::round`, without a library call; 0 for NaN
/// and negative values.
fn rounded(value: f64) -> u64 {
    let whole = value as u64;
    whole.saturating_add(u64::from(value - whole as f64 >= 0.5))
}

impl SimTime {
    /// The start of a run; a span of zero length.
    pub const ZERO: Self = Self(0);

    /// Creates a time from whole nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a time from whole microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Creates a time from milliseconds as data sheets print them; negative values and NaN count as 0.
    #[must_use]
    pub fn from_millis(millis: f64) -> Self {
        Self(rounded(millis * 1e6))
    }

    /// Creates a time from seconds; negative values and NaN count as 0.
    #[must_use]
    pub fn from_secs(secs: f64) -> Self {
        Self(rounded(secs * 1e9))
    }

    /// The time in whole nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time in milliseconds.
    #[must_use]
    pub fn as_millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time in seconds.
    #[must_use]
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or zero if `other` is later.
    #[must_use]
    pub const fn since(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for SimTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for SimTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for SimTime {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl Mul<u64> for SimTime {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for SimTime {
    type Output = Self;
    fn div(self, by: u64) -> Self {
        Self(self.0.checked_div(by).unwrap_or(0))
    }
}

impl Sum for SimTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{:.3} s", self.as_secs()),
            n if n >= 1_000_000 => write!(f, "{:.3} ms", self.as_millis()),
            n => write!(f, "{:.3} us", n as f64 / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_never_wraps() {
        let a = SimTime::from_millis(1.5);
        assert_eq!(a.as_nanos(), 1_500_000);
        assert_eq!(SimTime::ZERO - a, SimTime::ZERO);
        assert_eq!(
            SimTime::from_nanos(u64::MAX) + a,
            SimTime::from_nanos(u64::MAX)
        );
        assert_eq!(a * 2 / 3, SimTime::from_micros(1_000));
        assert_eq!(a / 0, SimTime::ZERO);
        assert_eq!(SimTime::from_millis(f64::NAN), SimTime::ZERO);
    }

    #[test]
    fn rounds_as_the_library_does() {
        let mut rng = foxy_base::Rng::new(4);
        let near = [
            0.0,
            0.5,
            0.499_999_999_999_999_94,
            1.5,
            2.5,
            1e18,
            -0.5,
            -7.0,
            1e30,
        ];
        let random = (0..10_000).map(|n| rng.unit() * 10f64.powi(n % 17));
        for value in near.into_iter().chain(random) {
            assert_eq!(rounded(value), value.round() as u64, "{value}");
            assert_eq!(
                rounded(value.floor() + 0.5),
                (value.floor() + 0.5).round() as u64
            );
        }
    }

    #[test]
    fn prints_the_unit_that_fits() {
        assert_eq!(SimTime::from_secs(1.25).to_string(), "1.250 s");
        assert_eq!(SimTime::from_micros(1_250).to_string(), "1.250 ms");
        assert_eq!(SimTime::from_nanos(250).to_string(), "0.250 us");
    }
}
