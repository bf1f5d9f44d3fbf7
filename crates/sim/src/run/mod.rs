//! Runs: a workload goes through the cache levels into a layout on a modelled drive, and the
//! results are measured.
//!
//! [`run`] runs one configuration, [`sweep`] runs many configurations in parallel. Configurations and results
//! are plain values that can be written to tables and to JSON.

mod backend;
mod config;
mod error;
mod feed;
mod ops;
mod partition;
mod real;
mod result;
mod running;
mod stop;
mod sweep;
mod watch;
mod workload;

pub use backend::{Backend, FsKind};
pub use config::RunConfig;
pub use error::RunError;
pub use ops::{OpStream, OpSums};
pub use partition::Partition;
pub use real::RealFiles;
pub use result::{RunResult, Sample};
pub(crate) use stop::go_on;
pub use stop::{stop, stopped};
pub use sweep::{Job, SweepOptions, sweep, sweep_some};
pub use watch::{HeadAt, Watched, watch};
pub use workload::{Made, RequestStream, Workload};

pub(crate) use running::Course;
use running::Running;

/// Number of operations between two checks for a stop.
pub(crate) const STOP_CHECK_INTERVAL: usize = 1 << 12;

/// Runs one configuration.
///
/// # Errors
/// Returns an error if the workload cannot be read, there is no drive of the configured name, or the file
/// system fails.
pub fn run(config: &RunConfig) -> Result<RunResult, RunError> {
    if config.ops > 0 {
        return run_ops(config, &OpStream::make(config)?);
    }
    let mut running = Running::new(config, config.build(&[])?);
    let (counts, sums) = running.workload()?;
    running.result(&counts, sums)
}

/// Runs one configuration on operations that were already made for it, or for another configuration with the
/// same [`OpStream::key`].
///
/// # Errors
/// The same errors as [`run`].
pub fn run_ops(config: &RunConfig, ops: &OpStream) -> Result<RunResult, RunError> {
    let mut running = Running::new(config, config.build(&ops.ops)?);
    running.list(ops)?;
    running.result(&ops.counts, ops.sums())
}

#[cfg(test)]
mod tests;
