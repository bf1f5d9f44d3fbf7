//! `cargo xtask accept`: measures and judges the properties that a release must have on this machine.
//!
//! A release build of Foxy runs as its own process between the load generator and the deterministic origin.
//! Every byte of every answer is checked, except in the part `hit`, which compares the bytes of one answer in
//! a hundred. Results are printed in tables. Counts and ratios are judged. Times are only printed, except in
//! the part `purge`, which judges the time until a purge is acknowledged. The command takes about fifteen
//! minutes and is not part of `check`. The part `mirrors` needs pip, npm, cargo, apt and their registries.

mod collapse;
mod faults;
mod hit_cost;
mod mirrors;
pub(crate) mod process;
mod purge;
mod ranges;
mod replay;
mod restart;
mod size;

use std::path::PathBuf;

use crate::report::Report;

/// Parts to run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AcceptArgs {
    /// Run only these parts: replay, stream, size, restart, hit, purge, collapse, ranges, faults, mirrors
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    /// Folder for stores and records; needs about 16 GiB, on a file system with direct I/O
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Use this Foxy program in place of a release build of this workspace; a `foxy-lab` in the same folder
    /// is used too
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Number of requests of the synthetic stream
    #[arg(long, default_value_t = 2_000_000)]
    requests: u64,
}

/// Runs the requested parts; by default all parts.
pub(crate) fn run(report: &mut Report, args: &AcceptArgs) {
    let bench = match process::Bench::new(args.program.as_deref(), args.dir.as_deref()) {
        Ok(bench) => bench,
        Err(problem) => {
            report.step("build", || crate::report::Outcome::single(Err(problem)));
            return;
        }
    };
    let asked = |part: &str| args.parts.is_empty() || args.parts.iter().any(|p| p == part);
    if asked("replay") {
        report.step("traces", || replay::traces(&bench));
    }
    if asked("stream") {
        report.step("synthetic stream", || replay::stream(&bench, args.requests));
    }
    if asked("size") {
        report.step("predicted sizes", || {
            replay::with_log(|log| size::run(&bench, log))
        });
    }
    if asked("restart") {
        report.step("kill and restart", || restart::run(&bench));
    }
    if asked("purge") {
        report.step("purge of a million", || purge::run(&bench));
    }
    if asked("collapse") {
        report.step("one fetch for many", || collapse::run(&bench));
    }
    if asked("ranges") {
        report.step("ranges of large objects", || ranges::run(&bench));
    }
    if asked("faults") {
        report.step("disks in trouble", || faults::run(&bench));
    }
    if asked("mirrors") {
        report.step("public registries", || mirrors::run(&bench));
    }
    if asked("hit") {
        report.step("cost of a hit", || hit_cost::run(&bench));
    }
}
