//! Runs: a workload through the cache levels into a layout on a modelled drive, and the figures.
//!
//! [`run`] does one configuration, [`sweep`] many in parallel; configurations and results are
//! plain values that go to tables and JSON alike.

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

/// Operations between two checks whether to stop.
pub(crate) const LOOK_EVERY: usize = 1 << 12;

/// Does one configuration.
///
/// # Errors
/// A workload that cannot be read, a drive that is not known, or a file system that refuses.
pub fn run(config: &RunConfig) -> Result<RunResult, RunError> {
    if config.ops > 0 {
        return run_ops(config, &OpStream::make(config)?);
    }
    let mut running = Running::new(config, config.build(&[])?);
    let (counts, sums) = running.workload()?;
    running.result(&counts, sums)
}

/// Does one configuration whose operations were made before (see [`OpStream::key`]).
///
/// # Errors
/// As [`run`].
pub fn run_ops(config: &RunConfig, ops: &OpStream) -> Result<RunResult, RunError> {
    let mut running = Running::new(config, config.build(&ops.ops)?);
    running.list(ops)?;
    running.result(&ops.counts, ops.sums())
}

#[cfg(test)]
mod tests;
