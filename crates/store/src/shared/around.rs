//! Longer reads of one store: how long they are, and the rule that says when to make one.

use foxy_policy::ReadAround;
use parking_lot::{Mutex, MutexGuard};

/// A longer read is as long as a locality buffer, within these bounds.
const LEAST: u64 = 4 << 10;
const MOST: u64 = 256 << 10;
/// Places remembered at most.
const PLACES_MAX: u64 = 4096;

/// Longer reads of a store: how long they are, and the rule that says when to make one.
#[derive(Debug)]
pub(crate) struct Around {
    bytes: u64,
    rule: Mutex<ReadAround>,
}

impl Around {
    /// For an engine with this much memory and a store with locality buffers of this size. Objects
    /// brought along and not yet asked for may fill a tenth of a RAM tier of half the memory.
    pub(crate) fn new(memory_bytes: u64, buffer_bytes: u64) -> Self {
        let bytes = buffer_bytes.clamp(LEAST, MOST) / LEAST * LEAST;
        let places = (memory_bytes / 20 / bytes).clamp(8, PLACES_MAX);
        Self {
            bytes,
            rule: Mutex::new(ReadAround::new(places as usize)),
        }
    }

    /// Bytes of a longer read.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn rule(&self) -> MutexGuard<'_, ReadAround> {
        self.rule.lock()
    }

    /// The rule, unless another thread has it.
    pub(crate) fn try_rule(&self) -> Option<MutexGuard<'_, ReadAround>> {
        self.rule.try_lock()
    }
}
