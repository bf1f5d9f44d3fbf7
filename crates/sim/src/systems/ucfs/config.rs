//! The parameters of UCFS. The digits of the paper are lost: each value below says so, and is
//! an axis of a sweep.

use crate::model::SimTime;

/// Parameters. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UcfsConfig {
    /// Memory for the three buffers. Tables come on top.
    pub memory: u64,
    /// Bytes of a cluster (lost; Hummingbird's best is 64 KB).
    pub cluster: u64,
    /// Share of memory for files that were really asked for (lost).
    pub hot: f64,
    /// Share of memory for new and prefetched files (lost). The cold buffer has the rest.
    pub medium: f64,
    /// When medium is full, its most recent file goes up to hot, besides its oldest going down (as
    /// published; this moves new files to hot one at a time).
    pub medium_up: bool,
    /// Clusters written by one request at most (lost).
    pub write_clusters: u32,
    /// Bytes of writes that may wait before a request has to (the swap-out pool; lost).
    pub pool: u64,
    /// Free bytes of a cluster above which the second pass fills it (lost).
    pub fill_above: u64,
    /// Largest file that the second pass takes (lost).
    pub fill_below: u64,
    /// Largest file that is cached (lost; Squid's practice).
    pub largest: u64,
    /// A cluster that was not used for this long after it was written is one of one-timers (lost:
    /// hours or days).
    pub one_timers: SimTime,
    /// True: if some files of a cluster are hot or medium when another one has to leave, the cluster
    /// keeps its place on disk and the leaving file is dropped from memory. False: the disk copy is
    /// voided and its files are grouped again.
    pub keep_partial: bool,
    /// The second rule of the paper: the disk keeps what was read (virtual clusters). Without
    /// it reading a cluster blanks it.
    pub virtual_clusters: bool,
    /// Grouping by site and by count; without it clusters are filled in the order of eviction.
    pub grouping: bool,
    /// Bytes of URL, size, times, count and cluster array of a file.
    pub head_bytes: u64,
    /// Bytes before the clusters: the superblock area.
    pub reserved: u64,
    /// Processor time of an operation.
    pub call_cpu: SimTime,
}

impl UcfsConfig {
    /// A configuration with `memory` bytes, and the middle of what the text allows for the rest.
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
