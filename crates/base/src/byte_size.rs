//! Sizes as people write them: `64MB`, `8GiB`, `4096`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes that is read and printed in forms like `64MB` (powers of ten) or `8GiB`
/// (powers of two).
///
/// Printing uses the largest power-of-two unit that divides the value, so the text always parses to
/// the same number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

/// The reason why a size could not be read. The text contains the input and the accepted forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteSizeError {
    input: String,
    problem: &'static str,
}

const UNITS: [(&str, u64); 17] = [
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
    ("p", 1 << 50),
    ("pb", 1_000_000_000_000_000),
    ("pib", 1 << 50),
    ("", 1),
];

impl ByteSize {
    /// Number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
    /// A size of `n` KiB.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }
    /// A size of `n` MiB.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
    /// A size of `n` GiB.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let fail = |problem| ByteSizeError {
            input: input.to_owned(),
            problem,
        };
        let text = input.trim();
        let digits_end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits_end);
        let unit = unit.trim().to_ascii_lowercase();
        let factor = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, factor)| *factor)
            .ok_or_else(|| fail("unknown unit"))?;
        parse_scaled(number, factor)
            .map(ByteSize)
            .ok_or_else(|| fail("not a number, or too large"))
    }
}

/// Computes `number` (digits with at most one point) times `factor` exactly, and rounds the product
/// down.
fn parse_scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut value = u128::from(whole) * u128::from(factor);
    if number.contains('.') {
        if fraction.is_empty() || fraction.len() > 9 {
            return None;
        }
        let part: u64 = fraction.parse().ok()?;
        let digits = u32::try_from(fraction.len()).ok()?;
        value += u128::from(part) * u128::from(factor) / 10u128.pow(digits);
    }
    u64::try_from(value).ok()
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut value = self.0;
        let mut unit = 0;
        while value != 0 && value.is_multiple_of(1024) && unit + 1 < units.len() {
            value /= 1024;
            unit += 1;
        }
        write!(f, "{value}{}", units[unit])
    }
}

impl fmt::Display for ByteSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "size `{}`: {}; write a number with an optional unit, such as 4096, 64MB or 8GiB",
            self.input, self.problem
        )
    }
}

impl std::error::Error for ByteSizeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64MB", 64_000_000),
            ("64 MiB", 64 << 20),
            ("8gib", 8 << 30),
            ("1.5G", 3 << 29),
            ("8TB", 8_000_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(text.parse::<ByteSize>(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest_and_says_so() {
        for text in ["", "MB", "-1", "5 apples", "99999999999TB", "1.", "1.2.3"] {
            let error = text.parse::<ByteSize>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("64MB"), "{error}");
        }
    }

    #[test]
    fn prints_back_to_the_same_number() {
        for bytes in [0, 1, 1023, 1024, 1 << 20, (1 << 30) + 1, u64::MAX] {
            let text = ByteSize(bytes).to_string();
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }
}
