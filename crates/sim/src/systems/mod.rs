//! Cache systems: they own their memory and their replacement, are fed the requests themselves,
//! and are compared at equal memory, equal disk and equal requests.

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

/// A whole cache.
pub trait CacheSystem {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// One request, until the object is read (a hit) or handed to the system (a miss).
    ///
    /// # Errors
    /// An error of the file system or partition below; [`FsError::NoSpace`] only where the system's
    /// rules say that it stops (Hummingbird without a free cluster).
    fn request(&mut self, request: &Request) -> Result<Outcome, FsError>;

    /// Nothing is asked before `until`: time for daemons.
    ///
    /// # Errors
    /// As [`CacheSystem::request`].
    fn idle(&mut self, until: SimTime) -> Result<(), FsError>;

    /// Waits until everything is on the drive.
    ///
    /// # Errors
    /// As [`CacheSystem::request`].
    fn finish(&mut self) -> Result<(), FsError>;

    /// The moment the process has reached.
    fn now(&self) -> SimTime;

    /// Cost on the drive.
    fn counters(&self) -> FsCounters;

    /// Figures of some systems only.
    fn extras(&self) -> Extras {
        Extras::default()
    }
}

/// Counts that only some systems have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Objects that came into memory with another one's read.
    pub prefetched: u64,
    /// Those of them that were then asked for while they were there.
    pub prefetch_hits: u64,
    /// Bytes of memory that tables take.
    pub table_bytes: u64,
    /// Misses that could not be stored.
    pub refused: u64,
}

#[cfg(test)]
mod tests;
