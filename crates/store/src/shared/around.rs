//! The longer reads of one store: their length, and the rule that decides when to make a longer read. A
//! longer read also returns the objects beside the requested object on the disk.

use foxy_policy::ReadAround;
use parking_lot::{Mutex, MutexGuard};

/// The minimum length of a longer read in bytes. Within bounds, a longer read is as long as a locality
/// buffer, in which the objects of a group are collected before they are written.
const LEAST: u64 = 4 << 10;
/// The maximum length of a longer read, in bytes.
const MOST: u64 = 256 << 10;
/// The maximum number of places that the rule remembers. A place is a part of the disk that one longer read
/// would cover.
const PLACES_MAX: u64 = 4096;

/// The longer reads of a store: their length, and the rule that decides when to make a longer read.
#[derive(Debug)]
pub(crate) struct Around {
    bytes: u64,
    rule: Mutex<ReadAround>,
}

impl Around {
    /// Makes the value for an engine with `memory_bytes` bytes of memory and a store with locality buffers
    /// of `buffer_bytes` bytes. The number of places that the rule remembers is the number of longer reads
    /// that fit into a twentieth of the memory, within bounds. (If the RAM tier has half of the memory, a
    /// twentieth of the memory is a tenth of the RAM tier.)
    pub(crate) fn new(memory_bytes: u64, buffer_bytes: u64) -> Self {
        let bytes = buffer_bytes.clamp(LEAST, MOST) / LEAST * LEAST;
        let places = (memory_bytes / 20 / bytes).clamp(8, PLACES_MAX);
        Self {
            bytes,
            rule: Mutex::new(ReadAround::new(places as usize)),
        }
    }

    /// The length of a longer read, in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn rule(&self) -> MutexGuard<'_, ReadAround> {
        self.rule.lock()
    }

    /// Returns the rule, or `None` if another thread has its lock.
    pub(crate) fn try_rule(&self) -> Option<MutexGuard<'_, ReadAround>> {
        self.rule.try_lock()
    }
}
