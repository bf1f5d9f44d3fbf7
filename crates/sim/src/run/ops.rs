//! The operations of a run, made once and given to as many layouts as one likes.

use super::{RunConfig, RunError};
use crate::levels::{DiskOp, DiskOpKind, LevelCounts, Levels};

/// A stream of disk operations and the counts of the levels that made it.
#[derive(Clone, Debug, Default)]
pub struct OpStream {
    /// The operations.
    pub ops: Vec<DiskOp>,
    /// The counts, up to the request that made the last operation.
    pub counts: LevelCounts,
    /// Objects on disk at the end.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
}

impl OpStream {
    /// Runs the levels of `config` until its number of operations is reached.
    ///
    /// # Errors
    /// The workload cannot be read or gives nothing to do.
    pub fn make(config: &RunConfig) -> Result<Self, RunError> {
        config.check()?;
        let mut levels = Levels::new(config.levels);
        let mut ops = Vec::new();
        let most = if config.ops == 0 {
            usize::MAX
        } else {
            config.ops as usize
        };
        for request in config.workload.open(config.seed)? {
            levels.request(&request?, &mut ops);
            if ops.len() >= most {
                break;
            }
        }
        ops.truncate(most);
        if ops.is_empty() {
            return Err(RunError::Nothing);
        }
        Ok(Self {
            counts: *levels.counts(),
            objects: levels.disk_objects() as u64,
            object_bytes: levels.disk_used(),
            ops,
        })
    }

    /// Configurations with equal keys have the same operations.
    #[must_use]
    pub fn key(config: &RunConfig) -> String {
        format!(
            "{} {} {:?} {}",
            config.workload, config.seed, config.levels, config.ops
        )
    }

    /// How many operations of a kind there are, and their bytes.
    #[must_use]
    pub fn count(&self, kind: DiskOpKind) -> (u64, u64) {
        let ops = self.ops.iter().filter(|op| op.kind == kind);
        ops.fold((0, 0), |(n, bytes), op| (n + 1, bytes + op.size))
    }
}
