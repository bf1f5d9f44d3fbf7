//! `cargo xtask bench observe`: what being watched costs. Memory hits of 4 KiB by a Foxy without a log that
//! nobody asks, and by one that writes its JSON log and whose metrics are read each second.
//!
//! Each turn starts a Foxy of its own, since two processes of one program differ by where their memory lies.
//! The silent one has two turns in a round: the ratio of its medians is the noise. Where the kernel counts
//! instructions for `perf`, those of the server are compared; else the CPU time that its threads had.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::accept::process::{Bench, Foxy, number, report_of};
use crate::report::Outcome;

/// The part that may be added to a request's cost.
const MOST: f64 = 1.03;
/// Turns of a round; the silent Foxy has two.
const TURNS: [&str; 3] = ["silent", "watched", "silent again"];
const WATCHED: usize = 1;
/// Cores of Foxy, and of load, origin and reader.
const CORES: [&str; 2] = ["0", "1"];
/// Time between two readings of the metrics.
const READING: Duration = Duration::from_secs(1);

/// Length of the comparison.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Wanted {
    /// Rounds; each runs the silent Foxy twice and the watched one once
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: usize,
    /// Seconds of load in a turn
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    /// A Foxy that is built already, with a `foxy-lab` beside it; default: a release build of this tree
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Folder for the log; default: target
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A figure by turn.
type Figures = [Vec<f64>; TURNS.len()];

/// Measures and prints; fails if a request fails, or if watching costs more than it may.
pub(crate) fn run(wanted: &Wanted) -> Result<Outcome, String> {
    let bench = Bench::new(wanted.program.as_deref(), wanted.dir.as_deref())?;
    let counts = Counts::new();
    let (mut instructions, mut cpu) = (Figures::default(), Figures::default());
    for round in 0..wanted.rounds {
        // The order turns around, so that a slow drift favours neither.
        let mut turns: Vec<_> = (0..TURNS.len()).collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        for turn in turns {
            let measured = once(&bench, wanted, counts, turn == WATCHED)?;
            println!("   round {}, {}: {measured}", round + 1, TURNS[turn]);
            cpu[turn].push(measured.cpu);
            instructions[turn].extend(measured.instructions);
        }
    }
    println!("| figure of a request | silent | watched | watched / silent | silent / silent (noise) |");
    println!("| --- | --- | --- | --- | --- |");
    let judged = match instructions[WATCHED].len() == wanted.rounds {
        true => {
            println!("{}", row("instructions", &instructions));
            &instructions
        }
        false => &cpu,
    };
    println!("{}", row("CPU, us", &cpu));
    Ok(Outcome::single(judge(ratio(judged))))
}

/// The figures of a turn, for one request each.
struct Measured {
    cpu: f64,
    instructions: Option<f64>,
    rate: f64,
    /// Readings of the metrics, and lines in the log.
    seen: (u64, usize),
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}/s, CPU {:.3} us", self.rate, self.cpu)?;
        if let Some(instructions) = self.instructions {
            write!(f, ", {instructions:.0} instructions")?;
        }
        let (readings, lines) = self.seen;
        write!(f, "; metrics read {readings} times, {lines} lines in the log")
    }
}

/// Starts a Foxy, warms it up, measures, and ends it.
fn once(bench: &Bench, wanted: &Wanted, counts: Counts, watched: bool) -> Result<Measured, String> {
    let (log, config) = (bench.path("observe.log"), bench.path("observe.toml"));
    std::fs::write(&config, "[log]\nformat = \"json\"\n")
        .map_err(|error| format!("{}: {error}", config.display()))?;
    let (log_name, config) = (log.to_string_lossy(), config.to_string_lossy());
    let mut args = vec!["--store", "off", "--memory", "256MiB", "--workers", "1"];
    if watched {
        args.extend(["--config", &config, "--access-log", &log_name]);
    }
    let foxy = bench.foxy(&args)?;
    pin(&foxy);
    // What is measured is hits.
    let all = ["--workload", "scan", "--requests", "2000"];
    load(bench, &foxy, &all)?;
    let seconds = format!("{}s", wanted.seconds);
    let length = ["--warm-up", "1s", "--duration", &seconds];
    let counting = counts.begin(&foxy, &bench.path("observe.count"))?;
    let (ended, readings) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = std::thread::scope(|scope| {
        if watched {
            scope.spawn(|| read_metrics(&foxy.admin(), &ended, &readings));
        }
        let report = load(bench, &foxy, &length);
        ended.store(true, Relaxed);
        report
    })?;
    let instructions = counting.end()?;
    let answers = number(&report, &["answers_in_all"]).max(number(&report, &["answers"]));
    foxy.stop()?;
    let lines = std::fs::read(&log).unwrap_or_default();
    let lines = lines.iter().filter(|byte| **byte == b'\n').count();
    let _ = std::fs::remove_file(&log);
    let seen = (readings.into_inner(), lines);
    if watched && (seen.0 == 0 || (lines as f64) < answers) {
        return Err(format!("it was not watched: {seen:?} of {answers} requests"));
    }
    Ok(Measured {
        cpu: number(&report, &["cpu_us", "total"]),
        instructions: instructions.map(|count| count / answers),
        rate: number(&report, &["rate"]),
        seen,
    })
}
