//! Slow stores: a store whose operation takes too long is avoided until the operation has ended and a
//! pause has passed. The pause doubles each time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use foxy_base::MonoTime;

use super::Condition;

/// The first pause of a slow store.
const PAUSE: Duration = Duration::from_secs(1);
/// The number of times that the pause can be doubled.
const DOUBLINGS: u32 = 6;
/// If a store was not slow for this time, the next pause is again [`PAUSE`].
const FORGIVEN: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(super) struct Slowness {
    strikes: u32,
    /// True if the slowness was logged.
    told: bool,
}

impl Condition {
    /// Returns whether the store is avoided at the moment because its operations take too long.
    pub(crate) fn is_slow(&self, now: impl FnOnce() -> MonoTime) -> bool {
        let until = self.slow_until.load(Ordering::Relaxed);
        until != 0 && (self.late.load(Ordering::Relaxed) > 0 || now().nanos() < until)
    }

    /// Notes that a caller does not wait any longer for a read that the device has not completed.
    pub(crate) fn given_up(&self, disk: &str, at: u64, now: MonoTime) {
        self.late.fetch_add(1, Ordering::Relaxed);
        self.strike(disk, &format!("a read at byte {at} takes too long"), now);
    }

    /// Notes that a read has ended after its caller gave it up.
    pub(crate) fn arrived(&self, now: MonoTime) {
        self.late.fetch_sub(1, Ordering::Relaxed);
        let slow = self.slow.lock();
        self.pause(&slow, now);
    }

    /// Notes that a write has been under way for too long.
    pub(crate) fn stalled(&self, disk: &str, now: MonoTime) {
        self.strike(disk, "a write takes too long", now);
    }

    fn strike(&self, disk: &str, why: &str, now: MonoTime) {
        let mut slow = self.slow.lock();
        let until = MonoTime(self.slow_until.load(Ordering::Relaxed));
        if until.nanos() != 0 && now < until {
            return;
        }
        let forgiven = now.since(until) > FORGIVEN;
        if forgiven {
            *slow = Slowness::default();
        }
        slow.strikes = (slow.strikes + 1).min(DOUBLINGS + 1);
        self.pause(&slow, now);
        *self.reason.lock() = Some(why.to_owned());
        if !std::mem::replace(&mut slow.told, true) {
            tracing::warn!(
                "{disk}: {why}: the store is now slow; while it is, its objects are fetched and \
                 new ones go elsewhere; look at what else uses the device, or at its health"
            );
        }
    }

    fn pause(&self, slow: &Slowness, now: MonoTime) {
        let until = now + PAUSE * (1 << slow.strikes.saturating_sub(1));
        self.slow_until.store(until.nanos(), Ordering::Relaxed);
    }
}
