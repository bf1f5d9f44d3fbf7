//! The reads that wait for the disk of a store. The reads of all threads are collected here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use foxy_disk::{AlignedBuf, Completion, Nudge};
use foxy_policy::{Device, ReadOrder, ReadOrderConfig, ReadQueue};
use parking_lot::{Condvar, Mutex};

use crate::ReadMode;

/// Two reads that are at most this many bytes apart become one read. The disk passes over such a gap in less
/// than a tenth of a rotation.
const GAP: u64 = 16 << 10;
/// The maximum length of a joined read, in bytes.
const JOINED_MAX: u64 = 512 << 10;

/// The state that all read queues on one store share.
pub(crate) struct StoreReads {
    mode: ReadMode,
    device: AtomicU8,
    pub(crate) waiting: Mutex<Waiting>,
}

/// The waiting reads of all threads.
pub(crate) struct Waiting {
    pub(crate) reads: ReadQueue<Parked>,
    /// The number of sorted reads under way at the device.
    pub(crate) flying: usize,
}

/// A read that waits for the disk, or is carried out as a part of another read.
pub(crate) struct Parked {
    pub(crate) token: u64,
    pub(crate) buf: AlignedBuf,
    pub(crate) home: Arc<Mailbox>,
}

/// The list in which a queue finds the bytes that other threads have read for it.
#[derive(Default)]
pub(crate) struct Mailbox {
    pub(crate) done: Mutex<Vec<Completion>>,
    pub(crate) arrived: Condvar,
    pub(crate) nudge: std::sync::OnceLock<Nudge>,
}

impl StoreReads {
    pub(crate) fn new(mode: ReadMode) -> Self {
        let config = ReadOrderConfig {
            batch: 1,
            timeout: Duration::ZERO,
            order: ReadOrder::Elevator,
            merge_gap_bytes: GAP,
            merge_max_bytes: JOINED_MAX,
        };
        let waiting = Waiting {
            reads: ReadQueue::new(config),
            flying: 0,
        };
        Self {
            mode,
            device: AtomicU8::new(Device::Unknown as u8),
            waiting: Mutex::new(waiting),
        }
    }

    /// Returns whether reads are sorted now.
    pub(crate) fn sorts(&self) -> bool {
        match self.mode {
            ReadMode::Auto => self.device() == Device::Rotating,
            ReadMode::Sorted => true,
            ReadMode::Direct => false,
        }
    }

    /// Returns the measured kind of the device.
    pub(crate) fn device(&self) -> Device {
        let device = self.device.load(Ordering::Relaxed);
        let kinds = [Device::Fast, Device::Even, Device::Rotating];
        let known = kinds.into_iter().find(|kind| *kind as u8 == device);
        known.unwrap_or_default()
    }

    /// Notes the kind of device that the reads have shown.
    pub(crate) fn found(&self, device: Device) {
        self.device.store(device as u8, Ordering::Relaxed);
    }
}

impl Mailbox {
    pub(crate) fn push(&self, completion: Completion) {
        self.done.lock().push(completion);
        self.arrived.notify_all();
        if let Some(nudge) = self.nudge.get() {
            nudge();
        }
    }
}

impl std::fmt::Debug for StoreReads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreReads")
            .field("mode", &self.mode)
            .field("device", &self.device())
            .finish_non_exhaustive()
    }
}
