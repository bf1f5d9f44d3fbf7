//! `bench expect`: checks which objects of an earlier run are still cached.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ByteSize, Clock, Rng, WallTime};
use serde_json::json;

use super::load::Versions;
use super::workload::shuffle;
use super::{print, time};
use crate::load::{Known, LoadConfig, Mode, Pace, RequestSpec, Style, read_record, run};

/// Options of the check after a restart.
#[derive(Debug, clap::Args)]
pub struct ExpectArgs {
    /// Address of the proxy
    #[arg(long, default_value = "127.0.0.1:3128", value_name = "ADDR")]
    pub target: SocketAddr,
    /// Address of the origin, for its port and its counters
    #[arg(long, default_value = "127.0.0.1:8000", value_name = "ADDR")]
    pub origin: SocketAddr,
    /// The target is a reverse proxy: send paths, and this value of Host
    #[arg(long, value_name = "HOST")]
    pub reverse: Option<String>,
    /// File that was written by `load --record`
    #[arg(long, value_name = "FILE")]
    pub record: PathBuf,
    /// The same value as in the load that wrote the record
    #[arg(long, value_enum, default_value_t = Versions::Url)]
    pub versions: Versions,
    /// Time when the cache was stopped, in ms since the Unix epoch; default: the time of the last answer
    #[arg(long, value_name = "MS")]
    pub stopped_at: Option<i64>,
    /// Request only objects that were stored at least this long before the stop
    #[arg(long, value_parser = time, default_value = "5s")]
    pub older_than: Duration,
    /// Request only the newest recorded objects, up to this many bytes in total (the part that the store
    /// certainly still had)
    #[arg(long, value_name = "SIZE")]
    pub newest: Option<ByteSize>,
    /// Bytes that are counted for an object in addition to its body
    #[arg(long, default_value = "512", value_name = "SIZE")]
    pub overhead: ByteSize,
    /// Request at most this many objects, chosen at random
    #[arg(long)]
    pub sample: Option<usize>,
    /// Number of connections
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// Open loop with this many requests per second; default: a closed loop
    #[arg(long)]
    pub rate: Option<f64>,
    /// Lowest share of hits (0 to 1) at which the exit code is 0
    #[arg(long, default_value_t = 0.99)]
    pub least: f64,
    /// Seed of the order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the report as JSON to this file (`-`: to standard output, in place of the table)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl ExpectArgs {
    /// Requests each chosen object once. Returns true if the share of hits was high enough and all answers
    /// were correct.
    ///
    /// # Errors
    /// Returned if the record cannot be read, or if the load could not run.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<bool> {
        let known = read_record(&self.record)?;
        let specs = self.choose(&known);
        eprintln!(
            "{} objects in the record, {} asked for",
            known.len(),
            specs.len()
        );
        let config = LoadConfig {
            connections: self.connections.max(1),
            pace: self.rate.map_or(Pace::Closed, Pace::Open),
            origin: Some(self.origin),
            seed: self.seed,
            known: known.iter().map(|k| k.spec).collect(),
            timeline: true,
            patient: true,
            ..LoadConfig::new(self.target, self.style())
        };
        let asked = specs.len();
        let report = run(&config, Box::new(specs.into_iter()), clock)?;
        let share = report.hits.count as f64 / asked.max(1) as f64;
        print(
            &report,
            &json!({ "asked": asked, "share_of_hits": share }),
            self.json.as_deref(),
        )?;
        eprintln!("{} of {asked} were hits: {share:.4}", report.hits.count);
        Ok(report.is_clean() && share >= self.least)
    }

    fn style(&self) -> Style {
        Style {
            mode: match &self.reverse {
                Some(host) => Mode::Reverse { host: host.clone() },
                None => Mode::Forward {
                    port: self.origin.port(),
                },
            },
            same_url: self.versions == Versions::Reload,
            extra: String::new(),
            knobs: String::new(),
        }
    }

    /// The objects to request, in random order. `known` has the oldest object first.
    fn choose(&self, known: &[Known]) -> Vec<RequestSpec> {
        let last = known.iter().map(|k| k.used).max().unwrap_or_default();
        let stopped = self.stopped_at.map_or(last, WallTime);
        let age = i64::try_from(self.older_than.as_millis()).unwrap_or(i64::MAX);
        let mut room = self.newest.map_or(u64::MAX, ByteSize::bytes);
        let mut specs = Vec::new();
        for object in known.iter().rev() {
            let Some(left) = room.checked_sub(object.spec.size + self.overhead.bytes()) else {
                break;
            };
            room = left;
            if object.stored.millis() <= stopped.millis().saturating_sub(age) {
                specs.push(object.spec);
            }
        }
        shuffle(&mut specs, &mut Rng::new(self.seed).fork("expect"));
        specs.truncate(self.sample.unwrap_or(usize::MAX));
        specs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        args: ExpectArgs,
    }

    #[test]
    fn chooses_by_age_and_room() {
        let known: Vec<Known> = (0..10u64)
            .map(|id| Known {
                spec: RequestSpec {
                    server: 1,
                    id,
                    size: 100,
                    ..RequestSpec::default()
                },
                stored: WallTime(id as i64 * 1000),
                used: WallTime(20_000),
            })
            .collect();
        let choose = |more: &[&str]| {
            let base = [
                "x",
                "--record",
                "r",
                "--overhead",
                "0",
                "--stopped-at",
                "10000",
            ];
            let only = Only::parse_from(base.iter().chain(more));
            let mut ids: Vec<_> = only.args.choose(&known).iter().map(|w| w.id).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(choose(&[]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(choose(&["--newest", "600"]), [4, 5]);
        assert_eq!(choose(&["--older-than", "0", "--newest", "250"]), [8, 9]);
        assert_eq!(choose(&["--sample", "2"]).len(), 2);
    }
}
