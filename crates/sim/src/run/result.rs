//! The results of a run.

use serde::{Deserialize, Serialize};

use super::{OpSums, Running};
use crate::{
    layout::LayoutStats,
    levels::{DiskOpKind, LevelCounts, ratio},
    model::{FsCounters, IoKind, Op, SimTime},
};

/// State of a run at one point of its course.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of operations done.
    pub ops: u64,
    /// Seconds since the start of the run.
    pub seconds: f64,
    /// Share of the space that is allocated.
    pub utilisation: f64,
    /// Mean size of a free piece, bytes.
    pub free_chunk: f64,
}

impl Sample {
    pub(crate) fn take(ops: u64, at: SimTime, stats: &LayoutStats) -> Self {
        Self {
            ops,
            seconds: at.as_secs(),
            utilisation: stats.utilisation(),
            free_chunk: stats.mean_free_chunk(),
        }
    }
}

/// The results of a run. Times are simulated, or real if the run used real files. MB are 10^6 bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Name of the layout.
    pub layout: String,
    /// Name of the drive.
    pub drive: String,
    /// Name of the file system.
    pub fs: String,
    /// Number of requests that led to the operations.
    pub gets: u64,
    /// Share of requests answered from memory.
    pub ram_hit_ratio: f64,
    /// Share of requests answered from disk.
    pub disk_hit_ratio: f64,
    /// Number of URL-reads.
    pub reads: u64,
    /// Number of URL-writes.
    pub writes: u64,
    /// Number of URL-deletes.
    pub deletes: u64,
    /// Completion time of all operations, seconds.
    pub seconds: f64,
    /// Disk operations per second.
    pub ops_per_s: f64,
    /// Requests per second.
    pub gets_per_s: f64,
    /// Bytes of objects read and written per second, MB.
    pub mb_per_s: f64,
    /// `mb_per_s` as a share of the bandwidth of one long sequential write on the same drive and file system.
    pub of_sequential: f64,
    /// Bandwidth of this sequential write, MB/s.
    pub sequential_mb_per_s: f64,
    /// Number of read requests to the drive.
    pub device_reads: u64,
    /// Number of write requests to the drive.
    pub device_writes: u64,
    /// Number of requests to the drive per disk operation.
    pub device_ios_per_op: f64,
    /// Share of the requests to the drive that concern metadata or the log instead of data.
    pub metadata_share: f64,
    /// Bytes to and from the drive per byte of objects.
    pub device_bytes_per_byte: f64,
    /// Processor time of this process per disk operation, microseconds (real files only).
    #[serde(default)]
    pub cpu_us_per_op: f64,
    /// Share of the time in which the drive was busy.
    pub busy: f64,
    /// Share of the busy time spent moving the arm.
    pub seeking: f64,
    /// Share of the busy time spent waiting for the platter.
    pub rotating: f64,
    /// Number of pages that were read because a write covered only a part of them.
    pub read_modify_writes: u64,
    /// Number of pairs of consecutive reads of the shared file.
    pub read_pairs: u64,
    /// Share of reads that begin at the block immediately after the previous read.
    pub read_next: f64,
    /// Share of reads that begin at most 10 blocks away from the previous read.
    pub read_within_10: f64,
    /// Number of reads by distance, in powers of two of blocks.
    pub read_distances: Vec<u64>,
    /// Share of the space that is allocated at the end; 0 if the layout does not manage its space.
    pub utilisation: f64,
    /// Mean size of a free piece at the end, bytes.
    pub free_chunk: f64,
    /// Size of the largest free piece at the end, bytes.
    pub free_largest: u64,
    /// Mean number of contiguous pieces per object at the end.
    pub pieces_per_object: f64,
    /// Number of writes refused because there was no space, plus the number of objects dropped for this
    /// reason when their locality buffer was written.
    pub refused: u64,
    /// Number of reads and deletes of objects that had been refused or dropped.
    pub missing: u64,
    /// States of the run at several points, in order of time.
    pub samples: Vec<Sample>,
}

impl RunResult {
    /// Computes the results of a run whose layout no longer buffers any writes.
    pub(super) fn new(running: &mut Running<'_>, counts: &LevelCounts, ops: OpSums) -> Self {
        let (config, layout) = (running.config, &running.layout);
        let (reads, read_bytes) = ops.of(DiskOpKind::Read);
        let (writes, write_bytes) = ops.of(DiskOpKind::Write);
        let bytes = read_bytes + write_bytes;
        let seconds = (layout.now() - running.start).as_secs();
        let per_s = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
        let mut result = Self {
            layout: config.layout.to_string(),
            drive: match &config.backend.dir {
                Some(_) => "real".to_owned(),
                None => config.backend.drive.clone(),
            },
            fs: match &config.backend.dir {
                Some(dir) => dir.display().to_string(),
                None => config.backend.fs.to_string(),
            },
            gets: counts.requests,
            ram_hit_ratio: ratio(counts.ram_hits, counts.requests),
            disk_hit_ratio: ratio(counts.disk_hits, counts.requests),
            reads,
            writes,
            deletes: ops.of(DiskOpKind::Delete).0,
            seconds,
            ops_per_s: per_s(ops.all() as f64),
            gets_per_s: per_s(counts.requests as f64),
            mb_per_s: per_s(bytes as f64 / 1e6),
            refused: running.course.refused,
            missing: running.course.missing,
            samples: std::mem::take(&mut running.course.samples),
            ..Self::default()
        };
        result.device(&running.before, &layout.counters(), ops.all(), bytes);
        result.space(&layout.stats());
        result
    }

    /// Sets `sequential_mb_per_s` from the bandwidth `sequential` (bytes per second). Sets `of_sequential`:
    /// the rate at which the run moved its `bytes` bytes of objects, as a share of that bandwidth.
    pub(super) fn against(&mut self, sequential: f64, bytes: u64) {
        if sequential > 0.0 && self.seconds > 0.0 {
            self.of_sequential = bytes as f64 / self.seconds / sequential;
        }
        self.sequential_mb_per_s = sequential / 1e6;
    }

    fn device(&mut self, before: &FsCounters, after: &FsCounters, ops: u64, bytes: u64) {
        let data = |c: &FsCounters| c.of(IoKind::Data, Op::Read) + c.of(IoKind::Data, Op::Write);
        let moved = |c: &FsCounters| c.drive.read_bytes + c.drive.written_bytes;
        self.device_reads = after.all(Op::Read) - before.all(Op::Read);
        self.device_writes = after.all(Op::Write) - before.all(Op::Write);
        let all = self.device_reads + self.device_writes;
        self.device_ios_per_op = ratio(all, ops);
        self.metadata_share = ratio(all - (data(after) - data(before)), all);
        self.device_bytes_per_byte = ratio(moved(after) - moved(before), bytes);
        self.read_modify_writes = after.read_modify_writes - before.read_modify_writes;
        let cpu = (after.cpu - before.cpu).as_secs();
        self.cpu_us_per_op = 1e6 * cpu / ops.max(1) as f64;
        let span = |f: fn(&FsCounters) -> SimTime| (f(after) - f(before)).as_secs();
        let busy = span(|c| c.drive.busy);
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        self.busy = share(busy, self.seconds);
        self.seeking = share(span(|c| c.drive.seeking), busy);
        self.rotating = share(span(|c| c.drive.rotating), busy);
    }

    fn space(&mut self, stats: &LayoutStats) {
        let distances = &stats.distances;
        self.read_pairs = distances.pairs;
        self.read_next = ratio(distances.next, distances.pairs);
        self.read_within_10 = ratio(distances.within_10, distances.pairs);
        self.read_distances.clone_from(&distances.histogram);
        self.utilisation = stats.utilisation();
        self.free_chunk = stats.mean_free_chunk();
        self.free_largest = stats.free_largest;
        self.pieces_per_object = ratio(stats.pieces, stats.objects);
        self.refused += stats.dropped;
    }
}
