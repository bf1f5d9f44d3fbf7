//! The keys that were removed while older records of these keys may still have to be loaded.

use std::collections::HashSet;

use foxy_base::{KeyHash, rule};

/// The memory of a key, in bytes, right after the set has grown.
const KEY_BYTES: u64 = 20;

/// The keys that were removed while older segments are being loaded.
#[derive(Debug)]
pub(crate) struct RemovedKeys {
    keys: HashSet<u64>,
    max: usize,
    /// True if there were more keys than `max`, or if the index is full. Then no further entries may be
    /// loaded.
    pub(crate) full: bool,
    /// True if the store's log lacks tombstones for some of these keys. Then loading logs a record tombstone
    /// for each record that it leaves out because of its key.
    pub(crate) untold: bool,
}

impl RemovedKeys {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            keys: HashSet::new(),
            max,
            full: false,
            untold: false,
        }
    }

    /// The maximum number of keys if the engine has `memory` bytes. The keys may take a quarter of the
    /// memory, because the RAM tier needs this memory only after objects are loaded.
    pub(crate) fn most(memory: u64) -> usize {
        usize::try_from(memory / 4 / KEY_BYTES).unwrap_or(usize::MAX)
    }

    pub(crate) fn add(&mut self, hash: KeyHash) {
        if self.keys.len() < self.max {
            self.keys.insert(hash.low());
        } else {
            self.full = true;
        }
    }

    /// The memory of the set, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * 10
    }

    /// Adds the keys of another set.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.full |= other.full;
        self.max = self.max.max(other.keys.len());
        self.keys.extend(other.keys);
    }

    pub(crate) fn has(&self, hash: KeyHash) -> bool {
        rule!("removed keys: a full set names every key", self.full, false)
            || self.keys.contains(&hash.low())
    }
}

#[cfg(test)]
mod tests {
    use foxy_base::key_hash;

    use super::*;

    #[test]
    fn a_full_set_has_a_quarter_of_the_memory_and_names_every_key() {
        const MEMORY: u64 = 1 << 20;
        let mut removed_keys = RemovedKeys::new(RemovedKeys::most(MEMORY));
        let keys: Vec<_> = (0..100_000u32)
            .map(|n| key_hash(&n.to_le_bytes()))
            .collect();
        let mut all = keys.iter();
        while !removed_keys.full {
            removed_keys.add(*all.next().unwrap());
            assert!(removed_keys.memory_bytes() as u64 <= MEMORY / 4);
        }
        assert!(removed_keys.keys.len() > 10_000 && removed_keys.has(keys[99_999]));
    }
}
