//! The operations of a run. They are made once and can be passed to many layouts.

use super::{RunConfig, RunError, STOP_CHECK_INTERVAL, go_on};
use crate::levels::{DiskOp, DiskOpKind, LevelCounts, Levels};

/// For each kind, the number of operations and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpSums([(u64, u64); 3]);

impl OpSums {
    /// Counts one operation.
    pub fn add(&mut self, op: &DiskOp) {
        let (count, bytes) = &mut self.0[op.kind as usize];
        *count += 1;
        *bytes += op.size;
    }

    /// Number of operations of one kind, and their bytes.
    #[must_use]
    pub const fn of(&self, kind: DiskOpKind) -> (u64, u64) {
        self.0[kind as usize]
    }

    /// Number of operations of all kinds.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.0.iter().map(|(count, _)| count).sum()
    }
}

/// A stream of disk operations, and the counts of the levels that made it.
#[derive(Clone, Debug, Default)]
pub struct OpStream {
    /// The operations.
    pub ops: Vec<DiskOp>,
    /// The counts of the levels, up to the request that made the last operation.
    pub counts: LevelCounts,
    /// Number of objects on disk at the end.
    pub objects: u64,
    /// Bytes of these objects.
    pub object_bytes: u64,
}

impl OpStream {
    /// Runs the levels of `config` until the configured number of operations is reached.
    ///
    /// # Errors
    /// Returns an error if the workload cannot be read or contains no operations.
    pub fn make(config: &RunConfig) -> Result<Self, RunError> {
        config.check()?;
        let mut levels = Levels::new(config.levels);
        let mut ops = Vec::new();
        let most = if config.ops == 0 {
            usize::MAX
        } else {
            config.ops as usize
        };
        for (number, request) in config.workload.open(config.seed)?.enumerate() {
            levels.request(&request?, &mut ops);
            if number.is_multiple_of(STOP_CHECK_INTERVAL) {
                go_on()?;
            }
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

    /// A key for the operations: configurations with equal keys have the same operations.
    #[must_use]
    pub fn key(config: &RunConfig) -> String {
        format!(
            "{} {} {:?} {}",
            config.workload, config.seed, config.levels, config.ops
        )
    }

    /// Sums of all operations.
    #[must_use]
    pub fn sums(&self) -> OpSums {
        let mut sums = OpSums::default();
        self.ops.iter().for_each(|op| sums.add(op));
        sums
    }

    /// Number of operations of one kind, and their bytes.
    #[must_use]
    pub fn count(&self, kind: DiskOpKind) -> (u64, u64) {
        self.sums().of(kind)
    }
}
