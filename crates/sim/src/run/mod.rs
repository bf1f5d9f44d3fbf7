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
mod stop;
mod sweep;
mod watch;
mod workload;

pub use backend::{Backend, FsKind};
pub use config::RunConfig;
pub use error::RunError;
pub use ops::{OpStream, OpSums};
pub use real::RealFiles;
pub use result::{RunResult, Sample};
pub(crate) use stop::go_on;
pub use stop::{stop, stopped};
pub use sweep::{Job, SweepOptions, sweep, sweep_some};
pub use watch::{HeadAt, Watched, watch};
pub use workload::{Made, RequestStream, Workload};

use crate::{
    layout::{Layout, LayoutError},
    levels::{DiskOp, Levels},
    model::SimTime,
};

/// Samples of a run's course that a result keeps.
const SAMPLES: usize = 200;
/// Operations between two looks whether to stop.
pub(crate) const LOOK_EVERY: usize = 1 << 12;

/// Does one configuration.
///
/// # Errors
/// A workload that cannot be read, a drive that is not known, or a file system that refuses.
pub fn run(config: &RunConfig) -> Result<RunResult, RunError> {
    if config.ops == 0 {
        return run_whole(config);
    }
    let ops = OpStream::make(config)?;
    run_ops(config, &ops)
}

/// A workload to its end: operations go to the layout as they are made, none is kept.
fn run_whole(config: &RunConfig) -> Result<RunResult, RunError> {
    let mut layout = config.build()?;
    let (start, before) = (layout.now(), layout.counters());
    let mut levels = Levels::new(config.levels);
    let (mut ops, mut sums) = (Vec::new(), OpSums::default());
    let (mut course, mut every) = (Course::default(), 1);
    for (number, request) in config.workload.open(config.seed)?.enumerate() {
        if number.is_multiple_of(LOOK_EVERY) {
            go_on()?;
        }
        levels.request(&request?, &mut ops);
        for op in ops.drain(..) {
            course.apply(&mut *layout, &op)?;
            sums.add(&op);
            if sums.all().is_multiple_of(every) {
                let at = layout.now() - start;
                course
                    .samples
                    .push(Sample::take(sums.all(), at, &layout.stats()));
                if course.samples.len() == 2 * SAMPLES {
                    // How long the workload is, nobody knows: every second one is enough.
                    every *= 2;
                    course
                        .samples
                        .retain(|sample| sample.ops.is_multiple_of(every));
                }
            }
        }
    }
    if sums.all() == 0 {
        return Err(RunError::Nothing);
    }
    layout.finish().map_err(RunError::Layout)?;
    let sequential = config.backend.sequential()?;
    let made = (levels.counts(), sums);
    Ok(RunResult::new(
        config, made, &*layout, &before, start, course, sequential,
    ))
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
        config,
        (&ops.counts, ops.sums()),
        &*layout,
        &before,
        start,
        course,
        sequential,
    ))
}

/// All operations, then what the layout still holds.
fn drive_ops(layout: &mut dyn Layout, ops: &OpStream, start: SimTime) -> Result<Course, RunError> {
    let mut course = Course::default();
    let every = (ops.ops.len() / SAMPLES).max(1);
    for (number, op) in ops.ops.iter().enumerate() {
        course.apply(layout, op)?;
        if number.is_multiple_of(LOOK_EVERY) {
            go_on()?;
        }
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
