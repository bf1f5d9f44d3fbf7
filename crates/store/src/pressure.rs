//! What writing waits for, so that an object that finds no room to wait tells why.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::stats::{StoreCounters, add};

/// What the next cluster of a store waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WaitsFor {
    /// Nothing: the writer's thread has only to take it up.
    Thread,
    /// The clusters under way.
    Device,
    /// A segment to write to.
    Segment,
    /// The write rate that is set.
    Rate,
}

/// What writing waits for now; the writer says it, network threads read it.
#[derive(Debug, Default)]
pub(crate) struct Pressure(AtomicU8);

impl Pressure {
    /// What the next cluster waits for, after so much time in which it waited for what was said last.
    pub(crate) fn say(&self, now: WaitsFor, passed: Duration, counters: &StoreCounters) {
        let nanos = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        let before = self.0.swap(now as u8, Ordering::Relaxed);
        if before == WaitsFor::Device as u8 {
            add(&counters.wait_device_nanos, nanos);
        } else if before == WaitsFor::Segment as u8 {
            add(&counters.wait_segment_nanos, nanos);
        } else if before == WaitsFor::Rate as u8 {
            add(&counters.wait_rate_nanos, nanos);
        }
    }

    /// An object found no room to wait.
    pub(crate) fn dropped(&self, counters: &StoreCounters) {
        let now = self.0.load(Ordering::Relaxed);
        let counter = if now == WaitsFor::Device as u8 {
            &counters.drop_wait_device
        } else if now == WaitsFor::Segment as u8 {
            &counters.drop_wait_segment
        } else if now == WaitsFor::Rate as u8 {
            &counters.drop_wait_rate
        } else {
            &counters.drop_wait_thread
        };
        add(counter, 1);
    }
}
