//! Estimates how long a new read would wait: the number of reads in flight divided by the rate at which reads
//! are completed (Little's law).
//!
//! If a disk gets more reads than it can complete, its queue grows, and every hit waits for all hits before
//! it. After a while, a hit takes longer than a fetch from the origin. If a caller declines reads whose
//! expected wait exceeds a bound, the disk stays fully busy, and the remaining hits stay fast.

use std::time::Duration;

use foxy_base::MonoTime;

/// The mean time between two completions is a running mean, in which the newest time has the weight
/// 1 / `MEMORY`.
const MEMORY: u64 = 32;
/// While fewer than this number of reads are under way, a new read is always accepted, however slow the
/// device was before.
const FEW: u32 = 4;

/// The reads of one queue of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backlog {
    waiting: u32,
    /// Mean time in ns between two completions. Time in which no read is under way does not count. 0: not
    /// known yet.
    gap: u64,
    /// The later of two times: the time at which reads last completed, and the time at which a read last
    /// entered the empty queue.
    last: MonoTime,
}

impl Backlog {
    /// Records that a read is handed to the device. Reads the clock only if no other read is under way.
    pub fn begin(&mut self, now: impl FnOnce() -> MonoTime) {
        if self.waiting == 0 {
            self.last = now();
        }
        self.waiting = self.waiting.saturating_add(1);
    }

    /// Records that `reads` reads (at least one) completed together, successfully or not.
    pub fn end(&mut self, reads: usize, now: MonoTime) {
        let reads = u32::try_from(reads).unwrap_or(u32::MAX);
        self.waiting = self.waiting.saturating_sub(reads);
        let gap = now.since(self.last).as_nanos() as u64 / u64::from(reads.max(1));
        self.last = now;
        self.gap = match self.gap {
            0 => gap,
            mean => (0..reads.min(MEMORY as u32)).fold(mean, |m, _| m - m / MEMORY + gap / MEMORY),
        };
    }

    /// Number of reads under way.
    #[must_use]
    pub const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// True if a new read would probably wait for longer than `bound`.
    #[must_use]
    pub const fn exceeds(&self, bound: Duration) -> bool {
        self.waiting >= FEW && self.waiting as u128 * self.gap as u128 > bound.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_millis(250);

    /// Simulates a device that does one read after another and gets `rate` reads a second. Returns the
    /// longest wait of an accepted read, the share of time that the device was busy, and the share of
    /// declined reads.
    fn offered(rate: u64, service: Duration) -> (Duration, f64, f64) {
        let (mut backlog, mut free) = (Backlog::default(), MonoTime(0));
        let mut ends = std::collections::VecDeque::new();
        let (mut longest, mut declined, mut busy) = (Duration::ZERO, 0u64, Duration::ZERO);
        let reads = rate * 20;
        let mut now = MonoTime(0);
        for n in 0..reads {
            now = MonoTime(n * 1_000_000_000 / rate);
            while ends.front().is_some_and(|end| *end <= now) {
                backlog.end(1, ends.pop_front().unwrap());
            }
            if backlog.exceeds(BOUND) {
                declined += 1;
                continue;
            }
            backlog.begin(|| now);
            free = free.max(now) + service;
            ends.push_back(free);
            longest = longest.max(free.since(now));
            busy += service;
        }
        let time = now.since(MonoTime(0)).as_secs_f64();
        (
            longest,
            busy.as_secs_f64() / time,
            declined as f64 / reads as f64,
        )
    }

    #[test]
    fn nothing_is_declined_below_the_limit() {
        let (longest, _, declined) = offered(100, Duration::from_millis(8));
        assert_eq!(declined, 0.0);
        assert!(longest < Duration::from_millis(20), "{longest:?}");
    }

    #[test]
    fn beyond_the_limit_the_device_stays_busy_and_nobody_waits_much_longer_than_the_bound() {
        for rate in [150, 400, 5000] {
            let (longest, busy, declined) = offered(rate, Duration::from_millis(8));
            assert!(longest < BOUND * 3 / 2, "{rate}: {longest:?}");
            assert!((0.97..1.02).contains(&busy), "{rate}: {busy}");
            let want = 1.0 - 125.0 / rate as f64;
            assert!((declined - want).abs() < 0.03, "{rate}: {declined}");
        }
    }

    #[test]
    fn a_fast_device_takes_deep_queues() {
        let mut backlog = Backlog::default();
        for n in 0..10_000u64 {
            backlog.begin(|| MonoTime(n * 10_000));
            if n >= 128 {
                backlog.end(1, MonoTime(n * 10_000 + 5_000));
            }
        }
        assert_eq!(backlog.waiting(), 128);
        assert!(!backlog.exceeds(BOUND));
    }

    #[test]
    fn a_device_that_got_slow_is_given_another_try() {
        let mut backlog = Backlog::default();
        backlog.begin(|| MonoTime(0));
        backlog.end(1, MonoTime(60_000_000_000));
        for _ in 0..FEW {
            assert!(!backlog.exceeds(BOUND));
            backlog.begin(|| MonoTime(61_000_000_000));
        }
        assert!(backlog.exceeds(BOUND));
    }
}
