//! Times, and the trait [`Clock`] by which all code reads the time. Tests set the time. The proxy reads the
//! system's clocks.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// A wall-clock time in milliseconds since the Unix epoch. It may jump when the clock is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub i64);

/// A time in nanoseconds since an arbitrary start. It never goes backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoTime(pub u64);

impl WallTime {
    /// Makes a time from whole seconds since the Unix epoch.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1000))
    }
    /// Whole seconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(1000)
    }
    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }
}

impl MonoTime {
    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }
    /// Time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for MonoTime {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// A source of time. It is cheap enough for one call per request.
pub trait Clock: Send + Sync + Debug {
    /// Calendar time, for comparison with HTTP dates and for records.
    fn wall(&self) -> WallTime;
    /// Monotonic time, for measuring waits and pauses.
    fn mono(&self) -> MonoTime;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

impl Default for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads it"
    )]
    fn default() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads it"
    )]
    fn wall(&self) -> WallTime {
        let since = std::time::SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // The time is computed in 64 bits, which are enough for 292 million years. `as_millis` would compute
        // with 128-bit numbers, which is slower.
        WallTime((since.as_secs() * 1000 + u64::from(since.subsec_millis())) as i64)
    }

    fn mono(&self) -> MonoTime {
        let since = self.start.elapsed();
        MonoTime(since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos()))
    }
}

/// A clock that stands still until a test moves it. It is shared by reference or `Arc`.
#[derive(Debug)]
pub struct ManualClock {
    wall_ms: AtomicI64,
    mono_ns: AtomicU64,
}

impl ManualClock {
    /// A clock at `wall` and at monotonic time zero.
    #[must_use]
    pub fn new(wall: WallTime) -> Self {
        Self {
            wall_ms: AtomicI64::new(wall.0),
            mono_ns: AtomicU64::new(0),
        }
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.mono_ns.fetch_add(ns, Ordering::SeqCst);
    }

    /// Sets the wall clock, even to an earlier time. The monotonic clock is not affected.
    pub fn set_wall(&self, wall: WallTime) {
        self.wall_ms.store(wall.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> WallTime {
        WallTime(self.wall_ms.load(Ordering::SeqCst))
    }
    fn mono(&self) -> MonoTime {
        MonoTime(self.mono_ns.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_only_when_told() {
        let clock = ManualClock::new(WallTime::from_secs(100));
        assert_eq!(clock.wall(), clock.wall());
        clock.advance(Duration::from_millis(1500));
        assert_eq!(
            (clock.wall().secs(), clock.mono().nanos()),
            (101, 1_500_000_000)
        );
        clock.set_wall(WallTime::from_secs(5));
        assert_eq!(
            (clock.wall().secs(), clock.mono().nanos()),
            (5, 1_500_000_000)
        );
    }

    #[test]
    fn seconds_round_down_before_the_epoch_too() {
        assert_eq!(WallTime(-1).secs(), -1);
        assert_eq!(WallTime(1999).secs(), 1);
    }
}
