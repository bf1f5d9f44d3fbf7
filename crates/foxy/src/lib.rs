//! Foxy as a library: configuration, threads, admin listener, logs. The binary is a thin shell
//! around it, and tests start it in-process with a clock of their own.

pub mod access_log;
pub mod admin;
pub mod cli;
pub mod config;
mod run;

pub use run::{Absent, Parts, Passed, Reloaded, Running, StartError, start};
