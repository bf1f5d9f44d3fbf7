//! A mechanical disk: arm, platter, buffer with read-ahead, and an optional write cache.
//!
//! The platter's angle depends only on the time, so the same requests at the same times always have the same
//! cost. The times of sectors, skews and seeks are whole nanoseconds.

use super::{
    DriveStats, Op, Request, SECTOR,
    buffer::{Ahead, Buffer},
    geometry::{Geometry, Track, fraction},
    params::DiskParams,
    seek::SeekCurve,
};
use crate::model::SimTime;

/// Tolerance of a computed wait for a sector, in ns. If a computed wait differs from a full revolution by
/// less than this tolerance, the difference is a rounding error, and the sector is under the head now.
const ROUNDING: u64 = 2_000;

/// A mechanical disk.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    params: DiskParams,
    map: Geometry,
    read_seek: SeekCurve,
    write_seek: SeekCurve,
    /// Time to decode a command. `head_switch` is the time of a switch between heads.
    overhead: SimTime,
    head_switch: SimTime,
    /// Nanoseconds of one revolution.
    revolution: u64,
    cylinder: u32,
    head: u32,
    /// Position of the head: the sector after the last transferred sector.
    at: u64,
    /// Time at which the mechanism is free (later than `ready_at` while cached writes are written).
    idle_at: SimTime,
    /// Time at which the next command may begin.
    ready_at: SimTime,
    buffer: Buffer,
    /// Cached writes that are not on the platter: first sector and count.
    dirty: Vec<(u64, u64)>,
    dirty_sectors: u64,
}

impl Disk {
    pub(super) fn new(params: DiskParams) -> Self {
        let params = params.clamped();
        let revolution = (60e9 / params.rpm).round() as u64;
        let share = |millis: f64| (millis * 1e6 / revolution as f64).fract();
        let track_skew = share(params.head_switch + params.skew_margin);
        let cylinder_skew =
            share(params.write_seek.single.max(params.head_switch) + params.skew_margin);
        let map = Geometry::new(&params.zones, params.heads, track_skew, cylinder_skew);
        let buffer = Buffer::new(params.segments, params.segment_bytes / SECTOR);
        Self {
            read_seek: SeekCurve::fit(params.read_seek, map.cylinders()),
            write_seek: SeekCurve::fit(params.write_seek, map.cylinders()),
            overhead: SimTime::from_millis(params.overhead),
            head_switch: SimTime::from_millis(params.head_switch),
            params,
            map,
            revolution,
            cylinder: 0,
            head: 0,
            at: 0,
            idle_at: SimTime::ZERO,
            ready_at: SimTime::ZERO,
            buffer,
            dirty: Vec::new(),
            dirty_sectors: 0,
        }
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.map.bytes()
    }

    pub(super) const fn ready_at(&self) -> SimTime {
        self.ready_at
    }

    pub(super) const fn at(&self) -> u64 {
        self.at * SECTOR
    }

    pub(super) const fn revolution(&self) -> SimTime {
        SimTime::from_nanos(self.revolution)
    }

    pub(super) const fn cylinders(&self) -> u32 {
        self.map.cylinders()
    }

    /// First byte of a cylinder.
    #[cfg(test)]
    pub(super) fn cylinder_start(&self, cylinder: u32) -> u64 {
        let (mut low, mut high) = (0, self.bytes() / SECTOR);
        while low < high {
            let middle = low.midpoint(high);
            if self.map.track(middle).cylinder < cylinder {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low * SECTOR
    }

    /// Serves a request that arrived at `now`; returns its start and end.
    pub(super) fn serve(
        &mut self,
        now: SimTime,
        request: Request,
        stats: &mut DriveStats,
    ) -> (SimTime, SimTime) {
        let start = now.max(self.ready_at);
        let first = request.at / SECTOR;
        let count = request.end().div_ceil(SECTOR) - first;
        self.destage_until(start, stats);
        // If commands are queued in the drive, it decodes a command while it serves the previous command.
        let begin = if self.params.queued {
            start.max(now + self.overhead)
        } else {
            start + self.overhead
        };
        let end = match request.op {
            Op::Read => self.read(begin, first, count, stats),
            Op::Write => self.write(begin, (first, count), request.through, stats),
        };
        self.ready_at = end;
        (start, end)
    }

    /// Writes all cached writes to the platter. Returns the time at which the last write is on the platter.
    pub(super) fn flush(&mut self, now: SimTime, stats: &mut DriveStats) -> SimTime {
        let now = now.max(self.ready_at);
        while !self.dirty.is_empty() {
            self.destage(now, stats);
        }
        now.max(self.idle_at)
    }

    fn bus(&self, sectors: u64) -> SimTime {
        SimTime::from_nanos(sectors * SECTOR * 1_000 / self.params.bus_mb)
    }

    fn read(&mut self, begin: SimTime, first: u64, count: u64, stats: &mut DriveStats) -> SimTime {
        let reached = self.reached(begin);
        let whole = self.buffer.covers(first, count, reached) || self.dirty_covers(first, count);
        let sent = begin + self.bus(count);
        if whole {
            stats.buffer_hits += 1;
            if let Some(ahead) = &mut self.buffer.ahead
                && first >= ahead.start
                && first + count <= reached
            {
                ahead.limit = ahead
                    .limit
                    .max(first + count + self.params.read_ahead / SECTOR);
            }
            return sent;
        }
        let media = match self.buffer.ahead {
            // The head is already reading towards this request, so there is no seek and no lost revolution.
            Some(ahead)
                if first >= ahead.start
                    && first <= reached
                    // If this is false, the head has passed all requested sectors, and the buffer no longer
                    // has all of them.
                    && first + count > ahead.next
                    && reached < ahead.limit
                    && self.idle_at <= begin =>
            {
                let track = self.map.track(ahead.next);
                let sectors = first + count - ahead.next;
                self.transfer(ahead.next, sectors, track, ahead.since, stats)
            }
            _ => {
                self.stop_ahead(begin);
                self.access(begin, Op::Read, first, count, stats)
            }
        };
        self.buffer
            .remember(first, first + count, media, self.params.read_ahead / SECTOR);
        self.idle_at = media;
        media.max(sent)
    }

    fn write(
        &mut self,
        begin: SimTime,
        (first, count): (u64, u64),
        through: bool,
        stats: &mut DriveStats,
    ) -> SimTime {
        self.stop_ahead(begin);
        self.buffer.forget(first, first + count);
        let sent = begin + self.bus(count);
        let room = self.params.write_cache / SECTOR;
        if through {
            // An older cached write of the same sectors must not reach the platter after this write.
            while self.dirty_overlaps(first, count) {
                self.destage(begin, stats);
            }
            self.idle_at = self.access(begin, Op::Write, first, count, stats);
            return self.idle_at.max(sent);
        }
        if count > room {
            while !self.dirty.is_empty() {
                self.destage(begin, stats);
            }
            self.idle_at = self.access(begin, Op::Write, first, count, stats);
            return self.idle_at.max(sent);
        }
        let mut wait = begin;
        while self.dirty_sectors + count > room {
            self.destage(begin, stats);
            wait = self.idle_at;
        }
        self.dirty.push((first, count));
        self.dirty_sectors += count;
        wait.max(begin) + self.bus(count)
    }

    fn dirty_covers(&self, first: u64, count: u64) -> bool {
        self.dirty
            .iter()
            .any(|(at, len)| *at <= first && first + count <= at + len)
    }

    fn dirty_overlaps(&self, first: u64, count: u64) -> bool {
        self.dirty
            .iter()
            .any(|(at, len)| *at < first + count && first < at + len)
    }

    fn destage_until(&mut self, now: SimTime, stats: &mut DriveStats) {
        while !self.dirty.is_empty() && self.idle_at < now {
            self.destage(self.ready_at, stats);
        }
    }

    /// Writes to the platter the cached write that is nearest to the head. Also writes the cached writes
    /// whose sectors follow without a gap.
    fn destage(&mut self, earliest: SimTime, stats: &mut DriveStats) {
        let at = self.at;
        let nearest = (0..self.dirty.len()).min_by_key(|i| self.dirty[*i].0.abs_diff(at));
        let Some(index) = nearest else { return };
        let (first, mut count) = self.dirty.swap_remove(index);
        self.dirty_sectors -= count;
        while let Some(next) = self.dirty.iter().position(|(at, _)| *at == first + count) {
            let (_, more) = self.dirty.swap_remove(next);
            self.dirty_sectors -= more;
            count += more;
        }
        let start = self.idle_at.max(earliest);
        self.stop_ahead(start);
        self.idle_at = self.access(start, Op::Write, first, count, stats);
    }

    /// The sector that read-ahead has reached at `now`.
    fn reached(&self, now: SimTime) -> u64 {
        let Some(ahead) = self.buffer.ahead else {
            return 0;
        };
        let (mut sector, mut time) = (ahead.next, ahead.since);
        while sector < ahead.limit && time < now {
            let track = self.map.track(sector);
            let sectors = (track.first + track.sectors).min(ahead.limit) - sector;
            let each = self.revolution / track.sectors;
            let fit = ((now - time).as_nanos() / each.max(1)).min(sectors);
            sector += fit;
            if fit < sectors {
                return sector;
            }
            time = time
                + SimTime::from_nanos(sectors * each)
                + self.switch(&track, &self.map.next(&track));
        }
        sector
    }

    /// Ends read-ahead at the sector that it has reached. This is called for everything that does not
    /// continue the sequential reads: other reads, writes, and the destaging of cached writes.
    fn stop_ahead(&mut self, now: SimTime) {
        let reached = self.reached(now);
        if let Some(Ahead { start, .. }) = self.buffer.ahead.take() {
            self.buffer.keep(start, reached);
            if reached > 0 {
                let track = self.map.track(reached - 1);
                (self.cylinder, self.head, self.at) = (track.cylinder, track.head, reached);
            }
        }
    }

    /// Moves the arm to sector `first`, waits until this sector is under the head, and transfers `count`
    /// sectors. Returns the time at which the transfer ends.
    fn access(
        &mut self,
        begin: SimTime,
        op: Op,
        first: u64,
        count: u64,
        stats: &mut DriveStats,
    ) -> SimTime {
        let begin = begin.max(self.idle_at);
        let track = self.map.track(first);
        let distance = track.cylinder.abs_diff(self.cylinder);
        let curve = if op == Op::Read {
            &self.read_seek
        } else {
            &self.write_seek
        };
        let mut move_time = curve.time(distance);
        if track.head != self.head {
            move_time = move_time.max(self.head_switch);
        }
        if distance > 0 {
            stats.seeks += 1;
            stats.cylinders += u64::from(distance);
        }
        stats.seeking += move_time;
        let settled = begin + move_time;
        let wait = self.wait(settled, &track, first);
        stats.rotating += wait;
        self.transfer(first, count, track, settled + wait, stats)
    }

    /// Time from `now` until `sector` of `track` passes under the head.
    fn wait(&self, now: SimTime, track: &Track, sector: u64) -> SimTime {
        let angle = track.angle + (sector - track.first) as f64 / track.sectors as f64;
        let target = (fraction(angle) * self.revolution as f64) as u64;
        let wait = (target + self.revolution - now.as_nanos() % self.revolution) % self.revolution;
        SimTime::from_nanos(if wait + ROUNDING > self.revolution {
            0
        } else {
            wait
        })
    }

    /// Time from the end of `track` to the start of `next`. It follows from the skew between the two tracks.
    fn switch(&self, track: &Track, next: &Track) -> SimTime {
        let skew = fraction(next.angle - track.angle + 1.0);
        SimTime::from_nanos((skew * self.revolution as f64) as u64)
    }

    /// Transfers `count` sectors from `first`, which is on `track` and under the head at `start`.
    fn transfer(
        &mut self,
        first: u64,
        count: u64,
        mut track: Track,
        start: SimTime,
        stats: &mut DriveStats,
    ) -> SimTime {
        let (mut time, mut sector, end) = (start, first, first + count);
        loop {
            let sectors = (track.first + track.sectors).min(end) - sector;
            time += SimTime::from_nanos(sectors * self.revolution / track.sectors);
            sector += sectors;
            if sector >= end {
                break;
            }
            let next = self.map.next(&track);
            let gap = self.switch(&track, &next);
            stats.rotating += gap;
            time += gap;
            track = next;
        }
        (self.cylinder, self.head, self.at) = (track.cylinder, track.head, end);
        time
    }
}
