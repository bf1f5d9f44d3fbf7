//! The counts of a drive.

use crate::model::{Op, SimTime};

/// One request in a head trace. A head trace is a list of requests, which shows the movements of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Time at which the drive began the request.
    pub start: SimTime,
    /// Time at which the request was done.
    pub end: SimTime,
    /// Direction of the transfer.
    pub op: Op,
    /// Address of the first byte on the drive.
    pub at: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Sums over the requests of a drive.
#[derive(Clone, Debug)]
pub struct DriveStats {
    /// Number of read requests.
    pub reads: u64,
    /// Number of write requests.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written by the host.
    pub written_bytes: u64,
    /// Bytes written to flash, including the device's own copying (flash only).
    pub flash_bytes: u64,
    /// Number of reads answered from the drive's own buffer without waiting for the platter.
    pub buffer_hits: u64,
    /// Time from the start of a request to its end, summed.
    pub busy: SimTime,
    /// Part of `busy` spent moving the arm (disks only).
    pub seeking: SimTime,
    /// Part of `busy` spent waiting for the platter (disks only).
    pub rotating: SimTime,
    /// Number of requests that moved the arm.
    pub seeks: u64,
    /// Cylinders crossed, summed.
    pub cylinders: u64,
    /// Requests by distance from the end of the previous request, in either direction. Entry 0 counts
    /// contiguous requests; entry k counts distances of 2^(k-1)..2^k sectors.
    pub distance: [u64; 48],
    /// The first `trace_limit` requests after [`DriveStats::record`].
    pub trace: Vec<TraceEntry>,
    /// Maximum number of requests in `trace`; 0: none are recorded.
    pub trace_limit: usize,
}

impl Default for DriveStats {
    fn default() -> Self {
        Self {
            reads: 0,
            writes: 0,
            read_bytes: 0,
            written_bytes: 0,
            flash_bytes: 0,
            buffer_hits: 0,
            busy: SimTime::ZERO,
            seeking: SimTime::ZERO,
            rotating: SimTime::ZERO,
            seeks: 0,
            cylinders: 0,
            distance: [0; 48],
            trace: Vec::new(),
            trace_limit: 0,
        }
    }
}

impl DriveStats {
    /// Starts a head trace of the next `limit` requests.
    pub fn record(&mut self, limit: usize) {
        self.trace.clear();
        self.trace_limit = limit;
    }

    /// Number of reads and writes.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    pub(super) fn count(&mut self, entry: TraceEntry, previous_end: u64) {
        match entry.op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += entry.len;
            }
            Op::Write => {
                self.writes += 1;
                self.written_bytes += entry.len;
            }
        }
        self.busy += entry.end - entry.start;
        let sectors = entry.at.abs_diff(previous_end) / super::SECTOR;
        let bucket = (u64::BITS - sectors.leading_zeros()) as usize;
        if let Some(count) = self.distance.get_mut(bucket) {
            *count += 1;
        }
        if self.trace.len() < self.trace_limit {
            self.trace.push(entry);
        }
    }
}
