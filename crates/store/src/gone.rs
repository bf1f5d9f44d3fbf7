//! The keys that were removed while their older records may not be loaded yet.

use std::collections::HashSet;

use foxy_base::{KeyHash, rule};

/// Keys removed while older segments are being loaded.
#[derive(Debug)]
pub(crate) struct Gone {
    keys: HashSet<u64>,
    max: usize,
    /// There were too many keys: nothing more may be loaded.
    pub(crate) full: bool,
    /// The store's log lacks the removals of some keys: records that are left out because of them
    /// become void.
    pub(crate) untold: bool,
}

impl Gone {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            keys: HashSet::new(),
            max,
            full: false,
            untold: false,
        }
    }

    pub(crate) fn add(&mut self, hash: KeyHash) {
        if self.keys.len() < self.max {
            self.keys.insert(hash.low());
        } else {
            self.full = true;
        }
    }

    /// Memory of the set.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * 10
    }

    /// Takes in what another set has.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.full |= other.full;
        self.max = self.max.max(other.keys.len());
        self.keys.extend(other.keys);
    }

    pub(crate) fn has(&self, hash: KeyHash) -> bool {
        rule!("gone: a full set names every key", self.full, false)
            || self.keys.contains(&hash.low())
    }
}
