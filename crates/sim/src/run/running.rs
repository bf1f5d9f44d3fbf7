//! A run in progress: its layout, its start, and the events so far.

use super::{
    OpStream, OpSums, RunConfig, RunError, RunResult, STOP_CHECK_INTERVAL, Sample, feed::feed,
    go_on,
};
use crate::{
    layout::{Layout, LayoutError},
    levels::{DiskOp, DiskOpKind, LevelCounts},
    model::{FsCounters, SimTime},
};

/// Least number of samples that the result of a long run keeps. It keeps fewer than twice this number.
pub(super) const SAMPLES: usize = 200;

/// Events during a run.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Number of writes refused because there was no space.
    pub(crate) refused: u64,
    /// Number of reads and deletes of objects that were refused or dropped before.
    pub(crate) missing: u64,
    pub(crate) samples: Vec<Sample>,
}

impl Course {
    /// Counts the result of an operation. A write that was refused because there was no space, and an
    /// operation on a missing object, are counted. Any other failure is returned as an error.
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

/// A configuration while it runs.
pub(super) struct Running<'a> {
    pub(super) config: &'a RunConfig,
    pub(super) layout: Box<dyn Layout>,
    /// Time of the first operation. `before` contains the costs on the drive until this time.
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

    /// Applies all operations of a list.
    pub(super) fn list(&mut self, ops: &OpStream) -> Result<(), RunError> {
        let every = (ops.ops.len() / SAMPLES).max(1);
        for (number, op) in ops.ops.iter().enumerate() {
            self.apply(op)?;
            if number.is_multiple_of(STOP_CHECK_INTERVAL) {
                go_on()?;
            }
            if (number + 1) % every == 0 {
                self.sample(number as u64 + 1);
            }
        }
        Ok(())
    }

    /// Runs a workload to its end. Operations are applied as they are made, and are not kept.
    pub(super) fn workload(&mut self) -> Result<(LevelCounts, OpSums), RunError> {
        let (mut sums, mut every) = (OpSums::default(), 1);
        let counts = feed(self.config, |op| {
            self.apply(op)?;
            sums.add(op);
            if sums.all().is_multiple_of(every) {
                self.sample(sums.all());
                if self.course.samples.len() == 2 * SAMPLES {
                    // The length of the workload is unknown. Each time the list of samples is full, every
                    // second sample is dropped, and from then on samples are taken half as often.
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

    /// Writes all data that the layout still buffers to the drive, and returns the results.
    pub(super) fn result(
        &mut self,
        counts: &LevelCounts,
        sums: OpSums,
    ) -> Result<RunResult, RunError> {
        self.layout.finish().map_err(RunError::Layout)?;
        let mut result = RunResult::new(self, counts, sums);
        // The bandwidth is measured only now. On real files the measurement takes real time and uses the
        // device, and the results of the run must not include this.
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
