//! What a cache system did with a stream, in the columns of the Hummingbird tables.

use foxy_trace::Request;
use serde::Serialize;

use crate::{
    levels::{Outcome, ratio},
    model::{FsCounters, SimTime},
};

/// Sums over the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SystemCounts {
    /// Requests that a cache may answer.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Answered from memory.
    pub ram_hits: u64,
    /// Answered from disk.
    pub disk_hits: u64,
    /// Bytes answered.
    pub hit_bytes: u64,
    /// Time of all hits.
    pub reading: SimTime,
    /// Time of all misses.
    pub writing: SimTime,
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
                return;
            }
        }
        self.hit_bytes += request.size;
        self.reading += span;
    }
}

/// The figures of a system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemResult {
    /// The system.
    pub system: &'static str,
    /// Requests.
    pub requests: u64,
    /// Share of requests answered (proxy hit rate).
    pub hit_ratio: f64,
    /// Share of bytes answered.
    pub byte_hit_ratio: f64,
    /// Share of the hits that memory answered.
    pub ram_share: f64,
    /// Mean time of a hit, ms (`read_file`).
    pub read_ms: f64,
    /// Mean time of a miss, ms (`write_file`).
    pub write_ms: f64,
    /// Requests to the drive.
    pub device_ios: u64,
    /// Requests to the drive per request.
    pub ios_per_request: f64,
    /// Mean time of a request to the drive, ms.
    pub io_ms: f64,
    /// Run time, seconds.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_s: f64,
}

impl SystemResult {
    pub(super) fn new(
        system: &'static str,
        counts: SystemCounts,
        span: SimTime,
        before: &FsCounters,
        after: &FsCounters,
    ) -> Self {
        let hits = counts.ram_hits + counts.disk_hits;
        let device_ios = after.drive.requests() - before.drive.requests();
        let mean = |time: SimTime, n: u64| {
            if n == 0 {
                0.0
            } else {
                time.as_millis() / n as f64
            }
        };
        let seconds = span.as_secs();
        Self {
            system,
            requests: counts.requests,
            hit_ratio: ratio(hits, counts.requests),
            byte_hit_ratio: ratio(counts.hit_bytes, counts.bytes),
            ram_share: ratio(counts.ram_hits, hits),
            read_ms: mean(counts.reading, hits),
            write_ms: mean(counts.writing, counts.requests - hits),
            device_ios,
            ios_per_request: ratio(device_ios, counts.requests),
            io_ms: mean(after.drive.busy - before.drive.busy, device_ios),
            seconds,
            requests_per_s: if seconds > 0.0 {
                counts.requests as f64 / seconds
            } else {
                0.0
            },
        }
    }
}
