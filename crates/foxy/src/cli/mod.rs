//! The command line of the `foxy` binary.
//!
//! Exit codes: 0 for success, 1 for a failure at run time, 2 for wrong usage or configuration.

mod admin_args;
mod args;
mod check;
mod check_request;
mod client;
mod lab;
mod ls;
mod mirror;
mod own_file;
mod purge;
mod reload;
mod say;
mod serve;
mod stats;
mod store;
mod stores;
mod why;

pub use args::{Cli, Command, LabArgs, ServeArgs};
pub use own_file::read_ahead;

use std::process::ExitCode;

use clap::Parser;

/// The exit code for wrong usage or configuration.
const USAGE: u8 = 2;

/// Runs the command that the process was called with.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // The program's file is read in advance, so that the first requests need not wait for parts of the file
    // that are not in memory yet.
    if let None | Some(Command::Serve(_)) = cli.command {
        read_ahead();
    }
    match cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Stats(args)) => stats::run(&args),
        Some(Command::Reload(args)) => reload::run(&args),
        Some(Command::Purge(args)) => purge::run(&args),
        Some(Command::Why(args)) => why::run(&args),
        Some(Command::Ls(args)) => ls::run(&args),
        Some(Command::Mirror(command)) => mirror::run(&command),
        Some(Command::Store(command)) => store::run(&command),
        Some(Command::Trace(lab)) => lab::run("trace", &lab.args),
        Some(Command::Sim(lab)) => lab::run("sim", &lab.args),
        Some(Command::Bench(lab)) => lab::run("bench", &lab.args),
    }
}

/// Runs the proxy until SIGTERM or SIGINT, with the clock, the disks and the other [`Parts`](crate::Parts)
/// that the caller provides.
#[must_use]
pub fn serve(args: &ServeArgs, parts: crate::Parts) -> ExitCode {
    serve::run_with(args, parts)
}

/// Encodes all characters except letters, digits and `-._~` as `%XX`.
fn encoded(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Reports a failure at run time.
fn failed(message: impl std::fmt::Display) -> ExitCode {
    eprintln!("foxy: {message}");
    ExitCode::FAILURE
}

/// Reports all mistakes in the configuration.
fn misconfigured(problems: &[crate::config::Problem]) -> ExitCode {
    for problem in problems {
        eprintln!("foxy: {problem}");
    }
    let all = if problems.len() == 1 {
        "1 mistake"
    } else {
        &format!("{} mistakes", problems.len())
    };
    eprintln!("foxy: {all} in the configuration; docs/config.md lists every setting");
    ExitCode::from(USAGE)
}

#[cfg(test)]
mod tests;
