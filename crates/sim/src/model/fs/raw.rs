//! A partition without file system, driven by one process that does its own caching.

use super::{FsCounters, FsError, IoKind};
use crate::model::{Drive, Op, Queue, Request, Schedule, SimTime};

/// A raw partition: every call is a device request, nothing is cached but by the drive.
#[derive(Clone, Debug)]
pub struct Raw {
    queue: Queue,
    now: SimTime,
    start: u64,
    bytes: u64,
    counters: FsCounters,
}

impl Raw {
    /// The whole drive.
    #[must_use]
    pub fn new(drive: Drive, schedule: Schedule) -> Self {
        let bytes = drive.capacity();
        Self::partition(drive, schedule, 0, bytes)
    }

    /// `bytes` of the drive from `start`, cut at the drive's end.
    #[must_use]
    pub fn partition(drive: Drive, schedule: Schedule, start: u64, bytes: u64) -> Self {
        let start = start.min(drive.capacity());
        let bytes = bytes.min(drive.capacity() - start);
        let queue = Queue::new(drive, schedule);
        Self {
            queue,
            now: SimTime::ZERO,
            start,
            bytes,
            counters: FsCounters::default(),
        }
    }

    /// Bytes of the partition.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The moment the process has reached.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// Lets the process compute or sleep; queued requests go on meanwhile.
    pub fn advance(&mut self, span: SimTime) {
        self.now += span;
    }

    /// Where the head is, as a byte of the partition (UCFS' current disk position); clamped
    /// to the partition.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.queue
            .drive()
            .head()
            .saturating_sub(self.start)
            .min(self.bytes)
    }

    /// Reads and waits; returns how long it took.
    ///
    /// # Errors
    /// [`FsError::OutOfRange`].
    pub fn read(&mut self, at: u64, len: u64) -> Result<SimTime, FsError> {
        let request = self.request(Op::Read, at, len)?;
        Ok(self.wait(request))
    }

    /// Writes and waits; returns how long it took.
    ///
    /// # Errors
    /// [`FsError::OutOfRange`].
    pub fn write(&mut self, at: u64, len: u64) -> Result<SimTime, FsError> {
        let request = self.request(Op::Write, at, len)?;
        Ok(self.wait(request))
    }

    /// Queues a write; the process goes on at once.
    ///
    /// # Errors
    /// [`FsError::OutOfRange`].
    pub fn write_behind(&mut self, at: u64, len: u64) -> Result<(), FsError> {
        let request = self.request(Op::Write, at, len)?;
        self.counters.add(IoKind::Data, Op::Write, len);
        self.queue.submit(self.now, request);
        Ok(())
    }

    /// Waits until at most `bytes` of queued writes have not been given to the drive; returns how
    /// long that took.
    pub fn wait_below(&mut self, bytes: u64) -> SimTime {
        let end = self.queue.wait_below(self.now, bytes);
        self.reach(end)
    }

    /// Reads several ranges, given to the drive together in the order of the schedule;
    /// returns how long it took until the last one was there.
    ///
    /// # Errors
    /// [`FsError::OutOfRange`]: none was read.
    pub fn read_batch(&mut self, ranges: &[(u64, u64)]) -> Result<SimTime, FsError> {
        let requests = ranges
            .iter()
            .map(|(at, len)| self.request(Op::Read, *at, *len))
            .collect::<Result<Vec<_>, _>>()?;
        for request in &requests {
            self.counters.add(IoKind::Data, Op::Read, request.len);
        }
        let end = self.queue.batch(self.now, &requests);
        Ok(self.reach(end))
    }

    /// Waits until queued writes and the drive's write cache are on the medium; returns how
    /// long that took.
    pub fn flush(&mut self) -> SimTime {
        let end = self.queue.drain(self.now);
        let end = self.queue.drive_mut().flush(end);
        self.reach(end)
    }

    /// What it cost so far.
    #[must_use]
    pub fn counters(&self) -> FsCounters {
        FsCounters {
            drive: self.queue.drive().stats().clone(),
            ..self.counters.clone()
        }
    }

    /// The drive, for its statistics.
    pub const fn drive_mut(&mut self) -> &mut Drive {
        self.queue.drive_mut()
    }

    fn request(&self, op: Op, at: u64, len: u64) -> Result<Request, FsError> {
        let end = at.checked_add(len).ok_or(FsError::OutOfRange)?;
        if end > self.bytes {
            return Err(FsError::OutOfRange);
        }
        Ok(Request {
            op,
            at: self.start + at,
            len,
        })
    }

    fn wait(&mut self, request: Request) -> SimTime {
        self.counters.add(IoKind::Data, request.op, request.len);
        self.counters.waited += 1;
        let end = self.queue.wait(self.now, request);
        self.reach(end)
    }

    fn reach(&mut self, end: SimTime) -> SimTime {
        let span = end - self.now;
        self.counters.waiting += span;
        self.now += span;
        span
    }
}
