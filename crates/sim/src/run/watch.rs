//! A run that also records positions of the head, and the usage of the file at the end.

use super::{OpStream, RunConfig, RunError, RunResult, Running};
use crate::model::Op;

/// A request as the drive received it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadAt {
    /// Seconds since the first operation.
    pub seconds: f64,
    /// Address of the first byte on the drive.
    pub at: u64,
    /// Direction of the transfer: read or write.
    pub op: Op,
}

/// A run's results, with the recorded data.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The results of the run.
    pub result: RunResult,
    /// Every request to the drive, in the order in which the drive served them.
    pub head: Vec<HeadAt>,
    /// Used share of each of the equal parts of the shared file, at the end of the run. Empty if there is no
    /// shared file.
    pub usage: Vec<f32>,
}

/// Maximum number of requests that are recorded.
const RECORDED: usize = 8 << 20;

/// Runs a configuration as [`super::run_ops`] does, over a modelled file system. For `usage`, the shared file
/// is divided into `cells` parts.
///
/// # Errors
/// The same errors as [`super::run`].
pub fn watch(config: &RunConfig, ops: &OpStream, cells: usize) -> Result<Watched, RunError> {
    config.check()?;
    let mut files = config.backend.ufs()?;
    files.drive_mut().stats_mut().record(RECORDED);
    let layout = config.layout.build(files, config.sizes(), &ops.ops);
    let mut running = Running::new(config, layout.map_err(RunError::Layout)?);
    running.list(ops)?;
    let result = running.result(&ops.counts, ops.sums())?;
    let (layout, start) = (&running.layout, running.start);
    let trace = layout.counters().drive.trace;
    let head = trace.iter().filter(|t| t.start >= start).map(|t| HeadAt {
        seconds: (t.start - start).as_secs(),
        at: t.at,
        op: t.op,
    });
    Ok(Watched {
        head: head.collect(),
        usage: layout.usage(cells),
        result,
    })
}
