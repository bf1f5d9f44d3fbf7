//! Requests in the mix of the benchmark Web Polygraph, as the Foxy paper used it: a share of the requests
//! repeats an object seen before (with Zipf popularity over these objects); the other requests are for new
//! objects.

use foxy_base::Rng;

use super::{Sizes, Zipf};
use crate::{Flags, Request};

/// Parameters; the defaults are those of the paper.
#[derive(Clone, Copy, Debug)]
pub struct PolygraphConfig {
    /// Number of requests in the stream; `u64::MAX` for an endless stream.
    pub requests: u64,
    /// Share of requests for objects seen before.
    pub recurrence: f64,
    /// Zipf exponent over the objects seen so far; the oldest object is the most popular.
    pub alpha: f64,
    /// Distribution of object sizes.
    pub sizes: Sizes,
    /// Share of objects that may be stored.
    pub cacheable: f64,
    /// Number of origin servers.
    pub servers: u32,
    /// Number of clients.
    pub clients: u32,
}

impl Default for PolygraphConfig {
    fn default() -> Self {
        Self {
            requests: u64::MAX,
            recurrence: 0.4,
            alpha: 0.6,
            sizes: Sizes::Exponential { mean: 5_000.0 },
            cacheable: 1.0,
            servers: 20,
            clients: 100,
        }
    }
}

/// The stream. Its use of memory is constant.
#[derive(Clone, Debug)]
pub struct Polygraph {
    config: PolygraphConfig,
    seed: u64,
    rng: Rng,
    seen: u64,
    made: u64,
    /// The distribution; renewed whenever the number of objects has grown by 1 %.
    zipf: Zipf,
    zipf_over: u64,
}

impl Polygraph {
    /// Creates the stream that `seed` defines.
    #[must_use]
    pub fn new(config: PolygraphConfig, seed: u64) -> Self {
        let zipf = Zipf::new(1, config.alpha);
        Self {
            config,
            seed,
            rng: Rng::new(seed),
            seen: 0,
            made: 0,
            zipf,
            zipf_over: 1,
        }
    }

    fn again(&mut self) -> u64 {
        if self.seen > self.zipf_over + self.zipf_over / 100 {
            self.zipf = Zipf::new(self.seen, self.config.alpha);
            self.zipf_over = self.seen;
        }
        self.zipf.draw(&mut self.rng)
    }
}

impl Iterator for Polygraph {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.made >= self.config.requests {
            return None;
        }
        self.made += 1;
        let object = if self.seen > 0 && self.rng.chance(self.config.recurrence) {
            self.again()
        } else {
            self.seen += 1;
            self.seen - 1
        };
        let client = self.rng.below(u64::from(self.config.clients)) as u32 + 1;
        let mut fixed = Rng::new(self.seed ^ object.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let stored = fixed.chance(self.config.cacheable);
        Some(Request {
            time_ms: 0,
            object,
            size: self.config.sizes.of(self.seed, object, 0),
            client,
            server: (object % u64::from(self.config.servers.max(1))) as u32 + 1,
            flags: Flags::default().with_if(Flags::UNCACHEABLE, !stored),
            ..Request::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn recurs_as_often_as_told() {
        let config = PolygraphConfig {
            requests: 100_000,
            ..PolygraphConfig::default()
        };
        let mut seen = HashSet::new();
        let hits = Polygraph::new(config, 1)
            .filter(|r| !seen.insert(r.object))
            .count();
        assert!((hits as f64 / 100_000.0 - 0.4).abs() < 0.01, "{hits}");
        let mean = Polygraph::new(config, 1)
            .map(|r| r.size as f64)
            .sum::<f64>()
            / 100_000.0;
        assert!((mean / 5000.0 - 1.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn a_seed_gives_one_stream() {
        let config = PolygraphConfig {
            requests: 1000,
            cacheable: 0.5,
            ..Default::default()
        };
        let run = |seed| Polygraph::new(config, seed).collect::<Vec<_>>();
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
        let stored = run(3).iter().filter(|r| r.is_cacheable()).count();
        assert!((400..600).contains(&stored), "{stored}");
    }
}
