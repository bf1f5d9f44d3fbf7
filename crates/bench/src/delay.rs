//! Distributions of latency, in the syntax of the command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use foxy_base::Rng;
use foxy_trace::generate::{exponential, lognormal, pareto};

/// A random duration: `0`, `100ms`, `exp:20ms`, `uniform:10ms,50ms`, `lognormal:20ms,1.2` (median, sigma),
/// `pareto:10ms,1.5` (minimum, exponent).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Delay {
    /// No delay.
    #[default]
    None,
    /// Always this delay.
    Fixed(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Uniform between these two delays.
    Uniform(Duration, Duration),
    /// Lognormal: median and sigma.
    Lognormal(Duration, f64),
    /// Pareto: minimum and exponent.
    Pareto(Duration, f64),
}

/// Longest random delay, in seconds. If a distribution gives a longer time, this delay is used. A fixed delay
/// has no limit.
const LONGEST: f64 = 3600.0;

impl Delay {
    /// Draws one delay.
    pub fn draw(self, rng: &mut Rng) -> Duration {
        let seconds = match self {
            Self::None => return Duration::ZERO,
            Self::Fixed(time) => return time,
            Self::Exponential(mean) => exponential(rng, mean.as_secs_f64()),
            Self::Uniform(from, to) => {
                let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
                from + (to - from) * rng.unit()
            }
            Self::Lognormal(median, sigma) => lognormal(rng, median.as_secs_f64().ln(), sigma),
            Self::Pareto(least, alpha) => pareto(rng, least.as_secs_f64(), alpha),
        };
        Duration::from_secs_f64(seconds.clamp(0.0, LONGEST))
    }
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "delay `{text}`: write 0, 100ms, exp:20ms, uniform:10ms,50ms, lognormal:20ms,1.2 \
                 or pareto:10ms,1.5"
            )
        };
        let (kind, rest) = text.split_once(':').unwrap_or(("fixed", text));
        let (first, second) = rest.split_once(',').unwrap_or((rest, ""));
        let time = parse_time(first).ok_or_else(wrong)?;
        let factor = || {
            second
                .parse::<f64>()
                .ok()
                .filter(|f| f.is_finite() && *f > 0.0)
        };
        match kind {
            "fixed" if time.is_zero() => Some(Self::None),
            "fixed" => Some(Self::Fixed(time)),
            "exp" => Some(Self::Exponential(time)),
            "uniform" => parse_time(second)
                .filter(|to| *to >= time)
                .map(|to| Self::Uniform(time, to)),
            "lognormal" => factor().map(|sigma| Self::Lognormal(time, sigma)),
            "pareto" => factor().map(|alpha| Self::Pareto(time, alpha)),
            _ => None,
        }
        .ok_or_else(wrong)
    }
}

/// Parses a time such as `0`, `250us`, `10ms`, `1.5s`, `2m`.
#[must_use]
pub fn parse_time(text: &str) -> Option<Duration> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = match &text[end..] {
        "" if number == 0.0 => 1.0,
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::Fixed(t) => write!(f, "{t:?}"),
            Self::Exponential(t) => write!(f, "exp:{t:?}"),
            Self::Uniform(a, b) => write!(f, "uniform:{a:?},{b:?}"),
            Self::Lognormal(t, s) => write!(f, "lognormal:{t:?},{s}"),
            Self::Pareto(t, a) => write!(f, "pareto:{t:?},{a}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for text in [
            "0",
            "100ms",
            "exp:20ms",
            "uniform:10ms,50ms",
            "lognormal:20ms,1.2",
            "pareto:1.5s,2",
        ] {
            let delay: Delay = text.parse().unwrap();
            assert_eq!(delay.to_string().parse(), Ok(delay), "{text}");
        }
        for bad in [
            "",
            "5",
            "exp",
            "exp:x",
            "uniform:5ms,1ms",
            "lognormal:5ms",
            "zipf:1ms,1",
        ] {
            assert!(
                bad.parse::<Delay>().unwrap_err().contains("lognormal"),
                "{bad}"
            );
        }
    }

    #[test]
    fn draws_have_the_right_mean() {
        let mut rng = Rng::new(1);
        for (text, mean) in [
            ("exp:20ms", 0.02),
            ("uniform:10ms,50ms", 0.03),
            ("7ms", 0.007),
        ] {
            let delay: Delay = text.parse().unwrap();
            let sum: f64 = (0..50_000)
                .map(|_| delay.draw(&mut rng).as_secs_f64())
                .sum();
            assert!((sum / 50_000.0 / mean - 1.0).abs() < 0.03, "{text}");
        }
    }
}
