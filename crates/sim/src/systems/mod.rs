//! Cache systems. Each system manages its own memory and replacement. It gets requests, not disk operations.
//! The systems are compared with equal memory, equal disk and equal requests.

mod clusters;
mod counts;
pub mod hummingbird;
mod replay;
mod spec;
pub mod squid;
pub mod store;
mod sweep;
mod table;
pub mod ucfs;

pub use clusters::{ClusterDisk, FreeMap, Stored, Written};
pub use counts::{Histogram, SystemCounts, SystemResult};
pub use hummingbird::{Hummingbird, HummingbirdConfig, WgHummingbird};
pub use replay::{Pace, Replay, run_system};
pub use spec::{SystemConfig, SystemSpec};
pub use squid::{Squid, SquidConfig};
pub use store::Store;
pub use table::systems_table;
pub use ucfs::{Ucfs, UcfsConfig};

use foxy_trace::Request;

use crate::{
    levels::Outcome,
    model::{FsCounters, FsError, SimTime},
};

/// A complete cache.
pub trait CacheSystem {
    /// Name of the system in reports.
    fn name(&self) -> &'static str;

    /// Handles one request, until the object is read (a hit) or passed to the system (a miss).
    ///
    /// # Errors
    /// Returns the error of the file system or partition below. [`FsError::NoSpace`] is returned only if the
    /// system must stop according to its rules (Hummingbird without a free cluster).
    fn request(&mut self, request: &Request) -> Result<Outcome, FsError>;

    /// Tells the system that there are no requests before `until`. The system may use this time for daemons.
    ///
    /// # Errors
    /// The same errors as [`CacheSystem::request`].
    fn idle(&mut self, until: SimTime) -> Result<(), FsError>;

    /// Waits until everything is on the drive.
    ///
    /// # Errors
    /// The same errors as [`CacheSystem::request`].
    fn finish(&mut self) -> Result<(), FsError>;

    /// The present time of the simulated process. The drive may still have queued requests.
    fn now(&self) -> SimTime;

    /// The costs on the drive so far (requests, bytes and times).
    fn counters(&self) -> FsCounters;

    /// The counts that only some systems have.
    fn extras(&self) -> Extras {
        Extras::default()
    }
}

/// The counts that only some systems have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Number of prefetched objects: objects that entered memory with the read of another object.
    pub prefetched: u64,
    /// Number of prefetched objects that were requested while they were in memory.
    pub prefetch_hits: u64,
    /// Bytes of memory that tables take.
    pub table_bytes: u64,
    /// Number of misses that could not be stored.
    pub refused: u64,
}

#[cfg(test)]
mod tests;
