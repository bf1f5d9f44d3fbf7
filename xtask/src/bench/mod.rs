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
    /// One table of Foxy, Squid, Traffic Server, nginx and Varnish, measured side by side
    Peers(peers::Wanted),
    /// Instructions per call of the hot paths, held against bench/micro/baseline.toml
    Micro(micro::Wanted),
    /// Two builds of Foxy under S1 to S4, alternately, as ratios of medians
    Versions(peers::versions::Wanted),
    /// Hits and handshakes over TLS 1.3 beside nginx, as ratios of medians
    Tls(tls::Wanted),
    /// Cost of observation: metrics read each second and a JSON log, on and off in turn
    Observe(observe::Wanted),
    /// Rooms that the requests of a running load enter (wants perf and addr2line)
    Rooms(rooms::Wanted),
    /// A process per request and a file per URL beside Foxy, with and without a cache
    Fork(peers::fork::Wanted),
}

/// Runs one of them.
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

/// The part of `check --long`: no hot path costs more instructions than it did.
pub(crate) fn gate(report: &mut Report) {
    report.step("bench micro", || {
        outcome(micro::run(&micro::Wanted::default()))
    });
}

fn outcome(result: Result<Outcome, String>) -> Outcome {
    result.unwrap_or_else(|problem| Outcome::single(Err(problem)))
}
