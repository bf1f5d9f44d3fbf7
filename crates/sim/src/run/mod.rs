//! Runs: a workload through the cache levels into a layout on a modelled drive, and the figures.
//!
//! [`run`] does one configuration, [`sweep`] many in parallel; configurations and results are
//! plain values that go to tables and JSON alike.

mod backend;
mod config;
mod error;
mod ops;
mod real;
mod result;
mod sweep;
mod watch;
mod workload;

pub use backend::{Backend, FsKind};
pub use config::RunConfig;
pub use error::RunError;
pub use ops::OpStream;
pub use real::RealFiles;
pub use result::{RunResult, Sample};
pub use sweep::{SweepOptions, sweep};
pub use watch::{HeadAt, Watched, watch};
pub use workload::{Made, RequestStream, Workload};

use crate::{
    layout::{Layout, LayoutError},
    levels::DiskOp,
    model::SimTime,
};

/// Samples of a run's course that a result keeps.
const SAMPLES: usize = 200;

/// Does one configuration.
///
/// # Errors
/// A workload that cannot be read, a drive that is not known, or a file system that refuses.
pub fn run(config: &RunConfig) -> Result<RunResult, RunError> {
    let ops = OpStream::make(config)?;
    run_ops(config, &ops)
}

/// Does one configuration whose operations were made before (see [`OpStream::key`]).
///
/// # Errors
/// As [`run`].
pub fn run_ops(config: &RunConfig, ops: &OpStream) -> Result<RunResult, RunError> {
    let mut layout = config.build()?;
    let start = layout.now();
    let before = layout.counters();
    let course = drive_ops(&mut *layout, ops, start)?;
    let sequential = config.backend.sequential()?;
    Ok(RunResult::new(
        config, ops, &*layout, &before, start, course, sequential,
    ))
}

/// All operations, then what the layout still holds.
fn drive_ops(layout: &mut dyn Layout, ops: &OpStream, start: SimTime) -> Result<Course, RunError> {
    let mut course = Course::default();
    let every = (ops.ops.len() / SAMPLES).max(1);
    for (number, op) in ops.ops.iter().enumerate() {
        course.apply(layout, op)?;
        if (number + 1) % every == 0 {
            let at = layout.now() - start;
            course
                .samples
                .push(Sample::take(number as u64 + 1, at, &layout.stats()));
        }
    }
    layout.finish().map_err(RunError::Layout)?;
    Ok(course)
}

/// What happened on the way.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Writes refused for want of space.
    pub(crate) refused: u64,
    /// Reads and deletes of objects that were refused or dropped before.
    pub(crate) missing: u64,
    pub(crate) samples: Vec<Sample>,
}

impl Course {
    fn apply(&mut self, layout: &mut dyn Layout, op: &DiskOp) -> Result<(), RunError> {
        match layout.apply(op) {
            Ok(()) => {}
            Err(LayoutError::Full) => self.refused += 1,
            Err(LayoutError::Missing) => self.missing += 1,
            Err(error) => return Err(RunError::Layout(error)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
