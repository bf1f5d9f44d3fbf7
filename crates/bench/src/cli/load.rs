//! `bench load`: the command line of the load generator.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ByteSize, Clock};
use foxy_trace::{Access, ByteLru};
use serde_json::json;

use super::{WorkloadArgs, invalid, print, time};
use crate::load::{LoadConfig, Mode, Pace, Source, Style, run};

/// Options of the load.
#[derive(Debug, clap::Args)]
pub struct LoadArgs {
    /// Address that receives the requests: a proxy or the origin itself
    #[arg(long, default_value = "127.0.0.1:3128", value_name = "ADDR")]
    pub target: SocketAddr,
    /// Address of the origin, for its port and its counters
    #[arg(long, default_value = "127.0.0.1:8000", value_name = "ADDR")]
    pub origin: SocketAddr,
    /// The target is a reverse proxy (or the origin): send paths, and this value of Host
    #[arg(long, value_name = "HOST")]
    pub reverse: Option<String>,
    /// The stream of requests.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Form in which a modified object is requested
    #[arg(long, value_enum, default_value_t = Versions::Url)]
    pub versions: Versions,
    /// Number of connections
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Number of generator threads
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Send this many requests per second at random times (Poisson) in an open loop; times count from the
    /// intended start of a request; default: a closed loop
    #[arg(long)]
    pub rate: Option<f64>,
    /// Duration of the measurement
    #[arg(long, value_parser = time)]
    pub duration: Option<Duration>,
    /// Number of measured requests
    #[arg(long)]
    pub requests: Option<u64>,
    /// Duration of the load before the measurement
    #[arg(long, value_parser = time, default_value = "0")]
    pub warm_up: Duration,
    /// With --duration: after the measured time, continue until all its requests are answered, but not
    /// longer than this time
    #[arg(long, value_parser = time, default_value = "0")]
    pub cool_down: Duration,
    /// Number of requests before the measurement
    #[arg(long, default_value_t = 0)]
    pub warm_up_requests: u64,
    /// Share of answers whose bytes are all compared, 0 to 1
    #[arg(long, default_value_t = 1.0)]
    pub check: f64,
    /// Poll for answers all the time, without sleeping, so that no server uses CPU time to wake the
    /// generator. Behind a hypervisor, a wake-up takes more of a server's CPU time than the answer itself
    #[arg(long)]
    pub poll: bool,
    /// Longest permitted time for one answer
    #[arg(long, value_parser = time, default_value = "30s")]
    pub timeout: Duration,
    /// Seed of all random values
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Process whose CPU time is counted, including its descendants
    #[arg(long)]
    pub pid: Option<u32>,
    /// Text that is added to each URL, such as `&l=100` (see the origin's knobs)
    #[arg(long, default_value = "")]
    pub knobs: String,
    /// Header line that is added to each request
    #[arg(long = "header", value_name = "LINE")]
    pub headers: Vec<String>,
    /// Compare the hit ratio with that of an exact LRU of this many bytes
    #[arg(long, value_name = "SIZE")]
    pub lru: Option<ByteSize>,
    /// Bytes that the LRU counts for an object in addition to its body
    #[arg(long, default_value = "0", value_name = "SIZE")]
    pub lru_overhead: ByteSize,
    /// Write a line for each answer to this file, for `expect`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Record the number of answers and hits over time, in steps of 10 ms
    #[arg(long)]
    pub timeline: bool,
    /// Wait while the target refuses connections
    #[arg(long)]
    pub patient: bool,
    /// Write the report as JSON to this file (`-`: to standard output, in place of the table)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Do not show a progress line
    #[arg(long)]
    pub quiet: bool,
}

/// The way in which a new version of an object is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Versions {
    /// The URL contains size and version, so a new version has a new URL
    Url,
    /// All versions share one URL; a reload replaces the old version, which must not be served again
    Reload,
}

impl LoadArgs {
    /// The configuration that follows from these options.
    #[must_use]
    pub fn config(&self) -> LoadConfig {
        let mode = match &self.reverse {
            Some(host) => Mode::Reverse { host: host.clone() },
            None => Mode::Forward {
                port: self.origin.port(),
            },
        };
        let style = Style {
            mode,
            same_url: self.versions == Versions::Reload,
            extra: self
                .headers
                .iter()
                .map(|line| format!("{line}\r\n"))
                .collect(),
            knobs: self.knobs.clone(),
        };
        LoadConfig {
            connections: self.connections.max(1),
            threads: self.threads.max(1),
            pace: self.rate.map_or(Pace::Closed, Pace::Open),
            check: self.check,
            requests: self.requests.unwrap_or(u64::MAX),
            duration: self.duration,
            warm_up_requests: self.warm_up_requests,
            warm_up: self.warm_up,
            cool_down: self.cool_down,
            poll: self.poll,
            timeout: self.timeout,
            seed: self.seed,
            pid: self.pid,
            origin: Some(self.origin),
            record: self.record.clone(),
            timeline: self.timeline,
            patient: self.patient,
            progress: !self.quiet,
            ..LoadConfig::new(self.target, style)
        }
    }

    fn source(&self) -> io::Result<Source> {
        let length = self
            .requests
            .map_or(u64::MAX, |n| n.saturating_add(self.warm_up_requests));
        self.workload.source(length, self.seed)
    }

    /// Runs the load and prints the report. Returns true if all answers were correct.
    ///
    /// # Errors
    /// Returned if the load could not run.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<bool> {
        if self.rate.is_some_and(|rate| rate.is_nan() || rate <= 0.0) {
            return Err(invalid("--rate must be above 0"));
        }
        let report = run(&self.config(), self.source()?, clock)?;
        let mut extra = json!({});
        if let Some(bytes) = self.lru {
            let asked = self
                .warm_up_requests
                .saturating_add(report.answers + report.errors);
            let lru = self.lru_hit_ratio(bytes.bytes(), asked)?;
            let points =
                (report.hit_ratio.or(report.origin_hit_ratio).unwrap_or(0.0) - lru) * 100.0;
            eprintln!("exact LRU of {bytes}: hit ratio {lru:.4}; this run {points:+.2} points");
            extra = json!({ "lru_hit_ratio": lru, "points_beside_lru": points });
        }
        print(&report, &extra, self.json.as_deref())?;
        Ok(report.is_clean())
    }

    /// The hit ratio of an exact LRU of `bytes` bytes for the measured part of the same stream of requests.
    fn lru_hit_ratio(&self, bytes: u64, asked: u64) -> io::Result<f64> {
        let overhead = self.lru_overhead.bytes();
        let mut lru = ByteLru::new(bytes);
        let (mut hits, mut measured) = (0u64, 0u64);
        for (n, spec) in self
            .source()?
            .take(usize::try_from(asked).unwrap_or(usize::MAX))
            .enumerate()
        {
            let version = u64::from(spec.version) << 32;
            let parts =
                [u64::from(spec.server) | version, spec.id, spec.size].map(u64::to_le_bytes);
            let key = foxy_base::hash64(0, &parts.concat());
            let hit = !spec.no_store && lru.access(key, spec.size + overhead) == Access::Hit;
            if n as u64 >= self.warm_up_requests {
                measured += 1;
                hits += u64::from(hit);
            }
        }
        Ok(hits as f64 / measured.max(1) as f64)
    }
}
