//! Sources of requests: a generator selected by name, or an access log.

use std::{fmt, path::PathBuf, str::FromStr};

use foxy_trace::{
    Options, Request, TraceError,
    generate::{
        Polygraph, PolygraphConfig, SessionConfig, Sessions, Sizes, ZipfWeb, ZipfWebConfig,
    },
};
use serde::{Serialize, Serializer};

/// A source of requests: `dec`, `dec-large`, `isp`, `nlanr`, `polygraph` or `zipf`, each with an optional
/// number of requests (`dec:5000000`), or the path of an access log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// A generated stream and its number of requests.
    Made(Made, u64),
    /// An access log in any known format.
    Log(PathBuf),
}

/// The generators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Made {
    /// A stream like the log of the DEC proxy (USITS'99).
    Dec,
    /// The same stream with objects of 10.5 KB on average. This size follows from the bytes moved in the
    /// published experiment.
    DecLarge,
    /// A stream like the log of a national ISP (Hummingbird).
    Isp,
    /// A stream like the logs of the NLANR proxies (UCFS).
    Nlanr,
    /// A stream like that of the benchmark Web Polygraph.
    Polygraph,
    /// A stream of objects with Zipf popularity on many servers.
    Zipf,
}

const MADE: [(&str, Made, u64); 6] = [
    ("dec", Made::Dec, 1_058_206),
    ("dec-large", Made::DecLarge, 1_058_206),
    ("isp", Made::Isp, 4_800_000),
    ("nlanr", Made::Nlanr, 1_766_409),
    ("polygraph", Made::Polygraph, 1_000_000),
    ("zipf", Made::Zipf, 2_000_000),
];

/// A stream of requests. If an error ends the stream, the error is its last item.
pub type RequestStream = Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>;

impl Workload {
    /// Returns the DEC stream with this number of requests.
    #[must_use]
    pub const fn dec(requests: u64) -> Self {
        Self::Made(Made::Dec, requests)
    }

    /// Opens the stream of requests. Generators depend on `seed`.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn open(&self, seed: u64) -> Result<RequestStream, TraceError> {
        match self {
            Self::Log(path) => Ok(Box::new(foxy_trace::open(path, Options::default())?)),
            Self::Made(made, requests) => Ok(made.stream(*requests, seed)),
        }
    }
}

impl Made {
    fn stream(self, requests: u64, seed: u64) -> RequestStream {
        let dec = SessionConfig {
            requests,
            ..SessionConfig::dec()
        };
        match self {
            Self::Dec => Box::new(Sessions::new(dec, seed).map(Ok)),
            Self::DecLarge => {
                let config = SessionConfig {
                    sizes: [large(), large()],
                    ..dec
                };
                Box::new(Sessions::new(config, seed).map(Ok))
            }
            Self::Isp => {
                let config = SessionConfig {
                    requests,
                    ..SessionConfig::isp()
                };
                Box::new(Sessions::new(config, seed).map(Ok))
            }
            Self::Nlanr => {
                let config = SessionConfig {
                    requests,
                    ..SessionConfig::nlanr()
                };
                Box::new(Sessions::new(config, seed).map(Ok))
            }
            Self::Polygraph => {
                let config = PolygraphConfig {
                    requests,
                    ..PolygraphConfig::default()
                };
                Box::new(Polygraph::new(config, seed).map(Ok))
            }
            Self::Zipf => {
                let config = ZipfWebConfig {
                    requests,
                    ..ZipfWebConfig::default()
                };
                Box::new(ZipfWeb::new(config, seed).map(Ok))
            }
        }
    }

    fn name(self) -> &'static str {
        MADE.iter()
            .find(|(_, made, _)| *made == self)
            .map_or("", |(name, ..)| name)
    }
}

/// The DEC distribution of sizes with a heavier tail: the mean is about 10.5 KB.
const fn large() -> Sizes {
    Sizes::Heavy {
        median: 3_300.0,
        sigma: 1.2,
        tail: 0.045,
        from: 32_768.0,
        alpha: 1.4,
        most: 8 << 20,
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(made, requests) => write!(f, "{}:{requests}", made.name()),
            Self::Log(path) => write!(f, "{}", path.display()),
        }
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let Some((_, made, usual)) = MADE.iter().find(|(known, ..)| *known == name) else {
            return Ok(Self::Log(PathBuf::from(text)));
        };
        let requests = number.map_or(Ok(*usual), |n| {
            n.replace('_', "")
                .parse()
                .map_err(|_| format!("`{n}` is not a number of requests"))
        })?;
        Ok(Self::Made(*made, requests))
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_streams_follow_the_seed() {
        for (name, ..) in MADE {
            let workload: Workload = format!("{name}:1_000").parse().unwrap();
            assert_eq!(workload.to_string(), format!("{name}:1000"));
            let take = |seed| {
                workload
                    .open(seed)
                    .unwrap()
                    .map(Result::unwrap)
                    .collect::<Vec<_>>()
            };
            assert_eq!(take(1).len(), 1000);
            assert_eq!(take(1), take(1));
            assert_ne!(take(1), take(2));
        }
        assert!("dec:many".parse::<Workload>().is_err());
        let log: Workload = "logs/access.log".parse().unwrap();
        assert!(
            log.open(1)
                .err()
                .unwrap()
                .to_string()
                .contains("access.log")
        );
    }

    #[test]
    fn the_second_reading_has_a_mean_of_10_and_a_half_kb() {
        let mean = large().mean();
        assert!((mean / 10_500.0 - 1.0).abs() < 0.1, "{mean}");
    }
}
