//! `cargo xtask bench observe`: the cost of observation. The command measures memory hits of 4 KiB and
//! compares two kinds of Foxy. The silent Foxy has no log, and its metrics are not read. The watched Foxy
//! writes its JSON log, and its metrics are read each second.
//!
//! The speed of a process depends on the addresses of its memory, which differ from process to process. So
//! each run starts a new Foxy, and the medians of all runs are compared. In each round, the silent Foxy runs
//! twice. The median of its second runs divided by the median of its first runs shows the noise. CPU is the
//! run time of the server's threads as the kernel reports it, divided by the number of answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::accept::process::{Bench, Foxy, number, report_of};
use crate::report::Outcome;

/// Greatest permitted CPU time per request of the watched Foxy, as a multiple of the silent Foxy's CPU time.
const MOST: f64 = 1.03;
/// The runs of a round. The silent Foxy has two runs.
const RUNS: [&str; 3] = ["silent", "watched", "silent again"];
const WATCHED: usize = 1;
/// Core of Foxy, and core of the load, the origin and the reader of metrics.
const CORES: [&str; 2] = ["0", "1"];
/// Number of pauses before the metrics are read again. These pauses take one second together. After each
/// pause, the reader checks whether the load has ended.
const PAUSES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Options of the comparison.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ObserveArgs {
    /// Number of rounds; each runs the silent Foxy twice and the watched Foxy once
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: usize,
    /// Duration of the load in a run, in seconds
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    /// Foxy program to measure, with a `foxy-lab` in the same folder; default: a release build of this tree
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Folder for the log; default: target
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The measured CPU times, for each of the three [`RUNS`] of a round.
type Values = [Vec<f64>; RUNS.len()];

/// Runs the comparison and prints its results. Fails if a request fails, or if observation costs more than
/// permitted.
pub(crate) fn run(args: &ObserveArgs) -> Result<Outcome, String> {
    let bench = Bench::new(args.program.as_deref(), args.dir.as_deref())?;
    let mut cpu = Values::default();
    for round in 0..args.rounds {
        // Every second round has the reverse order, so that a slow drift favours no kind.
        let mut runs: Vec<_> = (0..RUNS.len()).collect();
        if round % 2 == 1 {
            runs.reverse();
        }
        for run in runs {
            let measured = once(&bench, args, run == WATCHED)?;
            println!("   round {}, {}: {measured}", round + 1, RUNS[run]);
            cpu[run].push(measured.cpu);
        }
    }
    println!(
        "| value of a request | silent | watched | watched / silent | silent / silent (noise) |"
    );
    println!("| --- | --- | --- | --- | --- |");
    println!("{}", row("CPU, us", &cpu));
    Ok(Outcome::single(judge(ratio(&cpu))))
}

/// The results of a run. CPU is in microseconds per request.
struct Measured {
    cpu: f64,
    rate: f64,
    /// Number of times that the metrics were read, and number of lines in the log.
    seen: (u64, usize),
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}/s, CPU {:.3} us", self.rate, self.cpu)?;
        let (scrapes, lines) = self.seen;
        write!(
            f,
            "; metrics read {scrapes} times, {lines} lines in the log"
        )
    }
}

/// Makes one run: starts a Foxy, warms it up, measures it, and ends it.
fn once(bench: &Bench, args: &ObserveArgs, watched: bool) -> Result<Measured, String> {
    let (log, config) = (bench.path("observe.log"), bench.path("observe.toml"));
    std::fs::write(&config, "[log]\nformat = \"json\"\n")
        .map_err(|error| format!("{}: {error}", config.display()))?;
    let (log_name, config) = (log.to_string_lossy(), config.to_string_lossy());
    let mut options = vec!["--store", "off", "--memory", "256MiB", "--workers", "1"];
    if watched {
        options.extend(["--config", &config, "--access-log", &log_name]);
    }
    let foxy = bench.foxy(&options)?;
    pin(&foxy);
    // This load stores all objects, so that the measured requests are hits.
    let all = ["--workload", "scan", "--requests", "2000"];
    load(bench, &foxy, &all)?;
    let seconds = format!("{}s", args.seconds);
    let length = ["--warm-up", "1s", "--duration", &seconds];
    let (ended, scrapes) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = std::thread::scope(|scope| {
        if watched {
            scope.spawn(|| read_metrics(&foxy.admin(), &ended, &scrapes));
        }
        let report = load(bench, &foxy, &length);
        ended.store(true, Relaxed);
        report
    })?;
    let answers = number(&report, &["answers"]);
    foxy.stop()?;
    let lines = std::fs::read(&log).unwrap_or_default();
    let lines = lines.iter().filter(|byte| **byte == b'\n').count();
    let _ = std::fs::remove_file(&log);
    let seen = (scrapes.into_inner(), lines);
    if watched && (seen.0 == 0 || (lines as f64) < answers) {
        return Err(format!(
            "it was not watched: {seen:?} of {answers} requests"
        ));
    }
    Ok(Measured {
        cpu: number(&report, &["cpu_us", "total"]),
        rate: number(&report, &["rate"]),
        seen,
    })
}

/// Runs a load of hits on the core that Foxy does not use. Wrong answers are an error.
fn load(bench: &Bench, foxy: &Foxy, length: &[&str]) -> Result<Value, String> {
    let pid = foxy.pid().to_string();
    let usual = [
        "--objects",
        "1000",
        "--sizes",
        "4KiB",
        "--connections",
        "50",
        "--poll",
        "--check",
        "0.01",
        "--quiet",
        "--pid",
        &pid,
    ];
    let load = bench.tool("load", foxy, &[&usual[..], length].concat());
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", CORES[1]]);
    pinned.arg(load.get_program()).args(load.get_args());
    let report = report_of(&mut pinned)?;
    let bad = number(&report, &["errors"]) + number(&report, &["wrong"]);
    match bad > 0.0 {
        true => Err(format!("{bad} errors or wrong answers")),
        false => Ok(report),
    }
}

/// Pins all threads of Foxy to its core, including the thread that answers `/metrics` and the thread that
/// writes the log.
fn pin(foxy: &Foxy) {
    let pid = foxy.pid().to_string();
    let mut taskset = Command::new("taskset");
    let _ = taskset.args(["-a", "-c", "-p", CORES[0], &pid]).output();
}

/// Reads the metrics each second until the load has ended, and counts the complete pages.
fn read_metrics(admin: &str, ended: &AtomicBool, scrapes: &AtomicU64) {
    while !ended.load(Relaxed) {
        if read_once(admin).is_ok_and(|page| page.contains("foxy_requests_total{")) {
            scrapes.fetch_add(1, Relaxed);
        }
        for _ in 0..PAUSES {
            if !ended.load(Relaxed) {
                sleep(PAUSE);
            }
        }
    }
}

fn read_once(admin: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(admin)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

/// The middle value, or the mean of the two middle values; 0 without values.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match (values.get(half), values.len() % 2) {
        (Some(upper), 0) => f64::midpoint(values[half - 1], *upper),
        (Some(middle), _) => *middle,
        (None, _) => 0.0,
    }
}

fn silent(values: &Values) -> f64 {
    median(&[values[0].as_slice(), values[2].as_slice()].concat())
}

fn ratio(values: &Values) -> f64 {
    median(&values[WATCHED]) / silent(values)
}

fn row(name: &str, values: &Values) -> String {
    format!(
        "| {name} | {:.3} | {:.3} | {:.3} | {:.3} |",
        silent(values),
        median(&values[WATCHED]),
        ratio(values),
        median(&values[2]) / median(&values[0]),
    )
}

fn judge(ratio: f64) -> Result<(), String> {
    match ratio <= MOST {
        true => Ok(()),
        false => Err(format!(
            "watching costs {ratio:.3} of a silent request, at most {MOST} is wanted"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watched_one_is_held_against_both_runs_of_the_silent() {
        let values = [vec![10.0, 9.0], vec![10.0, 10.4], vec![11.0, 10.0]];
        assert!((ratio(&values) - 1.02).abs() < 1e-9);
        assert!(judge(ratio(&values)).is_ok());
        assert!(judge(1.04).is_err());
        assert!(row("CPU", &values).contains("| 1.020 | 1.105 |"));
    }
}
