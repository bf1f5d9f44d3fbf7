//! `foxy-lab`: measurements of Foxy and its peers from outside.

use std::process::ExitCode;

use clap::Parser;

/// Measure caches from outside
#[derive(Parser)]
#[command(name = "foxy-lab", version)]
enum Command {
    Privacy(foxy_lab::privacy::Privacy),
    Collapse(foxy_lab::collapse::Collapse),
    Flood(foxy_lab::flood::Flood),
    Linear(foxy_lab::linear::Linear),
    Bounds(foxy_lab::bounds::Bounds),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Privacy(privacy) => privacy.run(),
        Command::Collapse(collapse) => collapse.run(),
        Command::Flood(flood) => flood.run(),
        Command::Linear(linear) => linear.run(),
        Command::Bounds(bounds) => bounds.run(),
    }
}
