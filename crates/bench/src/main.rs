//! `foxy-bench`: the load tools as a program of their own.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use foxy_base::SystemClock;
use foxy_bench::cli::BenchCommand;
use foxy_trace::cli::TraceCommand;

/// An origin server and a load generator whose every byte can be checked.
#[derive(clap::Parser)]
#[command(name = "foxy-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    #[command(flatten)]
    Bench(BenchCommand),
    /// Read, convert and generate access logs
    #[command(subcommand)]
    Trace(TraceCommand),
}

fn main() -> ExitCode {
    let clock: Arc<dyn foxy_base::Clock> = Arc::new(SystemClock::default());
    match Cli::parse().command {
        Command::Bench(command) => command.run(&clock),
        Command::Trace(command) => command.run(),
    }
}
