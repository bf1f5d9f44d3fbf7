//! One run while it goes on: a layout, where it began, and what happened on the way.

use super::{
    LOOK_EVERY, OpStream, OpSums, RunConfig, RunError, RunResult, Sample, feed::feed, go_on,
};
use crate::{
    layout::{Layout, LayoutError},
    levels::{DiskOp, DiskOpKind, LevelCounts},
    model::{FsCounters, SimTime},
};

/// Samples of a run's course that a result keeps.
pub(super) const SAMPLES: usize = 200;

/// Events on the way.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Writes refused for want of space.
    pub(crate) refused: u64,
    /// Reads and deletes of objects that were refused or dropped before.
    pub(crate) missing: u64,
    pub(crate) samples: Vec<Sample>,
}

impl Course {
    /// Counts an operation's result: a write refused for want of space and an operation on a missing
    /// object are counted, everything else is an error.
    pub(crate) fn count(&mut self, end: Result<(), LayoutError>) -> Result<(), RunError> {
        match end {
            Ok(()) => {}
            Err(LayoutError::Full) => self.refused += 1,
            Err(LayoutError::Missing) => self.missing += 1,
            Err(error) => return Err(RunError::Layout(error)),
        }
        Ok(())
    }
}

/// A configuration at work.
pub(super) struct Running<'a> {
    pub(super) config: &'a RunConfig,
    pub(super) layout: Box<dyn Layout>,
    /// The moment of the first operation, and the drive's sums until then.
    pub(super) start: SimTime,
    pub(super) before: FsCounters,
    pub(super) course: Course,
}

impl<'a> Running<'a> {
    pub(super) fn new(config: &'a RunConfig, layout: Box<dyn Layout>) -> Self {
        Self {
            config,
            start: layout.now(),
            before: layout.counters(),
            layout,
            course: Course::default(),
        }
    }

    /// All operations of a list.
    pub(super) fn list(&mut self, ops: &OpStream) -> Result<(), RunError> {
        let every = (ops.ops.len() / SAMPLES).max(1);
        for (number, op) in ops.ops.iter().enumerate() {
            self.apply(op)?;
            if number.is_multiple_of(LOOK_EVERY) {
                go_on()?;
            }
            if (number + 1) % every == 0 {
                self.sample(number as u64 + 1);
            }
        }
        Ok(())
    }

    /// A workload to its end: operations are applied as they are made, none is kept.
    pub(super) fn workload(&mut self) -> Result<(LevelCounts, OpSums), RunError> {
        let (mut sums, mut every) = (OpSums::default(), 1);
        let counts = feed(self.config, |op| {
            self.apply(op)?;
            sums.add(op);
            if sums.all().is_multiple_of(every) {
                self.sample(sums.all());
                if self.course.samples.len() == 2 * SAMPLES {
                    // The workload's length is unknown: drop every second sample, go on half as often.
                    every *= 2;
                    let kept = |sample: &Sample| sample.ops.is_multiple_of(every);
                    self.course.samples.retain(kept);
                }
            }
            Ok(())
        })?;
        if sums.all() == 0 {
            return Err(RunError::Nothing);
        }
        Ok((counts, sums))
    }

    /// Writes the rest that the layout holds to the drive, and returns the figures.
    pub(super) fn result(
        &mut self,
        counts: &LevelCounts,
        sums: OpSums,
    ) -> Result<RunResult, RunError> {
        self.layout.finish().map_err(RunError::Layout)?;
        let mut result = RunResult::new(self, counts, sums);
        // Measured after the run, because on real files the measurement takes real and device time.
        let bytes = sums.of(DiskOpKind::Read).1 + sums.of(DiskOpKind::Write).1;
        result.against(self.config.backend.sequential()?, bytes);
        Ok(result)
    }

    fn apply(&mut self, op: &DiskOp) -> Result<(), RunError> {
        self.course.count(self.layout.apply(op))
    }

    fn sample(&mut self, ops: u64) {
        let at = self.layout.now() - self.start;
        let sample = Sample::take(ops, at, &self.layout.stats());
        self.course.samples.push(sample);
    }
}
