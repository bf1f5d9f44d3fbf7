//! A flash drive: latency, parallel requests, a shared path, and copying before erasing.
//!
//! Write amplification is counted per erase block without a table of pages. If writes fill an erase block in
//! sequence from its start, all old data of the block becomes invalid. So nothing has to be copied before an
//! erase. All other writes leave erase blocks with valid and invalid data. On a full drive, each byte of such
//! a write causes `(1 + s) / 2s` bytes of flash writes, where `s` is the share of spare flash. This value is
//! the usual bound for uniform writes with a greedy cleaner (which always erases the block with the fewest
//! valid pages).

use super::{DriveStats, FlashParams, Op, Request};
use crate::model::SimTime;

/// A flash drive.
#[derive(Clone, Debug)]
pub(super) struct Flash {
    params: FlashParams,
    /// Time at which each of the parallel units is free.
    units: Vec<SimTime>,
    /// Time at which the shared path is free.
    path: SimTime,
    /// For each erase block, the offset at which a sequential writer continues.
    front: Vec<u32>,
    written: u64,
    at: u64,
}

impl Flash {
    pub(super) fn new(params: FlashParams) -> Self {
        let params = params.clamped();
        let blocks = params.bytes.div_ceil(params.erase_block) as usize;
        Self {
            units: vec![SimTime::ZERO; params.parallel],
            path: SimTime::ZERO,
            front: vec![0; blocks],
            written: 0,
            at: 0,
            params,
        }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.params.bytes
    }

    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn ready_at(&self) -> SimTime {
        self.units.iter().copied().min().unwrap_or_default()
    }

    /// Number of flash bytes that are written for one byte of a random write on a full drive. The number
    /// includes the byte itself.
    pub(super) fn random_amplification(&self) -> f64 {
        let spare = self.params.spare.max(0.01);
        ((1.0 + spare) / (2.0 * spare)).max(1.0)
    }

    pub(super) fn serve(
        &mut self,
        now: SimTime,
        request: Request,
        stats: &mut DriveStats,
    ) -> (SimTime, SimTime) {
        let unit = (0..self.units.len())
            .min_by_key(|i| self.units[*i])
            .unwrap_or(0);
        let start = now.max(self.units[unit]);
        let page = self.params.page;
        let bytes = request.end().div_ceil(page) * page - request.at / page * page;
        let (latency, rate, bytes) = match request.op {
            Op::Read => (self.params.read_us, self.params.read_mb, bytes),
            Op::Write => (
                self.params.write_us,
                self.params.write_mb,
                self.program(request, bytes),
            ),
        };
        if request.op == Op::Write {
            stats.flash_bytes += bytes;
        }
        // All requests share one path: their transfers wait for each other, but their latencies overlap.
        let ready = start + SimTime::from_micros(latency);
        let begin = self.path.max(start);
        self.path = begin + SimTime::from_nanos(bytes * 1_000 / rate);
        let end = ready.max(self.path);
        self.units[unit] = end;
        self.at = request.end();
        (start, end)
    }

    /// Number of flash bytes that are written because of a write of `bytes` bytes (whole pages).
    fn program(&mut self, request: Request, bytes: u64) -> u64 {
        let full = self.written >= self.params.bytes;
        self.written = self.written.saturating_add(bytes);
        let block = (request.at / self.params.erase_block) as usize;
        let offset = (request.at % self.params.erase_block) as u32;
        let Some(front) = self.front.get_mut(block) else {
            return bytes;
        };
        let sequential = offset == 0 || *front == offset;
        if sequential {
            *front = offset.saturating_add(bytes as u32);
            if u64::from(*front) >= self.params.erase_block
                && let Some(next) = self.front.get_mut(block + 1)
            {
                *next = 0;
            }
        }
        if sequential || !full {
            bytes
        } else {
            (bytes as f64 * self.random_amplification()) as u64
        }
    }

    /// Makes the drive behave like a drive that was completely written once.
    pub(super) const fn age(&mut self) {
        self.written = self.params.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::drive::drives::{Params, params};

    fn drive() -> (Flash, DriveStats) {
        let Some(Params::Flash(params)) = params("nvme") else {
            panic!("table")
        };
        (Flash::new(params), DriveStats::default())
    }

    #[test]
    fn latency_parallelism_and_bandwidth() {
        let (mut flash, mut stats) = drive();
        let (_, end) = flash.serve(SimTime::ZERO, Request::read(1 << 30, 4_096), &mut stats);
        assert_eq!(end, SimTime::from_micros(80));
        // The latencies of 64 reads overlap, so the drive does about 800,000 reads a second.
        let (mut flash, mut stats) = drive();
        let last = (0..100_000u64)
            .map(|i| {
                flash
                    .serve(
                        SimTime::ZERO,
                        Request::read((i * 7_919) << 12, 4_096),
                        &mut stats,
                    )
                    .1
            })
            .max()
            .unwrap();
        let rate = 100_000.0 / last.as_secs();
        assert!((760_000.0..840_000.0).contains(&rate), "{rate}");
        // The rate of the shared path limits large reads.
        let (mut flash, mut stats) = drive();
        let last = (0..1_000u64)
            .map(|i| {
                flash
                    .serve(SimTime::ZERO, Request::read(i << 20, 1 << 20), &mut stats)
                    .1
            })
            .max()
            .unwrap();
        let rate = 1_000.0 * 1.048_576 / last.as_secs();
        assert!((6_200.0..6_600.0).contains(&rate), "{rate}");
    }

    #[test]
    fn only_random_writes_to_a_full_drive_are_amplified() {
        let (mut flash, mut stats) = drive();
        flash.age();
        for i in 0..64u64 {
            flash.serve(SimTime::ZERO, Request::write(i << 20, 1 << 20), &mut stats);
        }
        assert_eq!(stats.flash_bytes, 64 << 20);
        for i in 0..64u64 {
            flash.serve(
                SimTime::ZERO,
                Request::write((i * 4_099 + 1) << 12, 4_096),
                &mut stats,
            );
        }
        let random = (stats.flash_bytes - (64 << 20)) as f64 / f64::from(64 << 12);
        assert!((7.0..8.0).contains(&random), "{random}");
        let (mut flash, mut stats) = drive();
        flash.serve(SimTime::ZERO, Request::write(12_288, 4_096), &mut stats);
        assert_eq!(stats.flash_bytes, 4_096);
    }
}
