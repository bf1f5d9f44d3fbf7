//! A bounded memory of keys without values. The oldest keys are forgotten first.

use std::collections::VecDeque;
use std::hash::Hash;

use hashbrown::HashMap;

/// Remembers keys, each with a weight. If the sum of the weights exceeds the capacity, the oldest keys are
/// forgotten. A removed key leaves a stale entry in the queue. The stale entry is recognised by its stamp,
/// and skipped when it reaches the front of the queue.
#[derive(Debug)]
pub struct Ghost<K> {
    capacity: u64,
    used: u64,
    next_stamp: u64,
    queue: VecDeque<(K, u64)>,
    keys: HashMap<K, (u64, u64)>,
}

impl<K: Copy + Eq + Hash> Ghost<K> {
    /// Creates a ghost that remembers keys whose weights add up to at most `capacity`.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            used: 0,
            next_stamp: 0,
            queue: VecDeque::new(),
            keys: HashMap::new(),
        }
    }

    /// Remembers `key` as the newest. A key whose weight exceeds the capacity is not remembered.
    pub fn insert(&mut self, key: K, weight: u64) {
        self.remove(&key);
        if weight > self.capacity {
            return;
        }
        self.next_stamp += 1;
        self.queue.push_back((key, self.next_stamp));
        self.keys.insert(key, (self.next_stamp, weight));
        self.used += weight;
        self.shrink();
    }

    /// Forgets `key`. Returns true if it was remembered.
    pub fn remove(&mut self, key: &K) -> bool {
        let Some((_, weight)) = self.keys.remove(key) else {
            return false;
        };
        self.used -= weight;
        // There are at most 64 more stale entries than live entries, so that memory stays bounded.
        if self.queue.len() > 2 * self.keys.len() + 64 {
            let keys = &self.keys;
            self.queue
                .retain(|(key, stamp)| keys.get(key).is_some_and(|(s, _)| s == stamp));
        }
        true
    }

    /// True if `key` is remembered.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.keys.contains_key(key)
    }

    /// Number of remembered keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Sets the maximum of the total weight.
    pub fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.used > self.capacity {
            let Some((key, stamp)) = self.queue.pop_front() else {
                return;
            };
            if self.keys.get(&key).is_some_and(|(s, _)| *s == stamp)
                && let Some((_, weight)) = self.keys.remove(&key)
            {
                self.used -= weight;
            }
        }
    }
}
