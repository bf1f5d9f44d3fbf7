//! The clock of a history: that of the runtime, whose time stands still until nothing is left to do.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use foxy_base::{Clock, MonoTime, WallTime};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// 2026-11-20 12:00:00 UTC.
const NOON: i64 = 1_795_176_000_000;
/// Time between two looks at the clock during work that blocks a thread, in nanoseconds.
const STEP: u64 = 200_000;

thread_local! {
    /// When the history on this thread began.
    static BEGAN: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// Time since the history began.
#[derive(Debug)]
pub(super) struct SimulatedClock {
    began: Instant,
    /// For threads that are outside the runtime, in nanoseconds.
    last: AtomicU64,
    /// Work that blocks its thread is under way, and this much time has passed in it.
    blocks: AtomicBool,
    ahead: AtomicU64,
}

impl SimulatedClock {
    /// The clock of a history that begins now.
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

    /// Carries out work that the product does on a thread of its own, and that ends by the clock if not
    /// otherwise. Time passes with each look at the clock.
    pub(super) async fn blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        self.blocks.store(true, Ordering::Relaxed);
        let result = work();
        self.blocks.store(false, Ordering::Relaxed);
        // The runtime's clock has advanced before anybody looks at this one again.
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
        // Zero means "never" in some places.
        MonoTime(1 + self.elapsed().as_nanos() as u64)
    }
}

/// The calendar time of the history on this thread.
pub(super) fn wall() -> WallTime {
    let elapsed = BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed());
    WallTime(NOON + elapsed.as_millis() as i64)
}

/// When version `number` of the page without lifetime was last modified, by its origin's words.
/// Versions have different seconds, since nothing else tells them apart.
pub(super) fn modified(number: u64) -> WallTime {
    WallTime(NOON - super::MODIFIED as i64 + number as i64 * 1000)
}

/// A time as HTTP writes it.
pub(super) fn date(at: WallTime) -> String {
    String::from_utf8_lossy(foxy_http1::DateCache::new().get(at)).into_owned()
}
