//! `cargo xtask bench`: figures that anyone can repeat with one command each.

mod peers;

use crate::report::{Outcome, Report};

/// What to measure.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// One table of Foxy, Squid, Traffic Server, nginx and Varnish, measured side by side
    Peers(peers::Wanted),
}

/// Runs one of them.
pub(crate) fn run(report: &mut Report, bench: &Bench) {
    match bench {
        Bench::Peers(wanted) => report.step("bench peers", || outcome(peers::run(wanted))),
    }
}

fn outcome(result: Result<Outcome, String>) -> Outcome {
    result.unwrap_or_else(|problem| Outcome::single(Err(problem)))
}
