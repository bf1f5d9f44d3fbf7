//! The differences between origin servers. Each address of the origin is a separate server: near or far, on a
//! fast or a slow link.

use std::time::Duration;

use foxy_base::{Rng, key_hash};

use super::OriginConfig;
use crate::{Delay, Speed};

/// Properties of one server. They are the same for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// Delay that is added to the time before each answer.
    pub(super) latency: Duration,
    /// Bytes per second of each connection; 0 means no limit.
    pub(super) bandwidth: u64,
}

impl Server {
    /// The server called `host`. Its properties are drawn from the distributions in `config`. They depend
    /// only on its name and the seed.
    pub(super) fn of(config: &OriginConfig, host: &[u8]) -> Self {
        if let (Delay::None, Speed::Fixed(bandwidth)) = (config.server_latency, config.bandwidth) {
            // The usual case: no value has to be drawn.
            return Self {
                latency: Duration::ZERO,
                bandwidth,
            };
        }
        let mut rng = Rng::new(config.seed ^ key_hash(host).low()).fork("server");
        Self {
            latency: config.server_latency.draw(&mut rng),
            bandwidth: config.bandwidth.draw(&mut rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_differ_and_stay_what_they_are() {
        let config = OriginConfig {
            server_latency: Delay::Exponential(Duration::from_millis(50)),
            bandwidth: Speed::Lognormal(1e6, 1.0),
            ..OriginConfig::default()
        };
        let of = |n: u32| Server::of(&config, format!("127.1.0.{n}").as_bytes());
        let servers: Vec<_> = (0..1000).map(of).collect();
        assert_eq!(servers, (0..1000).map(of).collect::<Vec<_>>());
        let mean = servers.iter().map(|s| s.latency.as_millis()).sum::<u128>() / 1000;
        assert!((40..60).contains(&mean), "{mean} ms");
        let mut speeds: Vec<_> = servers.iter().map(|s| s.bandwidth).collect();
        speeds.sort_unstable();
        assert!(
            (800_000..1_250_000).contains(&speeds[500]),
            "{}",
            speeds[500]
        );
        assert!(speeds[100] < 400_000 && speeds[900] > 2_500_000);
    }
}
