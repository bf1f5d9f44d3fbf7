//! The scenarios S6 and S7 of `bench peers`. Both send the mix of hits and misses of scenario S4, at a rate
//! that rises until the proxy cannot answer more requests. S6 uses this machine's disk. S7 uses a drive as
//! slow as the drive of the Foxy paper.

use std::time::Duration;

use serde_json::Value;

use super::super::drive::Drive;
use super::super::host::sync;
use super::super::lengths::text;
use super::super::load::{Origin, Run, number};
use super::super::results::Row;
use super::super::servers::{Kind, Server, Shape};
use super::mix::{DELAY, MIX, started};

/// S7 gives a server little memory for contents. The rest of its memory, which the page cache can use, is
/// smaller than the store.
const SLOW_MEMORY_MIB: u64 = 128;
const SLOW_LIMIT: u64 = 384 << 20;
/// The origin waits for one second before each answer, as in the paper. While the store is filled, it does
/// not wait.
const SLOW_DELAY: [&str; 2] = ["--latency", "1s"];
const SLOW_SEED: u64 = 7;

/// A load whose rate of requests rises step by step.
struct Climb<'a> {
    offered: &'a [u32],
    knobs: &'a str,
    /// Longest time for which an answer waits for the origin, in whole seconds.
    wait: u32,
    warm_up: Duration,
    step: Duration,
    /// `Some`: all steps use one stream of requests, and the first step begins after this number of requests.
    /// `None`: each step has its own stream.
    goes_on_from: Option<u64>,
}

/// Runs S6.
pub(super) fn to_saturation(run: &Run, kind: Kind) -> Result<Row, String> {
    let server = started(run, kind, "s6")?;
    let mut row = Row::new("s6", kind);
    let climb = Climb {
        offered: run.lengths.sweep,
        knobs: DELAY,
        wait: 0,
        warm_up: run.lengths.warm_up,
        step: run.lengths.sweep_step,
        goes_on_from: None,
    };
    climb.run(run, &server, &mut row)?;
    server.discard();
    Ok(row)
}

/// Runs S7. The store is filled before the drive becomes slow. Then it contains more than fits into memory.
pub(super) fn on_a_slow_drive(run: &Run, kind: Kind) -> Result<Row, String> {
    let origin = Origin::start(&run.host, &run.programs.lab)?;
    let port = origin.port;
    let drive = Drive::new(&run.host.scratch, 10)?;
    let shape = Shape {
        place: &drive.folder,
        memory_mib: SLOW_MEMORY_MIB,
        origin: port,
        ..Shape::on_disk(run, "s7")
    };
    let mut server = Server::new(run, kind, &shape)?;
    if !kind.is_layout() {
        server.group.limit(Some(SLOW_LIMIT))?;
    }
    server.start()?;
    let mut row = Row::new("s7", kind);
    fill(run, &server)?;
    if kind.is_layout() {
        // A server with one of the published disk layouts stores no contents on the disk, but keeps them in
        // its memory. The limit must not count this memory. So the limit is set above the memory that the
        // server uses now.
        let room = SLOW_LIMIT - (SLOW_MEMORY_MIB << 20);
        server.group.limit(Some(server.memory() + room))?;
    }
    drop(origin);
    let _slow = Origin::start_at(port, &run.host, &run.programs.lab, &SLOW_DELAY)?;
    // The page cache is kept, as in a proxy that has run for a while. Otherwise the proxy would first have to
    // read the tables of the file system. The measured rate of the layout with one file per object would then
    // vary between 0 and 300 answers per second.
    sync();
    drive.slow_down()?;
    let climb = Climb {
        offered: run.lengths.slow_sweep,
        knobs: "",
        wait: 1,
        warm_up: run.lengths.slow_warm_up,
        step: run.lengths.slow_step,
        goes_on_from: Some(run.lengths.slow_fill),
    };
    let done = climb.run(run, &server, &mut row);
    server.discard();
    if kind != Kind::Foxy && !kind.is_layout() {
        row.problems_are_results();
    }
    done.map(|()| row)
}

fn fill(run: &Run, server: &Server) -> Result<(), String> {
    let (requests, seed) = (run.lengths.slow_fill.to_string(), SLOW_SEED.to_string());
    let mut args = MIX.to_vec();
    args.extend(["--requests", &requests, "--seed", &seed]);
    args.extend(["--connections", "100"]);
    let report = run.load(server, &args)?;
    match number(&report, &["errors"]) {
        Some(0.0) => Ok(()),
        _ => Err(format!("filling the store: {}", report["described"][0])),
    }
}

impl Climb<'_> {
    /// Offers the loads one after the other, and ends after two consecutive loads that the server cannot
    /// sustain.
    fn run(&self, run: &Run, server: &Server, row: &mut Row) -> Result<(), String> {
        let (mut behind, mut best, mut skip) = (0, 0.0f64, self.goes_on_from.unwrap_or(0));
        for (at, &offered) in self.offered.iter().enumerate() {
            let report = self.load(run, server, offered, at as u64, skip)?;
            if self.goes_on_from.is_some() {
                let seconds = (self.warm_up + self.step).as_secs_f64();
                skip += (f64::from(offered) * seconds) as u64;
            }
            if number(&report, &["answers"]).unwrap_or(0.0) < 1.0 {
                let none = format!("no answers at {offered}/s in time");
                // A server that cannot sustain even the smallest load has no result.
                match at {
                    0 => row.problems.push(none),
                    _ => row.note(none),
                }
                break;
            }
            let carried = note(row, offered, &report);
            best = best.max(carried);
            behind = if carried < 0.92 * f64::from(offered) {
                behind + 1
            } else {
                0
            };
            if behind == 2 {
                break;
            }
        }
        row.set("saturation", best);
        Ok(())
    }

    fn load(
        &self,
        run: &Run,
        server: &Server,
        offered: u32,
        at: u64,
        skip: u64,
    ) -> Result<Value, String> {
        // There are enough connections for all requests that wait for the origin, and for the same number of
        // requests in a queue of the proxy. A proxy that needs more connections is saturated already.
        let connections = 100 + offered / 4 + 2 * self.wait * offered;
        let seed = self.goes_on_from.map_or(100 + at, |_| SLOW_SEED);
        let numbers = [
            ("--rate", offered.to_string()),
            ("--connections", connections.min(3000).to_string()),
            ("--warm-up", text(self.warm_up)),
            ("--duration", text(self.step)),
            (
                "--cool-down",
                text(Duration::from_secs(self.wait.into()) * 2),
            ),
            ("--seed", seed.to_string()),
            ("--skip", skip.to_string()),
        ];
        let mut args = MIX.to_vec();
        args.extend(["--knobs", self.knobs]);
        for (name, value) in &numbers {
            args.extend([name, value.as_str()]);
        }
        run.load(server, &args)
    }
}

/// Records a step's results. Returns the answers per second.
fn note(row: &mut Row, offered: u32, report: &Value) -> f64 {
    let part = offered.to_string();
    row.take(&part, report);
    row.set(&format!("{part} response ms"), mean(report));
    let origin = number(report, &["origin", "bytes"]).unwrap_or(0.0);
    let bytes = number(report, &["bytes"]).unwrap_or(0.0).max(1.0);
    row.set(&format!("{part} origin share"), origin / bytes);
    row.get(&format!("{part} rate")).unwrap_or(0.0)
}

/// Mean response time of hits and misses together, in ms.
fn mean(report: &Value) -> f64 {
    let get = |group: &str, what: &str| number(report, &[group, what]).unwrap_or(0.0);
    let groups = ["hits", "misses", "unknown"];
    let count: f64 = groups.iter().map(|g| get(g, "count")).sum();
    let total: f64 = groups
        .iter()
        .map(|g| get(g, "count") * get(g, "mean"))
        .sum();
    total / count.max(1.0) / 1000.0
}
