//! The order in which reads go to a store's disk: as they come, or sorted on a rotating disk.
//!
//! Every thread has a queue of its own. It hands reads on as they come, and times some of them
//! ([`ReadGauge`](foxy_policy::ReadGauge)); once a disk turns out to rotate, reads of all threads
//! gather in one place while the head is at work. A thread that finds the disk idle takes all of
//! them, sorts them in elevator order, joins neighbours, and carries them out. It hands the reads of
//! other threads over when they have ended. No read ever waits while the disk is idle, so neither a
//! timeout nor a thread of its own is needed.

mod finish;
mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use foxy_disk::{AlignedBuf, Completion, Nudge};
use foxy_policy::{Device, ReadOrder, ReadOrderConfig, ReadQueue};
use parking_lot::{Condvar, Mutex};

pub use self::finish::Reads;

/// How the reads of a store are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// As the device turns out to be.
    #[default]
    Auto,
    /// Always sorted.
    Sorted,
    /// Always as they come.
    Direct,
}

/// Reads no further apart than this become one: less than a tenth of a turn of the platter.
const GAP: u64 = 16 << 10;
/// Longest joined read.
const JOINED_MAX: u64 = 512 << 10;

/// State that the read queues on one store share.
pub(crate) struct StoreReads {
    mode: ReadMode,
    device: AtomicU8,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    reads: ReadQueue<Parked>,
    /// Sorted reads under way at the device.
    flying: usize,
}

/// A read that waits for its turn, or is carried out as a part of another.
struct Parked {
    token: u64,
    buf: AlignedBuf,
    home: Arc<Mailbox>,
}

/// Where a queue finds what other threads have read for it.
#[derive(Default)]
struct Mailbox {
    done: Mutex<Vec<Completion>>,
    arrived: Condvar,
    nudge: std::sync::OnceLock<Nudge>,
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

    fn found(&self, device: Device) {
        self.device.store(device as u8, Ordering::Relaxed);
    }
}

impl Mailbox {
    fn push(&self, completion: Completion) {
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
