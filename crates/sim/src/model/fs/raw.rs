//! A partition without a file system. One process uses it and does its own caching.

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{FsCounters, FsError, IoKind};
use crate::model::{Drive, DriveStats, Op, Queue, Request, Schedule, SimTime};

/// A device that is not modelled: its requests take real time.
pub trait Device: Debug + Send {
    /// Sends requests (first byte, length) together and waits for them. Returns the time that they took.
    fn wait(&mut self, op: Op, ranges: &[(u64, u64)]) -> SimTime;
    /// Starts a write and does not wait for it.
    fn begin(&mut self, at: u64, len: u64);
    /// Waits until at most `bytes` bytes of started writes are under way. Returns the time that this took.
    fn wait_below(&mut self, bytes: u64) -> SimTime;
    /// Waits until everything is on the medium. Returns the time that this took.
    fn flush(&mut self) -> SimTime;
    /// Byte address of the end of the last request.
    fn head(&self) -> u64;
    /// The counts so far.
    fn stats(&self) -> &DriveStats;
    /// True if a request to the device failed; later results are not meaningful.
    fn has_failed(&self) -> bool;
}

/// A raw partition: every call is a device request, and only the drive has a cache. The clone of a modelled
/// partition is independent; the clone of a real partition uses the same device.
#[derive(Clone, Debug)]
pub struct Raw {
    device: BackingDevice,
    now: SimTime,
    bytes: u64,
    counters: FsCounters,
}

#[derive(Clone, Debug)]
enum BackingDevice {
    /// The part of a modelled drive that begins at `start`.
    Model { queue: Box<Queue>, start: u64 },
    /// A device that is not modelled.
    Real(Arc<Mutex<dyn Device>>),
}

impl Raw {
    /// Creates a partition over the whole drive.
    #[must_use]
    pub fn new(drive: Drive, schedule: Schedule) -> Self {
        let bytes = drive.capacity();
        Self::partition(drive, schedule, 0, bytes)
    }

    /// Creates a partition of `bytes` bytes from `start` on, cut at the end of the drive.
    #[must_use]
    pub fn partition(drive: Drive, schedule: Schedule, start: u64, bytes: u64) -> Self {
        let start = start.min(drive.capacity());
        let bytes = bytes.min(drive.capacity() - start);
        let queue = Box::new(Queue::new(drive, schedule));
        Self::over(BackingDevice::Model { queue, start }, bytes)
    }

    /// Creates a partition of `bytes` bytes on a device. The simulated clock advances by the durations of the
    /// device's requests, and by the spans that are passed to [`Raw::advance`].
    #[must_use]
    pub fn on(device: impl Device + 'static, bytes: u64) -> Self {
        Self::over(BackingDevice::Real(Arc::new(Mutex::new(device))), bytes)
    }

    fn over(device: BackingDevice, bytes: u64) -> Self {
        Self {
            device,
            now: SimTime::ZERO,
            bytes,
            counters: FsCounters::default(),
        }
    }

    /// Size of the partition in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The present time of the simulated process. The drive may still have queued requests.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// Lets the process compute or sleep; queued requests continue meanwhile.
    pub fn advance(&mut self, span: SimTime) {
        self.now += span;
    }

    /// Position of the head as a byte address in the partition (UCFS' current disk position). If the head is
    /// outside the partition, this is the nearest address in the partition.
    #[must_use]
    pub fn head(&self) -> u64 {
        let head = match &self.device {
            BackingDevice::Model { queue, start } => queue.drive().head().saturating_sub(*start),
            BackingDevice::Real(partition) => partition.lock().head(),
        };
        head.min(self.bytes)
    }

    /// Reads a range and waits. Returns the time that this took.
    ///
    /// # Errors
    /// Returns [`FsError::OutOfRange`], or [`FsError::Io`] if a real device failed.
    pub fn read(&mut self, at: u64, len: u64) -> Result<SimTime, FsError> {
        self.wait(Op::Read, at, len)
    }

    /// Writes a range and waits. Returns the time that this took.
    ///
    /// # Errors
    /// The same errors as [`Raw::read`].
    pub fn write(&mut self, at: u64, len: u64) -> Result<SimTime, FsError> {
        self.wait(Op::Write, at, len)
    }

    /// Queues a write. The process does not wait for it.
    ///
    /// # Errors
    /// The same errors as [`Raw::read`].
    pub fn write_behind(&mut self, at: u64, len: u64) -> Result<(), FsError> {
        self.check(at, len)?;
        self.counters.add(IoKind::Data, Op::Write, len);
        match &mut self.device {
            BackingDevice::Model { queue, start } => {
                let at = *start + at;
                queue.submit(self.now, Request::write(at, len));
            }
            BackingDevice::Real(partition) => partition.lock().begin(at, len),
        }
        Ok(())
    }

    /// Waits until at most `bytes` bytes of writes are still queued. Returns the time that this took.
    pub fn wait_below(&mut self, bytes: u64) -> SimTime {
        let span = match &mut self.device {
            BackingDevice::Model { queue, .. } => queue.wait_below(self.now, bytes) - self.now,
            BackingDevice::Real(partition) => partition.lock().wait_below(bytes),
        };
        self.pass(span)
    }

    /// Reads several ranges, which are sent to the drive together in the order of the schedule. Returns the
    /// time until the last range was read.
    ///
    /// # Errors
    /// The same errors as [`Raw::read`]. If a range is outside the partition, no range was read.
    pub fn read_batch(&mut self, ranges: &[(u64, u64)]) -> Result<SimTime, FsError> {
        for (at, len) in ranges {
            self.check(*at, *len)?;
        }
        for (_, len) in ranges {
            self.counters.add(IoKind::Data, Op::Read, *len);
        }
        let span = match &mut self.device {
            BackingDevice::Model { queue, start } => {
                let request = |(at, len): &(u64, u64)| Request::read(*start + *at, *len);
                let requests: Vec<_> = ranges.iter().map(request).collect();
                queue.batch(self.now, &requests) - self.now
            }
            BackingDevice::Real(partition) => partition.lock().wait(Op::Read, ranges),
        };
        self.check_device()?;
        Ok(self.pass(span))
    }

    /// Waits until queued writes and the drive's write cache are on the medium. Returns the time
    /// that this took.
    pub fn flush(&mut self) -> SimTime {
        let span = match &mut self.device {
            BackingDevice::Model { queue, .. } => {
                let end = queue.drain(self.now);
                queue.drive_mut().flush(end) - self.now
            }
            BackingDevice::Real(partition) => partition.lock().flush(),
        };
        self.pass(span)
    }

    /// The costs on the drive so far (requests, bytes and times).
    #[must_use]
    pub fn counters(&self) -> FsCounters {
        let drive = match &self.device {
            BackingDevice::Model { queue, .. } => queue.drive().stats().clone(),
            BackingDevice::Real(partition) => partition.lock().stats().clone(),
        };
        FsCounters {
            drive,
            ..self.counters.clone()
        }
    }

    fn check(&self, at: u64, len: u64) -> Result<(), FsError> {
        match at.checked_add(len) {
            Some(end) if end <= self.bytes => self.check_device(),
            _ => Err(FsError::OutOfRange),
        }
    }

    fn check_device(&self) -> Result<(), FsError> {
        match &self.device {
            BackingDevice::Real(partition) if partition.lock().has_failed() => Err(FsError::Io),
            BackingDevice::Real(_) | BackingDevice::Model { .. } => Ok(()),
        }
    }

    fn wait(&mut self, op: Op, at: u64, len: u64) -> Result<SimTime, FsError> {
        self.check(at, len)?;
        self.counters.add(IoKind::Data, op, len);
        self.counters.waited += 1;
        let span = match &mut self.device {
            BackingDevice::Model { queue, start } => {
                let at = *start + at;
                let request = match op {
                    Op::Read => Request::read(at, len),
                    Op::Write => Request::write(at, len),
                };
                queue.wait(self.now, request) - self.now
            }
            BackingDevice::Real(partition) => partition.lock().wait(op, &[(at, len)]),
        };
        self.check_device()?;
        Ok(self.pass(span))
    }

    fn pass(&mut self, span: SimTime) -> SimTime {
        self.counters.waiting += span;
        self.now += span;
        span
    }
}
