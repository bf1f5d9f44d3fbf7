//! Foxy as a library: configuration, threads, admin listener, logs. The program `foxy` only calls this
//! library. Some tests start Foxy inside their own process, with a clock that they control.

pub mod access_log;
pub mod admin;
pub mod cli;
pub mod config;
mod run;

pub use run::{Absent, Parts, Passed, Reloaded, Running, StartError, start};
