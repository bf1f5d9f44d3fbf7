//! `foxy-bench`: the load tools as a program of their own.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use foxy_base::SystemClock;
use foxy_bench::cli::BenchCommand;

/// An origin server and a load generator whose every byte can be checked.
#[derive(clap::Parser)]
#[command(name = "foxy-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: BenchCommand,
}

fn main() -> ExitCode {
    let clock: Arc<dyn foxy_base::Clock> = Arc::new(SystemClock::default());
    Cli::parse().command.run(&clock)
}
