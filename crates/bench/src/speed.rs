//! Distributions of bandwidth, in the syntax of the command line.

use std::fmt;
use std::str::FromStr;

use foxy_base::{ByteSize, Rng};
use foxy_trace::generate::lognormal;

/// Bytes per second: `0` (no limit), `1MB`, `uniform:100KB,10MB`, `lognormal:1MB,1.0` (median,
/// sigma).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Always this bandwidth; 0 means no limit.
    Fixed(u64),
    /// Uniform between these two bandwidths.
    Uniform(u64, u64),
    /// Lognormal: median and sigma.
    Lognormal(f64, f64),
}

/// The lowest bandwidth that is drawn, so that every answer ends in a reasonable time.
const SLOWEST: f64 = 100.0;

impl Speed {
    /// Draws one bandwidth.
    pub fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::Fixed(speed) => speed,
            Self::Uniform(from, to) => from + rng.below(to - from + 1),
            Self::Lognormal(median, sigma) => {
                lognormal(rng, median.ln(), sigma).max(SLOWEST) as u64
            }
        }
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "bandwidth `{text}`: write 0, 1MB, uniform:100KB,10MB or lognormal:1MB,1.0 (bytes \
                 per second)"
            )
        };
        let size = |text: &str| text.parse::<ByteSize>().map(ByteSize::bytes).ok();
        let speed = match text.split_once(':') {
            None => size(text).map(Self::Fixed),
            Some((kind, rest)) => {
                let (first, second) = rest.split_once(',').ok_or_else(wrong)?;
                let first = size(first).filter(|n| *n > 0).ok_or_else(wrong)?;
                match kind {
                    "uniform" => size(second)
                        .filter(|to| *to >= first)
                        .map(|to| Self::Uniform(first, to)),
                    "lognormal" => second
                        .parse::<f64>()
                        .ok()
                        .filter(|sigma| sigma.is_finite() && *sigma > 0.0)
                        .map(|sigma| Self::Lognormal(first as f64, sigma)),
                    _ => None,
                }
            }
        };
        speed.ok_or_else(wrong)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(speed) => write!(f, "{speed}"),
            Self::Uniform(from, to) => write!(f, "uniform:{from},{to}"),
            Self::Lognormal(median, sigma) => write!(f, "lognormal:{median},{sigma}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_refuses_the_rest() {
        for text in ["0", "1000000", "uniform:1000,2000", "lognormal:1000000,1.5"] {
            assert_eq!(text.parse::<Speed>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "fast",
            "uniform:5",
            "uniform:9,5",
            "lognormal:1MB,0",
            "exp:1MB,2",
        ] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            assert!((10..=12).contains(&Speed::Uniform(10, 12).draw(&mut rng)));
            assert!(Speed::Lognormal(200.0, 3.0).draw(&mut rng) >= 100);
        }
    }
}
