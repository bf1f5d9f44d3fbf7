//! The reason why writing waits. An object that is dropped because too many bytes wait is counted under
//! this reason.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::interface::{StoreCounters, add};

/// The reason why the next cluster of a store waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WaitsFor {
    /// Writing waits only for the writer's thread, which has to begin the work.
    Thread,
    /// Writing waits for the clusters under way.
    Device,
    /// Writing waits for a segment that can take clusters.
    Segment,
    /// Writing waits for the configured write rate.
    Rate,
}

/// The present reason why writing waits. The writer sets it, and network threads read it.
#[derive(Debug, Default)]
pub(crate) struct Pressure(AtomicU8);

impl Pressure {
    /// Sets the reason why the next cluster waits, and counts the time `passed` under the former
    /// reason.
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

    /// Notes that an object was dropped because too many bytes waited.
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
