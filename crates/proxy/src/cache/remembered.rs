//! Properties of cache keys that Foxy has learnt from fetches. A bounded table remembers these properties for
//! a short time. The table may forget a key and may, rarely, confuse two keys. Such an error can only make
//! Foxy less efficient: for example, requests do not share a fetch, or a compressed form is not made. It
//! never leads to a wrong answer.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::{KeyHash, WallTime};

/// Number of entries, with 8 bytes each.
const SLOTS: usize = 1 << 14;
/// Number of bits of an entry that contain a time in seconds. The other bits contain a part of the key's
/// hash.
const TIME_BITS: u32 = 32;
/// Time in seconds for which a property is remembered.
const SECONDS: i64 = 120;

/// Keys whose last answer had a certain property.
#[derive(Debug)]
pub(crate) struct Remembered {
    slots: Box<[AtomicU64]>,
}

impl Remembered {
    pub(crate) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn slot(&self, key: KeyHash) -> (&AtomicU64, u64) {
        let slot = &self.slots[(key.low() % SLOTS as u64) as usize];
        (slot, key.high() >> TIME_BITS << TIME_BITS)
    }

    /// Notes that the key has the property, or that the key does not have it any more.
    pub(crate) fn note(&self, key: KeyHash, has: bool, now: WallTime) {
        let (slot, tag) = self.slot(key);
        if has {
            let until = u64::try_from(now.secs() + SECONDS).unwrap_or(0);
            slot.store(tag | until & u64::from(u32::MAX), Ordering::Relaxed);
        } else if slot.load(Ordering::Relaxed) >> TIME_BITS == tag >> TIME_BITS {
            slot.store(0, Ordering::Relaxed);
        }
    }

    /// Returns true if the key was noted to have the property within the last two minutes.
    pub(crate) fn has(&self, key: KeyHash, now: WallTime) -> bool {
        let (slot, tag) = self.slot(key);
        let entry = slot.load(Ordering::Relaxed);
        let until = i64::try_from(entry & u64::from(u32::MAX)).unwrap_or(0);
        entry >> TIME_BITS == tag >> TIME_BITS && now.secs() < until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::key_hash;

    #[test]
    fn lessons_hold_for_a_while_and_can_be_unlearned() {
        let table = Remembered::new();
        let (key, now) = (key_hash(b"k"), WallTime::from_secs(1_795_176_000));
        assert!(!table.has(key, now));
        table.note(key, true, now);
        assert!(table.has(key, now) && !table.has(key_hash(b"other"), now));
        assert!(!table.has(key, WallTime::from_secs(now.secs() + SECONDS)));
        table.note(key, false, now);
        assert!(!table.has(key, now));
    }
}
