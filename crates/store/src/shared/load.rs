//! The load of a store: the bytes that wait to be written, the write speed, and the resulting share of
//! new objects.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::pressure::{Pressure, WaitsFor};
use super::weight;
use crate::interface::StoreCounters;

/// The work of one store: its backlog, its speed and its share of new objects.
#[derive(Debug)]
pub(crate) struct Load {
    weight: u32,
    /// Bytes of objects that wait to be written to this store.
    pending_bytes: AtomicU64,
    /// Bytes per second that the store writes while it is writing; 0: not known.
    write_speed: AtomicU64,
    /// Memory that the writer occupies, in bytes.
    writer_bytes: AtomicU64,
    /// The reason why writing waits.
    pressure: Pressure,
}

impl Load {
    pub(super) fn new(weight: u32) -> Self {
        Self {
            weight,
            pending_bytes: AtomicU64::new(0),
            write_speed: AtomicU64::new(0),
            writer_bytes: AtomicU64::new(0),
            pressure: Pressure::default(),
        }
    }

    /// The store's share of new objects, relative to the shares of the other stores.
    pub(crate) fn share(&self) -> f64 {
        weight::share(self.weight, self.pending_bytes(), self.write_speed())
    }

    /// Bytes of objects that wait to be written to this store.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.pending_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether an object waits to be written to this store.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending_bytes.load(Ordering::Acquire) > 0
    }

    pub(crate) fn add_pending(&self, bytes: u64) {
        self.pending_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn take_pending(&self, bytes: u64) {
        self.pending_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes per second that the store writes while it is writing; 0: not known.
    pub(crate) fn write_speed(&self) -> u64 {
        self.write_speed.load(Ordering::Relaxed)
    }

    /// Notes that the writer wrote `bytes` bytes in `nanos` nanoseconds.
    pub(crate) fn wrote(&self, bytes: u64, nanos: u128) {
        let now = weight::speed(self.write_speed(), bytes, nanos);
        self.write_speed.store(now, Ordering::Relaxed);
    }

    /// Memory that the writer occupies, in bytes.
    pub(crate) fn writer_bytes(&self) -> u64 {
        self.writer_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_writer_bytes(&self, bytes: u64) {
        self.writer_bytes.store(bytes, Ordering::Relaxed);
    }

    /// See [`Pressure::say`].
    pub(crate) fn waits_for(&self, now: WaitsFor, passed: Duration, counters: &StoreCounters) {
        self.pressure.say(now, passed, counters);
    }

    /// See [`Pressure::dropped`].
    pub(crate) fn dropped(&self, counters: &StoreCounters) {
        self.pressure.dropped(counters);
    }

    /// Sets the number of waiting bytes, and the write speed in bytes per second.
    #[cfg(test)]
    pub(crate) fn set(&self, pending_bytes: u64, write_speed: u64) {
        self.pending_bytes.store(pending_bytes, Ordering::Relaxed);
        self.write_speed.store(write_speed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_behind_has_a_smaller_share() {
        let load = Load::new(8);
        load.wrote(1 << 20, 1_000_000_000);
        assert_eq!((load.share(), load.has_pending()), (8.0, false));
        load.add_pending(64 << 20);
        assert_eq!((load.share(), load.has_pending()), (1.0, true));
        load.take_pending(64 << 20);
        assert_eq!(load.share(), 8.0);
    }
}
