//! Requests to many origin servers: Zipf popularity over objects, sizes with a heavy tail, and recency (with
//! some probability a request repeats an object of the last few thousand requests).

use foxy_base::Rng;

use super::{Sizes, Zipf, dist};
use crate::{Class, Request};

/// Parameters. The defaults are a stream of 2 million requests to 200 servers with exponent 0.75 and a median
/// size of 3 KB with a heavy tail.
#[derive(Clone, Copy, Debug)]
pub struct ZipfWebConfig {
    /// Number of requests in the stream; `u64::MAX` for an endless stream.
    pub requests: u64,
    /// Number of objects that can be requested.
    pub objects: u64,
    /// Zipf exponent of the popularity of objects.
    pub alpha: f64,
    /// Number of origin servers. An object belongs to one server; the number of objects per server follows
    /// Zipf with exponent 1.
    pub servers: u32,
    /// Distribution of sizes. A size follows from object and version.
    pub sizes: Sizes,
    /// Probability that a request repeats one of the last [`recent`](Self::recent) requests.
    pub recency: f64,
    /// Maximum distance of repeats (the distance is log-uniform).
    pub recent: u32,
    /// Probability that the object of a request has been modified (next version, new size).
    pub modified: f64,
    /// Number of clients.
    pub clients: u32,
    /// Mean time between requests, ms; 0: requests have no times.
    pub gap_ms: f64,
}

impl Default for ZipfWebConfig {
    fn default() -> Self {
        Self {
            requests: 2_000_000,
            objects: 2_000_000,
            alpha: 0.75,
            servers: 200,
            sizes: Sizes::web(),
            recency: 0.15,
            recent: 4096,
            modified: 0.0,
            clients: 500,
            gap_ms: 0.0,
        }
    }
}

impl ZipfWebConfig {
    /// Returns this configuration with another number of objects, so that the stream has about `bytes`
    /// distinct bytes (within a few percent, because the heavy tail causes noise). The number of requests
    /// must be finite. If the stream has too few requests for `bytes` distinct bytes, it gets nearly as many
    /// distinct bytes as possible.
    #[must_use]
    pub fn with_distinct_bytes(mut self, bytes: u64) -> Self {
        let mean = self.sizes.mean();
        let draws = self.requests as f64 * (1.0 - self.recency);
        let wanted = (bytes as f64 / mean).min(draws * 0.98);
        let (mut low, mut high) = (1.0f64, 1e12f64);
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            let distinct = Zipf::new(middle as u64, self.alpha).expected_distinct(draws);
            if distinct < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.objects = high.ceil() as u64;
        self
    }
}

/// The stream of requests.
#[derive(Clone, Debug)]
pub struct ZipfWeb {
    config: ZipfWebConfig,
    seed: u64,
    rng: Rng,
    popularity: Zipf,
    ring: Vec<u64>,
    made: u64,
    time_ms: f64,
    versions: std::collections::HashMap<u64, u32>,
}

impl ZipfWeb {
    /// Creates the stream that `seed` defines.
    #[must_use]
    pub fn new(config: ZipfWebConfig, seed: u64) -> Self {
        Self {
            config,
            seed,
            rng: Rng::new(seed),
            popularity: Zipf::new(config.objects, config.alpha),
            ring: Vec::new(),
            made: 0,
            time_ms: 0.0,
            versions: std::collections::HashMap::new(),
        }
    }

    /// Server of an object, from 1. It follows from the id, with a Zipf distribution
    /// (exponent 1) over servers.
    #[must_use]
    pub fn server_of(&self, object: u64) -> u32 {
        let mut rng = Rng::new(self.seed ^ object.wrapping_mul(0xa076_1d64_78bd_642f));
        Zipf::new(u64::from(self.config.servers.max(1)), 1.0).draw(&mut rng) as u32 + 1
    }

    fn object(&mut self) -> u64 {
        let recent = self.config.recent.max(1) as usize;
        let object = if !self.ring.is_empty() && self.rng.chance(self.config.recency) {
            let reach = self.ring.len() as f64;
            let back = (self.rng.unit() * reach.ln()).exp() as usize;
            let at = (self.made as usize + 2 * recent - back.clamp(1, self.ring.len())) % recent;
            self.ring.get(at).copied().unwrap_or(0)
        } else {
            self.popularity.draw(&mut self.rng)
        };
        let at = self.made as usize % recent;
        if at < self.ring.len() {
            self.ring[at] = object;
        } else {
            self.ring.push(object);
        }
        object
    }

    fn version(&mut self, object: u64) -> u32 {
        if self.config.modified > 0.0 && self.rng.chance(self.config.modified) {
            *self.versions.entry(object).or_insert(0) += 1;
        }
        self.versions.get(&object).copied().unwrap_or(0)
    }
}

impl Iterator for ZipfWeb {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.made >= self.config.requests {
            return None;
        }
        let object = self.object();
        let version = self.version(object);
        self.made += 1;
        if self.config.gap_ms > 0.0 {
            self.time_ms += dist::exponential(&mut self.rng, self.config.gap_ms);
        }
        let client = self.rng.below(u64::from(self.config.clients.max(1))) as u32 + 1;
        Some(Request {
            time_ms: self.time_ms as i64,
            object,
            size: self.config.sizes.of(self.seed, object, version),
            client,
            server: self.server_of(object),
            version,
            class: match object % 10 {
                0..=2 => Class::Html,
                3..=7 => Class::Image,
                _ => Class::Other,
            },
            ..Request::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn distinct(config: ZipfWebConfig) -> (usize, u64, usize) {
        let mut sizes = HashMap::new();
        let mut servers = std::collections::HashSet::new();
        for r in ZipfWeb::new(config, 9) {
            servers.insert(r.server);
            assert_eq!(*sizes.entry(r.object).or_insert(r.size), r.size);
        }
        (sizes.len(), sizes.values().sum(), servers.len())
    }

    #[test]
    fn distinct_bytes_come_out_as_asked() {
        for bytes in [50_000_000u64, 400_000_000] {
            let config = ZipfWebConfig {
                requests: 200_000,
                ..Default::default()
            }
            .with_distinct_bytes(bytes);
            let (_, total, servers) = distinct(config);
            let ratio = total as f64 / bytes as f64;
            assert!((0.85..1.15).contains(&ratio), "{ratio} for {bytes}");
            assert_eq!(servers, 200);
        }
    }

    #[test]
    fn modified_objects_get_versions_and_sizes() {
        let config = ZipfWebConfig {
            requests: 20_000,
            objects: 100,
            modified: 0.1,
            gap_ms: 10.0,
            ..Default::default()
        };
        let all: Vec<_> = ZipfWeb::new(config, 2).collect();
        let last = all.iter().map(|r| r.version).max().unwrap();
        assert!(last > 3);
        assert!(all.windows(2).all(|w| w[0].time_ms <= w[1].time_ms));
        let span = all.last().unwrap().time_ms;
        assert!((190_000..210_000).contains(&span), "{span}");
    }

    #[test]
    fn recency_shortens_repeats() {
        let repeats = |recency| {
            let config = ZipfWebConfig {
                requests: 50_000,
                objects: 1_000_000,
                recency,
                ..Default::default()
            };
            let mut last = HashMap::new();
            ZipfWeb::new(config, 4)
                .enumerate()
                .filter(|(n, r)| last.insert(r.object, *n).is_some_and(|old| n - old < 4096))
                .count()
        };
        assert!(repeats(0.3) > repeats(0.0) + 12_000);
    }
}
