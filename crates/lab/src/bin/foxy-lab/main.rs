//! `foxy-lab`: simulator, access logs, load tools, and measurements of Foxy and its peers from outside.

mod bench;
mod proxy;

use std::process::ExitCode;

use clap::Parser;

/// The allocator of the product, so that load tools and the engine are measured with the same allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The laboratory of Foxy: simulate, replay, load and measure caches
#[derive(Parser)]
#[command(name = "foxy-lab", version)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of it, for a moment"
)]
enum Command {
    /// Simulate published systems, or simulate what more memory and disk would change for your own log
    #[command(subcommand)]
    Sim(foxy_sim::cli::SimCommand),
    /// Read, convert and generate access logs
    #[command(subcommand)]
    Trace(foxy_trace::cli::TraceCommand),
    /// Load tools that can check every byte
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    Privacy(foxy_lab::privacy::Privacy),
    Collapse(foxy_lab::collapse::Collapse),
    Flood(foxy_lab::flood::Flood),
    Linear(foxy_lab::linear::Linear),
    Logins(foxy_lab::logins::Logins),
    Bounds(foxy_lab::bounds::Bounds),
    Soak(foxy_lab::bounds::Soak),
    Origins(foxy_lab::origins::Origins),
    Stores(foxy_lab::stores::Stores),
    Reloads(foxy_lab::reloads::Reloads),
    Mirrors(foxy_lab::mirrors::Mirrors),
    Hostile(foxy_lab::hostile::Hostile),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Sim(command) => command.run(),
        Command::Trace(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Privacy(privacy) => privacy.run(),
        Command::Collapse(collapse) => collapse.run(),
        Command::Flood(flood) => flood.run(),
        Command::Linear(linear) => linear.run(),
        Command::Logins(logins) => logins.run(),
        Command::Bounds(bounds) => bounds.run(),
        Command::Soak(soak) => soak.run(),
        Command::Origins(origins) => origins.run(),
        Command::Stores(stores) => stores.run(),
        Command::Reloads(reloads) => reloads.run(),
        Command::Mirrors(mirrors) => mirrors.run(),
        Command::Hostile(hostile) => hostile.run(),
    }
}
