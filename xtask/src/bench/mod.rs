//! `cargo xtask bench`: figures that anyone can repeat with one command each.

mod micro;
mod observe;
mod peers;
mod rooms;
mod tls;

use crate::report::{Outcome, Report};

/// Kind of measurement.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// Measure Foxy, Squid, Traffic Server, nginx and Varnish in one table
    Peers(peers::Wanted),
    /// Count instructions per call of frequently executed code, and compare with bench/micro/baseline.toml
    Micro(micro::Wanted),
    /// Compare two builds of Foxy under S1 to S4, alternately, as ratios of medians
    Versions(peers::versions::Wanted),
    /// Compare hits and handshakes over TLS 1.3 with nginx, as ratios of medians
    Tls(tls::Wanted),
    /// Measure the cost of observation: metrics read each second and a JSON log, on and off in turn
    Observe(observe::Wanted),
    /// Show the rooms that the requests of a running load enter (needs perf and addr2line)
    Rooms(rooms::Wanted),
    /// Compare Foxy with a process per request and a file per URL, with and without a cache
    Fork(peers::fork::Wanted),
}

/// Runs one measurement.
pub(crate) fn run(report: &mut Report, bench: &Bench) {
    match bench {
        Bench::Peers(wanted) => report.step("bench peers", || outcome(peers::run(wanted))),
        Bench::Fork(wanted) => report.step("bench fork", || outcome(peers::fork::run(wanted))),
        Bench::Versions(wanted) => {
            report.step("bench versions", || outcome(peers::versions::run(wanted)));
        }
        Bench::Observe(wanted) => {
            report.step("bench observe", || outcome(observe::run(wanted)));
        }
        Bench::Rooms(wanted) => report.step("bench rooms", || outcome(rooms::run(wanted))),
        Bench::Tls(wanted) => report.step("bench tls", || outcome(tls::run(wanted))),
        Bench::Micro(wanted) => report.step("bench micro", || outcome(micro::run(wanted))),
    }
}

/// The part of `check --long`: no frequently executed code may need more instructions than the baseline
/// permits.
pub(crate) fn gate(report: &mut Report) {
    report.step("bench micro", || {
        outcome(micro::run(&micro::Wanted::default()))
    });
}

fn outcome(result: Result<Outcome, String>) -> Outcome {
    result.unwrap_or_else(|problem| Outcome::single(Err(problem)))
}
