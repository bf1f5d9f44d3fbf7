//! The counts of a cache system for a stream, as in the tables of the papers on Hummingbird and UCFS.

use foxy_trace::Request;
use serde::{Deserialize, Serialize};

use super::{CacheSystem, Extras};
use crate::{
    levels::{Outcome, ratio},
    model::{FsCounters, SimTime},
};

/// Histogram of durations, in powers of two. Entry 0 counts durations below 1/16 ms, such as those of hits in
/// memory. Entry k counts durations from 2^(k-5) ms to below 2^(k-4) ms. The last entry also counts all
/// longer durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram(pub [u64; 16]);

impl Histogram {
    fn add(&mut self, span: SimTime) {
        let sixteenths = (span.as_millis() * 16.0) as u64;
        let bucket = (u64::BITS - sixteenths.leading_zeros()) as usize;
        self.0[bucket.min(15)] += 1;
    }

    /// Upper limit of an entry, ms.
    #[must_use]
    pub fn upper_ms(entry: usize) -> f64 {
        (1u64 << entry.min(15)) as f64 / 16.0
    }

    /// The entries as shares of their sum.
    #[must_use]
    pub fn shares(&self) -> [f64; 16] {
        let all = self.0.iter().sum();
        self.0.map(|n| ratio(n, all))
    }
}

/// Sums over the requests of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SystemCounts {
    /// Number of cacheable requests (all requests except those with `Outcome::Bypass`).
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Number of requests answered from memory.
    pub ram_hits: u64,
    /// Number of requests answered from disk.
    pub disk_hits: u64,
    /// Bytes of the requests answered from memory or disk.
    pub hit_bytes: u64,
    /// Total time of all hits.
    pub reading: SimTime,
    /// Total time of all misses.
    pub writing: SimTime,
    /// Histogram of the times of hits.
    pub read_times: Histogram,
    /// Histogram of the times of misses.
    pub write_times: Histogram,
}

impl SystemCounts {
    pub(super) fn add(&mut self, request: &Request, outcome: Outcome, span: SimTime) {
        if outcome == Outcome::Bypass {
            return;
        }
        self.requests += 1;
        self.bytes += request.size;
        match outcome {
            Outcome::RamHit => self.ram_hits += 1,
            Outcome::DiskHit => self.disk_hits += 1,
            Outcome::Miss | Outcome::Modified | Outcome::Bypass => {
                self.writing += span;
                self.write_times.add(span);
                return;
            }
        }
        self.hit_bytes += request.size;
        self.reading += span;
        self.read_times.add(span);
    }
}

/// The results of a cache system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemResult {
    /// Name of the system.
    pub system: String,
    /// Number of requests.
    pub requests: u64,
    /// Share of requests answered from the cache (proxy hit rate).
    pub hit_ratio: f64,
    /// Share of bytes answered from the cache.
    pub byte_hit_ratio: f64,
    /// Share of the hits that were answered from memory.
    pub ram_share: f64,
    /// Mean time of a hit, ms. In Hummingbird this is the time of `read_file`.
    pub read_ms: f64,
    /// Mean time of a miss, ms. In Hummingbird this is the time of `write_file`.
    pub write_ms: f64,
    /// Total time of all hits, hours.
    pub read_hours: f64,
    /// Total time of all misses, hours.
    pub write_hours: f64,
    /// Number of read requests to the drive.
    pub device_reads: u64,
    /// Number of write requests to the drive.
    pub device_writes: u64,
    /// Number of requests to the drive per request of the stream.
    pub ios_per_request: f64,
    /// Mean time of a request to the drive, ms.
    pub io_ms: f64,
    /// Bytes to and from the drive per byte requested.
    pub device_bytes_per_byte: f64,
    /// Run time, seconds.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Share of the prefetched objects that were then requested.
    pub prefetch_hit_ratio: f64,
    /// Prefetched objects per disk hit.
    pub prefetched_per_read: f64,
    /// Bytes of memory that tables take, if the system reports them.
    pub table_bytes: u64,
    /// Number of misses that could not be stored.
    pub refused: u64,
    /// True if the system stopped before the end of the stream because there was no space.
    pub stopped: bool,
    /// Histogram of the times of hits.
    pub read_times: Histogram,
    /// Histogram of the times of misses.
    pub write_times: Histogram,
}

impl SystemResult {
    pub(super) fn new(
        system: &dyn CacheSystem,
        counts: &SystemCounts,
        begun: &(SimTime, FsCounters, Extras),
        stopped: bool,
    ) -> Self {
        let (start, before, had) = begun;
        let (after, have) = (system.counters(), system.extras());
        let hits = counts.ram_hits + counts.disk_hits;
        let reads = after.drive.reads - before.drive.reads;
        let writes = after.drive.writes - before.drive.writes;
        let moved = after.drive.read_bytes + after.drive.written_bytes
            - before.drive.read_bytes
            - before.drive.written_bytes;
        let seconds = (system.now() - *start).as_secs();
        let prefetched = have.prefetched - had.prefetched;
        Self {
            system: system.name().to_owned(),
            requests: counts.requests,
            hit_ratio: ratio(hits, counts.requests),
            byte_hit_ratio: ratio(counts.hit_bytes, counts.bytes),
            ram_share: ratio(counts.ram_hits, hits),
            read_ms: mean(counts.reading, hits),
            write_ms: mean(counts.writing, counts.requests - hits),
            read_hours: counts.reading.as_secs() / 3600.0,
            write_hours: counts.writing.as_secs() / 3600.0,
            device_reads: reads,
            device_writes: writes,
            ios_per_request: ratio(reads + writes, counts.requests),
            io_ms: mean(after.drive.busy - before.drive.busy, reads + writes),
            device_bytes_per_byte: ratio(moved, counts.bytes),
            seconds,
            requests_per_s: if seconds > 0.0 {
                counts.requests as f64 / seconds
            } else {
                0.0
            },
            prefetch_hit_ratio: ratio(have.prefetch_hits - had.prefetch_hits, prefetched),
            prefetched_per_read: ratio(prefetched, counts.disk_hits),
            table_bytes: have.table_bytes,
            refused: have.refused - had.refused,
            stopped,
            read_times: counts.read_times,
            write_times: counts.write_times,
        }
    }

    /// Number of requests to the drive.
    #[must_use]
    pub const fn device_ios(&self) -> u64 {
        self.device_reads + self.device_writes
    }

    /// Time of all requests, hours (total disk latency).
    #[must_use]
    pub fn hours(&self) -> f64 {
        self.read_hours + self.write_hours
    }
}

/// Mean time in ms; 0 if `n` is 0.
fn mean(time: SimTime, n: u64) -> f64 {
    if n == 0 {
        0.0
    } else {
        time.as_millis() / n as f64
    }
}
