//! `cargo xtask bench`: measurements that anyone can repeat with one command each.

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
    Peers(peers::PeersArgs),
    /// Count instructions per call of frequently executed code, and compare with bench/micro/baseline.toml
    Micro(micro::MicroArgs),
    /// Compare two builds of Foxy under S1 to S4; the builds run alternately, results are ratios of medians
    Versions(peers::versions::VersionsArgs),
    /// Compare hits and handshakes over TLS 1.3 with nginx, as ratios of medians
    Tls(tls::TlsArgs),
    /// Measure the cost of observation: metrics read each second and a JSON log, on and off in turn
    Observe(observe::ObserveArgs),
    /// Show the rooms that the requests of a running load enter (needs perf and addr2line)
    Rooms(rooms::RoomsArgs),
    /// Compare Foxy with a proxy that has a process per request and a file per URL, with and without a cache
    Fork(peers::fork::ForkArgs),
}

/// Runs one measurement.
pub(crate) fn run(report: &mut Report, bench: &Bench) {
    match bench {
        Bench::Peers(args) => report.step("bench peers", || outcome(peers::run(args))),
        Bench::Fork(args) => report.step("bench fork", || outcome(peers::fork::run(args))),
        Bench::Versions(args) => {
            report.step("bench versions", || outcome(peers::versions::run(args)));
        }
        Bench::Observe(args) => {
            report.step("bench observe", || outcome(observe::run(args)));
        }
        Bench::Rooms(args) => report.step("bench rooms", || outcome(rooms::run(args))),
        Bench::Tls(args) => report.step("bench tls", || outcome(tls::run(args))),
        Bench::Micro(args) => report.step("bench micro", || outcome(micro::run(args))),
    }
}

/// A step of `check --long`. It checks that no frequently executed code needs more instructions than the
/// baseline permits.
pub(crate) fn check_instructions(report: &mut Report) {
    report.step("bench micro", || {
        outcome(micro::run(&micro::MicroArgs::default()))
    });
}

fn outcome(result: Result<Outcome, String>) -> Outcome {
    result.unwrap_or_else(|problem| Outcome::single(Err(problem)))
}
