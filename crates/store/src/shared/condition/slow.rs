//! A store that takes longer than anybody waits: left alone until what is late has arrived and a
//! pause has passed, which doubles each time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use foxy_base::MonoTime;

use super::Condition;

/// First pause of a slow store, and how often it is doubled.
const PAUSE: Duration = Duration::from_secs(1);
const DOUBLINGS: u32 = 6;
/// A store that was not slow for so long begins with the first pause again.
const FORGIVEN: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(super) struct Slowness {
    strikes: u32,
    /// The slowness was logged.
    told: bool,
}

impl Condition {
    /// Left alone at the moment because it takes too long.
    pub(crate) fn is_slow(&self, now: impl FnOnce() -> MonoTime) -> bool {
        let until = self.slow_until.load(Ordering::Relaxed);
        until != 0 && (self.late.load(Ordering::Relaxed) > 0 || now().nanos() < until)
    }

    /// Nobody waits any longer for a read that the device still has.
    pub(crate) fn given_up(&self, disk: &str, at: u64, now: MonoTime) {
        self.late.fetch_add(1, Ordering::Relaxed);
        self.strike(disk, &format!("a read at byte {at} takes too long"), now);
    }

    /// A read that nobody waited for any longer has ended after all.
    pub(crate) fn arrived(&self, now: MonoTime) {
        self.late.fetch_sub(1, Ordering::Relaxed);
        let slow = self.slow.lock();
        self.pause(&slow, now);
    }

    /// A write has been under way for too long.
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
