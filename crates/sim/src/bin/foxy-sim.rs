//! The simulator by itself; the same commands as `foxy sim`.

use std::process::ExitCode;

use clap::Parser;
use foxy_sim::cli::SimCommand;

/// Simulates web caches, the systems of the papers and the disks below them.
#[derive(Debug, clap::Parser)]
#[command(name = "foxy-sim", version)]
struct Cli {
    #[command(subcommand)]
    command: SimCommand,
}

fn main() -> ExitCode {
    Cli::parse().command.run()
}
