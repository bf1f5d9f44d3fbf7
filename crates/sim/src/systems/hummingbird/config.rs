//! Hummingbird's parameters, and the errors of its calls.

use serde::Serialize;

use crate::model::{FsError, SimTime};

/// Rule for the place of a new cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The free cluster nearest to the last accessed position (published as the best).
    #[default]
    Closest,
    /// The free cluster nearest to the last written cluster.
    PreviousWrite,
    /// The next cluster in the order of cluster numbers. If it contains files, they are overwritten. So the
    /// clusters are written in sequence, like a log.
    Log,
}

/// Parameters of Hummingbird. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HummingbirdConfig {
    /// Memory for contents of files and clusters. Tables take additional memory, as in the model of Squid.
    pub memory: u64,
    /// Bytes of a cluster.
    pub cluster: u64,
    /// Packing stops when this share of the cluster is filled (75 % in the example of the 1999 draft).
    pub fill: f64,
    /// The daemon packs files while unpacked files take more than this share of memory.
    pub pack_at: f64,
    /// The daemon that frees memory stops when at most this share of memory is in use.
    pub free_to: f64,
    /// Rule for the place of new clusters.
    pub placement: Placement,
    /// A file that was not used for this long is deleted; `None`: no file is deleted for this reason.
    pub file_life: Option<SimTime>,
    /// A cluster is freed if none of its files was used for this long; `None`: no cluster is freed for this
    /// reason.
    pub cluster_life: Option<SimTime>,
    /// Bytes of a file's name and head in the file's cluster.
    pub head_bytes: u64,
    /// Number of calls of [`super::Hummingbird::tick`] after which one daemon runs (published: 1,000).
    pub daemon_every: u64,
    /// Processor time of a call.
    pub call_cpu: SimTime,
    /// Processor time to copy 4 KB into a cluster.
    pub copy_cpu: SimTime,
    /// Configuration of the logs.
    pub logs: LogConfig,
}

/// Configuration of the logs that survive a crash. `logs.rs` describes the logs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogConfig {
    /// Bytes of the reserved region before the clusters.
    pub reserved: u64,
    /// Interval at which file-to-cluster mappings are written; `None`: at shutdown only.
    pub mappings_every: Option<SimTime>,
    /// Number of clusters in the hot-cluster log; 0: no such log.
    pub hot: usize,
    /// Number of deletes after which the delete-intent log is flushed; `usize::MAX`: no such log.
    pub deletes: usize,
    /// A delete also flushes the delete-intent log if the last flush was longer ago than this.
    pub deletes_every: SimTime,
}

impl Default for LogConfig {
    /// The hot-cluster log has its published size of 2,500 clusters. For the other parameters no values were
    /// published.
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
    /// Parameters of most published runs: clusters of 64 KB, closest placement, a cluster lifetime of
    /// `minutes` minutes.
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
            // These processor times are for the same machine as those of `FsConfig::xfs`.
            call_cpu: SimTime::from_micros(10),
            copy_cpu: SimTime::from_micros(40),
            logs: LogConfig::default(),
        }
    }
}

/// Reasons why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HummingbirdError {
    /// No file of that name.
    NotFound,
    /// The file has readers.
    Busy,
    /// No cluster is free, but memory can be freed only by writing a cluster.
    NoCluster,
    /// The file is larger than a cluster. Only [`super::Hummingbird::write_nomem_file`] accepts it.
    TooLarge,
    /// The name already exists.
    Exists,
    /// The partition returned an error.
    Disk(FsError),
}

impl HummingbirdError {
    /// The code that the C interface returned; it is below 0.
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
