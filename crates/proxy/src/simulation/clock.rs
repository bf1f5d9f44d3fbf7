//! The clock of a history (one run of the simulation). It is the clock of the runtime, whose time advances
//! only when no task is ready.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use foxy_base::{Clock, MonoTime, WallTime};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// The time 2026-11-20 12:00:00 UTC, in milliseconds since 1970.
const NOON: i64 = 1_795_176_000_000;
/// Time in nanoseconds by which each read advances the clock while work blocks the thread. Otherwise work
/// that waits for a certain time would never end.
const STEP: u64 = 200_000;

thread_local! {
    /// Time at which the history on this thread began.
    static BEGAN: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// A clock that counts from the beginning of the history.
#[derive(Debug)]
pub(super) struct SimulatedClock {
    began: Instant,
    /// The time that the last read of the clock returned, in nanoseconds. Threads outside the runtime get
    /// this time.
    last: AtomicU64,
    /// True while work blocks the thread of the history.
    blocks: AtomicBool,
    /// Time by which reads have advanced the clock during the work that blocks, in nanoseconds.
    ahead: AtomicU64,
}

impl SimulatedClock {
    /// Makes the clock of a history that begins now.
    pub(super) fn start() -> Self {
        let began = Instant::now();
        BEGAN.set(Some(began));
        Self {
            began,
            last: AtomicU64::new(0),
            blocks: AtomicBool::new(false),
            ahead: AtomicU64::new(0),
        }
    }

    /// Carries out work for which the product uses a separate thread. In the simulation, the work blocks the
    /// only thread. Such work may run until the clock shows a certain time. So each read of the clock during
    /// this work advances the time.
    pub(super) async fn blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        self.blocks.store(true, Ordering::Relaxed);
        let result = work();
        self.blocks.store(false, Ordering::Relaxed);
        // The runtime's clock did not advance during the work. So it is advanced now, before this clock is
        // read again.
        let passed = Duration::from_nanos(self.ahead.swap(0, Ordering::Relaxed));
        tokio::time::advance(passed).await;
        result
    }

    fn elapsed(&self) -> Duration {
        if Handle::try_current().is_err() {
            return Duration::from_nanos(self.last.load(Ordering::Relaxed));
        }
        let ahead = match self.blocks.load(Ordering::Relaxed) {
            true => self.ahead.fetch_add(STEP, Ordering::Relaxed) + STEP,
            false => 0,
        };
        let elapsed = self.began.elapsed() + Duration::from_nanos(ahead);
        self.last
            .store(elapsed.as_nanos() as u64, Ordering::Relaxed);
        elapsed
    }
}

impl Clock for SimulatedClock {
    fn wall(&self) -> WallTime {
        WallTime(NOON + self.elapsed().as_millis() as i64)
    }

    fn mono(&self) -> MonoTime {
        // The time begins at 1, because the value zero means "never" in some places.
        MonoTime(1 + self.elapsed().as_nanos() as u64)
    }
}

/// Returns the calendar time of the history on this thread.
pub(super) fn wall() -> WallTime {
    let elapsed = BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed());
    WallTime(NOON + elapsed.as_millis() as i64)
}

/// Returns the value of `Last-Modified` for version `number` of the page without a lifetime. The values of
/// two versions differ by at least a second, because only these values distinguish the versions.
pub(super) fn modified(number: u64) -> WallTime {
    WallTime(NOON - super::MODIFIED as i64 + number as i64 * 1000)
}

/// Formats a time for fields such as `Date`.
pub(super) fn date(at: WallTime) -> String {
    String::from_utf8_lossy(foxy_http1::DateCache::new().get(at)).into_owned()
}
