//! `bench origin`: the command line of the deterministic origin server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use foxy_base::Clock;

use crate::{Delay, Origin, OriginConfig, Speed};

/// Options of the origin.
#[derive(Debug, clap::Args)]
pub struct OriginArgs {
    /// Listener address; with 0.0.0.0 the origin answers on every address of 127.0.0.0/8, and each address is
    /// a separate server
    #[arg(long, default_value = "0.0.0.0:8000", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Number of threads
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Time before each answer: 100ms, exp:20ms, uniform:1ms,9ms, lognormal:20ms,1.2, pareto:5ms,1.5
    #[arg(long, default_value = "0")]
    pub latency: Delay,
    /// Delay that is added to `--latency`; it is drawn once for each server, because some servers are far
    /// away
    #[arg(long, default_value = "0", value_name = "LATENCY")]
    pub server_latency: Delay,
    /// Bytes per second of each connection, drawn once for each server: 1MB, uniform:100KB,10MB,
    /// lognormal:1MB,1.0; 0 means no limit
    #[arg(long, default_value = "0")]
    pub bandwidth: Speed,
    /// Share of requests that are answered with 503, 0 to 1
    #[arg(long, default_value_t = 0.0)]
    pub failures: f64,
    /// Never sleep, so that a proxy uses no CPU time to wake this core
    #[arg(long)]
    pub poll: bool,
    /// Seed of all random values
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl OriginArgs {
    /// Answers requests until the process ends.
    ///
    /// # Errors
    /// Returned if the origin cannot listen.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<()> {
        let config = OriginConfig {
            listen: self.listen,
            threads: self.threads,
            latency: self.latency,
            server_latency: self.server_latency,
            bandwidth: self.bandwidth,
            failures: self.failures,
            poll: self.poll,
            seed: self.seed,
        };
        let mut origin = Origin::start(config, clock)?;
        println!("origin on {}; counters at /__counters", origin.address());
        origin.wait();
        Ok(())
    }
}
