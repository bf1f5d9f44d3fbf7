//! The gate before the disks: it decides which objects are written to disks, both while the write budget
//! lasts and after it is spent.
//!
//! The budget grows with time. Until three quarters of it are spent, every object may be written. The last
//! quarter is only for objects that are within the size limit and that the chosen rule admits. The RAM tier
//! takes an object even if the gate does not admit the object; a large object is then not stored at all. For
//! a large object the gate decides once, about the whole object.

use std::time::Duration;

use foxy_base::{KeyHash, MonoTime};
use foxy_policy::{Admission, Admit, Budgeted, Filter, SizeLimit, TokenBucket};
use parking_lot::Mutex;

use crate::AdmissionConfig;

/// An unused budget accumulates for at most this time.
const BURST: Duration = Duration::from_secs(10);
/// The part (1/n) of the budget that is kept for objects that the rule admits.
const KEPT: u64 = 4;
/// The part (1/n) of the memory budget that the rule uses to remember which keys were used.
pub const GATE_MEMORY_PART: u64 = 64;

/// The decision about objects when three quarters of the write budget are spent: an object is admitted if it
/// is within the size limit, and if the rule (`when_spent` in the configuration) admits it.
#[derive(Debug)]
struct WhenSpent {
    size: SizeLimit,
    rule: Filter<KeyHash>,
}

impl Admission<KeyHash> for WhenSpent {
    fn admit(&mut self, key: KeyHash, size: u64, now: MonoTime) -> Admit {
        let within = self.size.admit(key, size, now);
        match within.is_yes() {
            true => self.rule.admit(key, size, now),
            false => within,
        }
    }
}

/// Decides for every object whether it may be written. Without a budget, it admits every object.
#[derive(Debug)]
pub(crate) struct Gate(Option<Mutex<Budgeted<WhenSpent>>>);

impl Gate {
    pub(crate) fn new(config: &AdmissionConfig, memory: u64, now: MonoTime) -> Self {
        if config.write_budget == 0 {
            return Self(None);
        }
        let kept = config.write_budget / KEPT;
        let bucket = |rate: u64| {
            let burst = rate.saturating_mul(BURST.as_secs());
            TokenBucket::new(rate, burst, now)
        };
        let bytes = memory / GATE_MEMORY_PART;
        let rule = Filter::new(config.when_spent, Some(bytes));
        let size = SizeLimit {
            max_bytes: config.size_max,
        };
        let filter = WhenSpent { size, rule };
        let budget = bucket(config.write_budget - kept);
        Self(Some(Mutex::new(Budgeted::new(
            budget,
            bucket(kept),
            filter,
        ))))
    }

    /// The bytes of memory that the gate may take.
    pub(crate) const fn memory_bytes(&self, memory: u64) -> u64 {
        match self.0 {
            Some(_) => memory / GATE_MEMORY_PART,
            None => 0,
        }
    }

    /// Returns whether an object of `bytes` bytes may be written. Reads the clock only if it needs the
    /// time.
    pub(crate) fn admits(&self, key: KeyHash, bytes: u64, now: impl FnOnce() -> MonoTime) -> bool {
        let Some(rules) = &self.0 else {
            return true;
        };
        rules.lock().admit(key, bytes, now()).is_yes()
    }

    /// Notes that an object of this key was in the cache until now. Storing the next object of the key
    /// then counts as a second use.
    pub(crate) fn used(&self, key: KeyHash) {
        if let Some(rules) = &self.0 {
            rules.lock().filter_mut().rule.used(key);
        }
    }
}
