//! The times at which requests are sent: as soon as a connection is free, or at random times that do not
//! depend on the answers.

use std::time::Duration;

use foxy_base::Rng;
use foxy_trace::generate::exponential;

/// Pace of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Closed loop: each connection sends the next request as soon as it has the answer to the last one.
    Closed,
    /// Open loop: Poisson arrivals at this rate per second. The time of an answer counts from the intended
    /// start of its request. So it includes the time for which the request waited for a free connection of a
    /// slow server.
    Open(f64),
}

/// The times at which one thread sends its requests.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Mean time between two requests, in ns; 0 for a closed loop.
    gap: f64,
    next: f64,
    rng: Rng,
}

impl Schedule {
    /// Schedule of one of `threads` threads, beginning at `now` (ns). The thread sends its share of the rate
    /// of `pace`.
    pub(crate) fn new(pace: Pace, threads: usize, now: u64, rng: Rng) -> Self {
        let gap = match pace {
            Pace::Closed => 0.0,
            Pace::Open(rate) => 1e9 * threads as f64 / rate.max(1e-3),
        };
        Self {
            gap,
            next: now as f64,
            rng,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.gap > 0.0
    }

    /// If the intended time of the next request has come, returns this time and advances to the following
    /// request.
    pub(crate) fn due(&mut self, now: u64) -> Option<u64> {
        if !self.is_open() {
            return Some(now);
        }
        let intended = self.next as u64;
        if intended > now {
            return None;
        }
        self.next += exponential(&mut self.rng, self.gap);
        Some(intended)
    }

    /// Time until the next request; `None` in a closed loop.
    pub(crate) fn wait(&self, now: u64) -> Option<Duration> {
        self.is_open()
            .then(|| Duration::from_nanos((self.next as u64).saturating_sub(now)))
    }
}

/// A timer for waits of less than a millisecond. The timeout of epoll has whole milliseconds only. Other
/// systems have no such timer.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Timer(rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Timer {
    pub(crate) fn new(registry: &mio::Registry, token: mio::Token) -> std::io::Result<Self> {
        use rustix::fd::AsRawFd;
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let raw = fd.as_raw_fd();
        registry.register(
            &mut mio::unix::SourceFd(&raw),
            token,
            mio::Interest::READABLE,
        )?;
        Ok(Self(fd))
    }

    /// Makes the timer readable after `wait`. Until then the timer is not readable, even if it was readable
    /// before.
    pub(crate) fn set(&self, wait: Duration) -> std::io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().max(1).into(),
        };
        let spec = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }
}

/// This system has no finer timer, so times are rounded up to the milliseconds of the readiness call.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) struct Timer;

#[cfg(not(target_os = "linux"))]
impl Timer {
    pub(crate) fn new(_: &mio::Registry, _: mio::Token) -> std::io::Result<Self> {
        Ok(Self)
    }
    pub(crate) fn set(&self, _: Duration) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_loops_keep_their_rate_whoever_is_late() {
        let mut schedule = Schedule::new(Pace::Open(1000.0), 2, 0, Rng::new(1));
        let mut count = 0u32;
        for now in (0..10_000_000_000u64).step_by(50_000_000) {
            while let Some(intended) = schedule.due(now) {
                assert!(intended <= now);
                count += 1;
            }
        }
        assert!((4_700..5_300).contains(&count), "{count}");
        assert!(schedule.wait(0).is_some());
        let mut closed = Schedule::new(Pace::Closed, 1, 0, Rng::new(1));
        assert_eq!((closed.due(7), closed.wait(7)), (Some(7), None));
    }
}
