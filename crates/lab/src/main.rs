//! `foxy-lab`: what Foxy does, measured from outside.

use std::process::ExitCode;

use clap::Parser;

/// Measures caches from outside.
#[derive(Parser)]
#[command(name = "foxy-lab", version)]
enum Command {
    Linear(foxy_lab::linear::Linear),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Linear(linear) => linear.run(),
    }
}
