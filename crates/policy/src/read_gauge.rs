//! Detects the kind of a device from the times of its reads.
//!
//! In many virtual machines the system's description of a device is wrong, and a probe would cost additional
//! reads. So the first real reads are timed. A rotating disk shows two properties. First, with several reads
//! at once it still needs milliseconds for each read, since there is one head. Second, a read that is the
//! only read under way (a lone read) takes longer if the head has to move further. A device behind a network
//! or a throttle may be as slow, but its times do not depend on the distance.

use std::time::Duration;

use foxy_base::MonoTime;

/// Kind of a device, as far as its reads show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Device {
    /// Too few reads so far.
    #[default]
    Unknown = 0,
    /// Reads take little time, or are carried out in parallel.
    Fast = 1,
    /// Slow, but near reads take as long as far reads.
    Even = 2,
    /// Reads are carried out one after another, and far reads take longer: a rotating disk.
    Rotating = 3,
}

/// A device whose mean time per read is below this time is fast.
const FAST: Duration = Duration::from_millis(2);
/// A rotating disk whose reads are sorted may seem faster than it is. A device that was once recognised as a
/// rotating disk counts as fast only if its mean is below this time.
const CERTAINLY_FAST: Duration = Duration::from_micros(500);
/// Number of reads over which a mean time is computed.
const ENOUGH: u32 = 64;
/// Lone reads (no other read under way) that are needed before distances are first evaluated.
const ENOUGH_ALONE: f64 = 32.0;
/// Number of lone reads after which the times of a device count as independent of the distance, if no
/// dependence was found until then.
const ALONE_MAX: f64 = 1024.0;
/// A separate mean shows if the device works on several reads at once. It contains only the times of reads
/// that ended while at least this number of reads were under way. With this many reads, a thread that checks
/// for completions late distorts the times little.
const MANY: u32 = 4;
/// Number of reads that are not timed after the device was found to be fast or even.
const REST: u32 = 4096;
/// Read times count as dependent on the distance if the slope of [`Line`] is more than this multiple of its
/// standard error.
const CERTAIN: f64 = 4.0;

/// Measures the times of reads, and detects the kind of the device. Each queue has its own gauge, which sees
/// only the reads of that queue.
#[derive(Clone, Debug)]
pub struct ReadGauge {
    span: f64,
    device: Device,
    flying: u32,
    /// Number of further reads that are not timed.
    rest: u32,
    /// Time at which the device began the current read, as far as is known: the start of a read on the idle
    /// device, or the end of the previous read.
    since: MonoTime,
    /// Position of the head, if the last read was a lone read.
    head: Option<u64>,
    alone: Option<u64>,
    all: Mean,
    queued: Mean,
    line: Line,
}

impl ReadGauge {
    /// Creates a gauge for a device of `span` bytes.
    #[must_use]
    pub fn new(span: u64) -> Self {
        Self {
            span: span.max(1) as f64,
            device: Device::Unknown,
            flying: 0,
            rest: 0,
            since: MonoTime(0),
            head: None,
            alone: None,
            all: Mean::default(),
            queued: Mean::default(),
            line: Line::default(),
        }
    }

    /// The kind detected so far.
    #[must_use]
    pub const fn device(&self) -> Device {
        self.device
    }

    /// Called when a read of the bytes from `at` on goes to the device. The clock is read only if needed.
    pub fn begins(&mut self, at: u64, now: impl FnOnce() -> MonoTime) {
        self.flying += 1;
        if self.rest > 0 {
            self.rest -= 1;
            // When timing starts again, the start times of reads under way are not known.
            (self.alone, self.head) = (None, None);
            return;
        }
        let first = self.flying == 1;
        self.alone = first.then_some(at);
        if first || self.since == MonoTime(0) {
            self.since = now();
        }
    }

    /// Called when a read has ended. Failed reads are ignored. Returns true if the detected kind has changed.
    pub fn ends(&mut self, failed: bool, now: impl FnOnce() -> MonoTime) -> bool {
        let flying = self.flying;
        self.flying = flying.saturating_sub(1);
        if self.rest > 0 || flying == 0 || self.since == MonoTime(0) {
            return false;
        }
        let now = now();
        let took = now.since(self.since);
        self.since = now;
        let alone = self.alone.take();
        let head = std::mem::replace(&mut self.head, alone);
        if failed {
            return false;
        }
        self.all.add(took);
        if flying >= MANY {
            self.queued.add(took);
        }
        if let (Some(at), Some(head)) = (alone, head) {
            self.line
                .add((at.abs_diff(head) as f64 / self.span).sqrt(), took);
        }
        self.judge()
    }

    fn judge(&mut self) -> bool {
        let before = self.device;
        if let Some(mean) = self.queued.full()
            && mean > FAST
        {
            self.device = Device::Rotating;
        }
        if let Some(mean) = self.all.full() {
            let limit = if before == Device::Rotating {
                CERTAINLY_FAST
            } else {
                FAST
            };
            if mean < limit {
                self.device = Device::Fast;
            } else if before != Device::Rotating {
                self.by_distance();
            }
        }
        if self.device != Device::Unknown && self.device != Device::Rotating {
            *self = Self {
                device: self.device,
                flying: self.flying,
                span: self.span,
                rest: REST,
                ..Self::new(1)
            };
        }
        self.device != before
    }

    /// Decides from the lone reads if their times depend on the distance.
    fn by_distance(&mut self) {
        if self.line.n < ENOUGH_ALONE {
            return;
        }
        if self.line.mean() > FAST.as_secs_f64() && self.line.certainty() > CERTAIN {
            self.device = Device::Rotating;
        } else if self.line.n >= ALONE_MAX {
            self.device = Device::Even;
        }
    }
}

/// The mean of the last [`ENOUGH`] times.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    n: u32,
    sum: Duration,
}

impl Mean {
    fn add(&mut self, time: Duration) {
        self.n += 1;
        self.sum += time;
    }

    /// Returns the mean when it is complete, and starts a new mean.
    fn full(&mut self) -> Option<Duration> {
        if self.n < ENOUGH {
            return None;
        }
        let full = std::mem::take(self);
        Some(full.sum / full.n)
    }
}

/// A straight line through the points (square root of the distance, time): the time of a head movement grows
/// roughly with the square root of its distance.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Line {
    fn add(&mut self, x: f64, time: Duration) {
        let y = time.as_secs_f64();
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    fn mean(&self) -> f64 {
        self.y / self.n.max(1.0)
    }

    /// The slope in units of its standard error; 0 if there are too few data.
    fn certainty(&self) -> f64 {
        let sxx = self.xx - self.x * self.x / self.n;
        let sxy = self.xy - self.x * self.y / self.n;
        let syy = self.yy - self.y * self.y / self.n;
        if self.n < 3.0 || sxx <= 0.0 {
            return 0.0;
        }
        let slope = sxy / sxx;
        let rest = (syy - slope * sxy).max(0.0) / (self.n - 2.0);
        let error = (rest / sxx).sqrt();
        if error > 0.0 {
            slope / error
        } else if slope > 0.0 {
            f64::INFINITY
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests;
