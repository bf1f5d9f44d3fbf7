//! An exact LRU cache counted in bytes: the reference with which other policies are compared.

use std::collections::HashMap;

/// An LRU list of keys, weighted by bytes. It is exact and simple, and each access takes O(1) time.
#[derive(Debug, Default)]
pub struct ByteLru {
    capacity: u64,
    used: u64,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The most recently used entry; `NONE` if the list is empty.
    newest: u32,
    oldest: u32,
    map: HashMap<u64, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    size: u64,
    newer: u32,
    older: u32,
}

const NONE: u32 = u32::MAX;

/// Result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The key is present with the same size.
    Hit,
    /// The key is present with another size: the old version is replaced.
    Changed,
    /// The key was not present. It is inserted unless it is larger than the cache.
    Miss,
}

impl ByteLru {
    /// Creates an empty cache of `capacity` bytes.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            newest: NONE,
            oldest: NONE,
            ..Self::default()
        }
    }

    /// Requests `key`; a miss inserts it. `size` 0 counts as 1, so that the number of empty
    /// objects is bounded.
    pub fn access(&mut self, key: u64, size: u64) -> Access {
        self.access_with(key, size, |_, _| {})
    }

    /// Requests `key` as [`access`](Self::access) does, and calls `evicted` with key and size of every
    /// evicted object. A replaced version is not reported.
    pub fn access_with(
        &mut self,
        key: u64,
        size: u64,
        mut evicted: impl FnMut(u64, u64),
    ) -> Access {
        let size = size.max(1);
        let outcome = match self.map.get(&key).copied() {
            Some(at) if self.slots[at as usize].size == size => {
                self.unlink(at);
                self.link_newest(at);
                return Access::Hit;
            }
            Some(_) => {
                self.remove(key);
                Access::Changed
            }
            None => Access::Miss,
        };
        if size <= self.capacity {
            while self.used + size > self.capacity {
                let Slot { key, size, .. } = self.slots[self.oldest as usize];
                self.remove(key);
                evicted(key, size);
            }
            self.insert(key, size);
        }
        outcome
    }

    /// Removes `key`. Returns its size if it was present.
    pub fn remove(&mut self, key: u64) -> Option<u64> {
        let at = self.map.remove(&key)?;
        self.unlink(at);
        self.free.push(at);
        let size = self.slots[at as usize].size;
        self.used -= size;
        Some(size)
    }

    /// True if `key` is present. The position of the key does not change.
    #[must_use]
    pub fn contains(&self, key: u64) -> bool {
        self.map.contains_key(&key)
    }

    /// Bytes in the cache.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Objects in the cache.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// True if the cache contains no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    fn insert(&mut self, key: u64, size: u64) {
        let slot = Slot {
            key,
            size,
            newer: NONE,
            older: NONE,
        };
        let at = if let Some(at) = self.free.pop() {
            self.slots[at as usize] = slot;
            at
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        self.map.insert(key, at);
        self.used += size;
        self.link_newest(at);
    }

    fn link_newest(&mut self, at: u32) {
        let old = self.newest;
        self.slots[at as usize].newer = NONE;
        self.slots[at as usize].older = old;
        if old == NONE {
            self.oldest = at;
        } else {
            self.slots[old as usize].newer = at;
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Slot { newer, older, .. } = self.slots[at as usize];
        if newer == NONE {
            self.newest = older;
        } else {
            self.slots[newer as usize].older = older;
        }
        if older == NONE {
            self.oldest = newer;
        } else {
            self.slots[older as usize].newer = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    /// A reference LRU in the slowest and simplest form: a list with the newest entry last.
    struct Plain(u64, Vec<(u64, u64)>);

    impl Plain {
        fn access(&mut self, key: u64, size: u64) -> Access {
            let size = size.max(1);
            let found = self.1.iter().position(|(k, _)| *k == key);
            let old = found.map(|at| self.1.remove(at).1);
            if size <= self.0 {
                self.1.push((key, size));
                while self.1.iter().map(|(_, s)| s).sum::<u64>() > self.0 {
                    self.1.remove(0);
                }
            }
            match old {
                None => Access::Miss,
                Some(s) if s == size => Access::Hit,
                Some(_) => Access::Changed,
            }
        }
    }

    #[test]
    fn agrees_with_a_plain_list() {
        let mut rng = Rng::new(3);
        let (mut fast, mut plain) = (ByteLru::new(500), Plain(500, Vec::new()));
        for n in 0..20_000 {
            let key = rng.below(40);
            let size = if rng.chance(0.05) {
                rng.below(600)
            } else {
                key * 3
            };
            assert_eq!(fast.access(key, size), plain.access(key, size), "step {n}");
            assert_eq!(fast.used(), plain.1.iter().map(|(_, s)| s).sum::<u64>());
            assert_eq!(fast.len(), plain.1.len());
        }
    }

    #[test]
    fn reports_what_leaves_for_room() {
        let mut lru = ByteLru::new(10);
        lru.access(1, 4);
        lru.access(2, 4);
        lru.access(1, 4);
        let mut left = Vec::new();
        lru.access_with(3, 5, |key, size| left.push((key, size)));
        assert_eq!(left, [(2, 4)]);
        assert!(lru.contains(1) && lru.contains(3) && !lru.is_empty());
    }
}
