//! The parameters of UCFS. In the available text of the paper, the digits of many values are missing. Each
//! such value is marked as lost below. The sweep of the reproduction varies some of these values (buffers,
//! clusters per write, one-timers).

use crate::model::SimTime;

/// Parameters of UCFS. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UcfsConfig {
    /// Memory for the three buffers. Tables take additional memory.
    pub memory: u64,
    /// Bytes of a cluster (lost; Hummingbird's best is 64 KB).
    pub cluster: u64,
    /// Share of memory for files that clients requested (lost).
    pub hot: f64,
    /// Share of memory for new and prefetched files (lost). The cold buffer has the rest.
    pub medium: f64,
    /// True if a full medium buffer moves its most recent file up to hot and its oldest file down to cold.
    /// (This rule is published. It moves new files to hot one at a time.)
    pub medium_up: bool,
    /// Maximum number of clusters that one request writes (lost).
    pub write_clusters: u32,
    /// Size of the swap-out pool (lost): the largest number of bytes of queued writes. If more bytes are
    /// queued, requests wait.
    pub pool: u64,
    /// The second level of grouping adds files to a cluster while more than this number of bytes are free
    /// (lost).
    pub fill_above: u64,
    /// The second level of grouping adds files up to this size (lost).
    pub fill_below: u64,
    /// Size of the largest file that is cached (lost; the usual value of Squid).
    pub largest: u64,
    /// A cluster that was not used for this long after it was written counts as a cluster of one-timers
    /// (lost: hours or days).
    pub one_timers: SimTime,
    /// Rule for a cluster if one of its files has to leave memory while other files of the cluster are hot or
    /// medium. True: the cluster keeps its place on disk, and the leaving file is dropped from memory. False:
    /// the disk copy is voided, and the files of the cluster are grouped again.
    pub keep_partial: bool,
    /// The second rule of the paper: the disk keeps clusters that were read (virtual clusters). Without this
    /// rule, the disk copy of a cluster is voided when the cluster is read.
    pub virtual_clusters: bool,
    /// True if files are grouped by site and by number of requests; otherwise clusters are filled in the
    /// order of eviction.
    pub grouping: bool,
    /// Bytes of a file's URL, size, times, count and cluster array.
    pub head_bytes: u64,
    /// Bytes of the superblock area before the clusters.
    pub reserved: u64,
    /// Processor time of an operation.
    pub call_cpu: SimTime,
}

impl UcfsConfig {
    /// A configuration with `memory` bytes. For the other parameters it uses the middle of the values that
    /// the text allows.
    #[must_use]
    pub const fn new(memory: u64) -> Self {
        Self {
            memory,
            cluster: 64 << 10,
            hot: 0.5,
            medium: 0.25,
            medium_up: true,
            write_clusters: 4,
            pool: 512 << 10,
            fill_above: 1 << 10,
            fill_below: 8 << 10,
            largest: 1 << 20,
            one_timers: SimTime::from_micros(24 * 3_600 * 1_000_000),
            keep_partial: false,
            virtual_clusters: true,
            grouping: true,
            head_bytes: 96,
            reserved: 64 << 20,
            call_cpu: SimTime::from_micros(20),
        }
    }
}
