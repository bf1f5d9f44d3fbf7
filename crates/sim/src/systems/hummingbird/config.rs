//! Hummingbird's knobs, and what its calls refuse.

use serde::Serialize;

use crate::model::{FsError, SimTime};

/// Place of a new cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The free cluster nearest to the last accessed position (published as the best).
    #[default]
    Closest,
    /// The free cluster nearest to the cluster written last.
    PreviousWrite,
    /// The next cluster, whatever is in it: a log.
    Log,
}

/// Knobs. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HummingbirdConfig {
    /// Memory for contents of files and clusters. Tables come on top, as for Squid.
    pub memory: u64,
    /// Bytes of a cluster.
    pub cluster: u64,
    /// Share of a cluster at which packing stops (the draft's example: 75 %).
    pub fill: f64,
    /// Share of memory at which the daemon begins to pack files.
    pub pack_at: f64,
    /// Share of memory down to which the daemon frees it.
    pub free_to: f64,
    /// Placement of clusters.
    pub placement: Placement,
    /// A file not used for this long is deleted; `None`: files have no lifetime of their own.
    pub file_life: Option<SimTime>,
    /// A cluster is freed if none of its files was used for this long; `None`: never.
    pub cluster_life: Option<SimTime>,
    /// Bytes of a file's name and head in its cluster.
    pub head_bytes: u64,
    /// A daemon runs once in a fixed number of calls of [`super::Hummingbird::tick`] (published: 1,000).
    pub daemon_every: u64,
    /// Processor time of a call.
    pub call_cpu: SimTime,
    /// Processor time of copying 4 KB into a cluster.
    pub copy_cpu: SimTime,
    /// Logs.
    pub logs: LogConfig,
}

/// Logs that survive a crash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogConfig {
    /// Bytes of the region before the clusters.
    pub reserved: u64,
    /// Interval at which file-to-cluster mappings are written; `None`: at shutdown only.
    pub mappings_every: Option<SimTime>,
    /// Clusters in the hot-cluster log; 0: no such log.
    pub hot: usize,
    /// The delete-intent log is flushed after this many deletes ...
    pub deletes: usize,
    /// ... or this long after the last flush. With `usize::MAX` in `deletes` there is no such log.
    pub deletes_every: SimTime,
}

impl Default for LogConfig {
    /// The published sizes: 2,500 hot clusters; the rest is not given.
    fn default() -> Self {
        Self {
            reserved: 64 << 20,
            mappings_every: None,
            hot: 2_500,
            deletes: 100,
            deletes_every: SimTime::from_micros(10_000_000),
        }
    }
}

impl HummingbirdConfig {
    /// As in most published runs: clusters of 64 KB, closest placement, clusters live `minutes`.
    #[must_use]
    pub fn published(memory: u64, minutes: f64) -> Self {
        Self {
            memory,
            cluster: 64 << 10,
            fill: 0.75,
            pack_at: 0.95,
            free_to: 0.90,
            placement: Placement::Closest,
            file_life: None,
            cluster_life: Some(SimTime::from_secs(60.0 * minutes)),
            head_bytes: 64,
            daemon_every: 1_000,
            // The class figures of the machine in `FsConfig::xfs`.
            call_cpu: SimTime::from_micros(10),
            copy_cpu: SimTime::from_micros(40),
            logs: LogConfig::default(),
        }
    }
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HummingbirdError {
    /// No file of that name.
    NotFound,
    /// The file has readers.
    Busy,
    /// No cluster is free, and memory cannot be freed without one.
    NoCluster,
    /// Larger than a cluster; only [`super::Hummingbird::write_nomem_file`] takes it.
    TooLarge,
    /// The name is taken.
    Exists,
    /// The partition refused.
    Disk(FsError),
}

impl HummingbirdError {
    /// The code that the C interface returned: below 0.
    #[must_use]
    pub const fn code(self) -> i64 {
        match self {
            Self::NotFound => -1,
            Self::Busy => -2,
            Self::NoCluster => -3,
            Self::TooLarge => -4,
            Self::Exists => -5,
            Self::Disk(_) => -6,
        }
    }
}

impl From<FsError> for HummingbirdError {
    fn from(error: FsError) -> Self {
        Self::Disk(error)
    }
}

impl std::fmt::Display for HummingbirdError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::Busy => f.write_str("the file has readers"),
            Self::NoCluster => f.write_str("no free cluster; shorten the lifetimes"),
            Self::TooLarge => f.write_str("larger than a cluster"),
            Self::Exists => f.write_str("the name exists"),
            Self::Disk(error) => write!(f, "disk: {error}"),
        }
    }
}

impl std::error::Error for HummingbirdError {}
