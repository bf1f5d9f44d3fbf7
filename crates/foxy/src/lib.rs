//! Foxy as a library: configuration, threads, admin listener, logs. The binary only calls this library. Tests
//! start Foxy in their own process with their own clock.

pub mod access_log;
pub mod admin;
pub mod cli;
pub mod config;
mod run;

pub use run::{Absent, Parts, Passed, Reloaded, Running, StartError, start};
