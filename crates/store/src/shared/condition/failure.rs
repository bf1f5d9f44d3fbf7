//! Failures of a disk, and the methods that report them to the condition of the disk's store.

use std::io;

use crate::interface::add;
use crate::shared::StoreShared;

/// A failure of the device: its operation, its place and its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure<'a> {
    /// The operation: `read`, `write` or `flush`.
    pub(crate) doing: &'static str,
    /// The byte offset on the disk, if the failure has a place.
    pub(crate) at: Option<u64>,
    pub(crate) error: &'a io::Error,
}

impl<'a> Failure<'a> {
    const fn read(at: u64, error: &'a io::Error) -> Self {
        Self {
            doing: "read",
            at: Some(at),
            error,
        }
    }
}

impl std::fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.doing)?;
        if let Some(at) = self.at {
            write!(f, " at byte {at}")?;
        }
        write!(f, " failed: {}", self.error)
    }
}

impl StoreShared {
    /// Notes that a read at byte `at`, in this segment, failed.
    pub(crate) fn read_failed(&self, segment: Option<u32>, at: u64, error: &io::Error) {
        add(&self.counters.read_errors, 1);
        let disk = self.disk.describe();
        tracing::debug!(disk, at, %error, "read failed");
        let used = || self.space.used_segments();
        let failure = Failure::read(at, error);
        self.condition.read_failed(&disk, segment, used, &failure);
    }

    /// Notes that a read at byte `at`, in this segment, returned bytes that were not written there.
    pub(crate) fn read_damage(&self, segment: u32, at: u64) {
        add(&self.counters.damaged, 1);
        let error = io::Error::new(io::ErrorKind::InvalidData, "not what was written there");
        let disk = self.disk.describe();
        let failure = Failure::read(at, &error);
        self.condition.read_damage(&disk, segment, &failure);
    }

    /// Notes that a write or flush failed. Returns the number of failures in a row.
    pub(crate) fn write_failed(&self, failure: &Failure<'_>) -> u32 {
        add(&self.counters.write_errors, 1);
        let disk = self.disk.describe();
        tracing::debug!(disk, %failure, "the device failed");
        let used = || self.space.used_segments();
        self.condition.write_failed(&disk, used, failure)
    }
}
