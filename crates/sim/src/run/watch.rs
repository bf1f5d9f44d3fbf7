//! A run that is looked at from inside: positions of the head, and the file at its end.

use super::{OpStream, RunConfig, RunError, RunResult, Running};
use crate::model::Op;

/// A request as the drive saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadAt {
    /// Seconds since the first operation.
    pub seconds: f64,
    /// First byte on the drive.
    pub at: u64,
    /// Read or write.
    pub op: Op,
}

/// A run's figures, and what was seen.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The usual figures.
    pub result: RunResult,
    /// Every request to the drive, in the order of their service.
    pub head: Vec<HeadAt>,
    /// Shares in use of equal parts of the shared file at the end; empty without such a file.
    pub usage: Vec<f32>,
}

/// Most requests of a run that are recorded.
const RECORDED: usize = 8 << 20;

/// As [`super::run_ops`], over a modelled file system, with `cells` parts of the file.
///
/// # Errors
/// As [`super::run`].
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
