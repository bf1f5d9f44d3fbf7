//! Hummingbird: a library file system for web proxies (Gabber, Shriver, Stein 1999; Shriver,
//! Gabber, Huang, Stein, USENIX 2001).
//!
//! Rules: files are packed into clusters of fixed size as late as possible, when memory is needed. A cluster
//! is written as soon as it is packed, so that it is always clean. Packing begins with the least recently
//! used file. Then it adds the files that the client's hints name for this file, as far as they are in
//! memory. A file that is already in another cluster becomes a replica. Packing continues with the next least
//! recently used files up to the fill threshold. Reading a file reads its cluster, and all files in the
//! cluster enter memory. Files and clusters in memory are two LRU lists. The oldest entry of the two lists
//! leaves memory first. A file that has to leave is packed. Daemons pack, free memory and free disk space (by
//! lifetimes). The library has no access protection. Its only client calls it directly.
//!
//! Interpretations where the sources are silent:
//!
//! - A packed cluster is as old as its most recently used file.
//! - Of several replicas of a file, a replica in memory is used. If no replica is in memory, the newest
//!   replica is used.
//! - A file that was packed accepts no more hints (its list of hints no longer exists).

mod calls;
mod clusters;
mod config;
mod daemons;
mod files;
mod logs;
mod pack;
mod recovery;
#[cfg(test)]
mod tests;
mod wg;

pub use calls::{Contents, HummingbirdCounts};
pub use config::{HummingbirdConfig, HummingbirdError, LogConfig, Placement};
pub use recovery::{CrashImage, RecoveryReport};
pub use wg::{WgConfig, WgHummingbird};

use super::ClusterDisk;
use crate::model::{FsCounters, Raw, SimTime};
use clusters::ClusterTable;
use files::FileTable;
use logs::Logs;

/// The library.
#[derive(Clone, Debug)]
pub struct Hummingbird {
    config: HummingbirdConfig,
    disk: ClusterDisk,
    files: FileTable,
    clusters: ClusterTable,
    logs: Logs,
    counts: HummingbirdCounts,
    tick: u64,
    calls: u64,
    daemon: u8,
    /// Time of the last run of a daemon that was caused by idle time of the client, in whole seconds of
    /// simulated time.
    idle_second: Option<u64>,
    /// After a crash: the next cluster to scan. Nothing is written until all clusters have been scanned.
    scan_at: Option<u32>,
}

impl Hummingbird {
    /// Creates an empty library on a partition.
    #[must_use]
    pub fn new(raw: Raw, config: HummingbirdConfig) -> Self {
        let disk = ClusterDisk::new(raw, config.cluster, config.logs.reserved);
        Self {
            clusters: ClusterTable::new(disk.count()),
            files: FileTable::new(),
            logs: Logs::new(disk.now()),
            counts: HummingbirdCounts::default(),
            tick: 0,
            calls: 0,
            daemon: 0,
            idle_second: None,
            scan_at: None,
            disk,
            config,
        }
    }

    /// Parameters of the library.
    #[must_use]
    pub const fn config(&self) -> &HummingbirdConfig {
        &self.config
    }

    /// Changes the lifetime of files while the library runs.
    pub const fn update_file_lifetime(&mut self, life: Option<SimTime>) {
        self.config.file_life = life;
    }

    /// Changes the lifetime of clusters while the library runs.
    pub const fn update_cluster_lifetime(&mut self, life: Option<SimTime>) {
        self.config.cluster_life = life;
    }

    /// Number of files that the library knows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.files.len()
    }

    /// True if the library knows no file.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that contents take.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.files.unpacked_bytes + self.clusters.in_memory() as u64 * self.config.cluster
    }

    /// Bytes of memory that the published table structures would take.
    #[must_use]
    pub fn metadata_bytes(&self) -> u64 {
        self.files.metadata_bytes() + self.clusters.metadata_bytes()
    }

    /// Number of free clusters.
    #[must_use]
    pub const fn free_clusters(&self) -> u32 {
        self.clusters.free.total()
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> &HummingbirdCounts {
        &self.counts
    }

    /// The simulated time that the library has reached.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.disk.now()
    }

    /// Lets the client sleep for `span`.
    pub fn advance(&mut self, span: SimTime) {
        self.disk.advance(span);
    }

    /// The costs on the drive so far (requests, bytes and times).
    #[must_use]
    pub fn device(&self) -> FsCounters {
        self.disk.counters()
    }

    fn next_tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }
}
