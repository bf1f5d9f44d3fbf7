//! W-TinyLFU from its definition (Einziger, Friedman, Manes, ACM ToS 2017), slow and plain.
//!
//! A window of 1 % under LRU accepts every new object. Behind the window is a segmented LRU. A hit moves an
//! object from probation to the protected part (80 %); the oldest object of a full protected part returns to
//! probation. While the window is too long and the segmented LRU has room, the oldest object of the window
//! enters probation. When the cache is over its capacity and the window is too long, the oldest object of the
//! window is compared with the oldest object of probation (or of the protected part, if probation is empty).
//! The object of the window stays if it was requested more often; otherwise it is evicted. Uses are counted
//! up to 15. All counts are halved whenever the number of uses has reached ten times the number of objects
//! for which the sketch is sized.

use std::collections::HashMap;

use super::{Item, Naive, bytes, item, place};

/// W-TinyLFU with exact counts in place of the sketch. Its results equal the results with the sketch as long
/// as no two keys share all four counters of the sketch.
#[derive(Debug)]
pub(crate) struct Tiny {
    capacity: u64,
    window: Vec<Item>,
    probation: Vec<Item>,
    protected: Vec<Item>,
    counts: HashMap<u64, u64>,
    counted: u64,
    halve_at: u64,
}

impl Tiny {
    /// Creates a cache. `objects` is the number of objects for which the sketch is sized, and must be a power
    /// of two.
    pub(crate) fn new(capacity: u64, objects: u64) -> Self {
        Self {
            capacity,
            window: Vec::new(),
            probation: Vec::new(),
            protected: Vec::new(),
            counts: HashMap::new(),
            counted: 0,
            halve_at: 10 * objects,
        }
    }

    const fn window_most(&self) -> u64 {
        self.capacity / 100
    }

    const fn main_most(&self) -> u64 {
        self.capacity - self.window_most()
    }

    fn main_bytes(&self) -> u64 {
        bytes(&self.probation) + bytes(&self.protected)
    }

    fn count(&mut self, key: u64) {
        let count = self.counts.entry(key).or_insert(0);
        *count = (*count + 1).min(15);
        self.counted += 1;
        if self.counted >= self.halve_at {
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.counted /= 2;
        }
    }

    fn window_is_long(&self) -> bool {
        bytes(&self.window) > self.window_most()
    }

    fn settle(&mut self) {
        while self.window_is_long() && self.main_bytes() + self.window[0].size <= self.main_most() {
            let item = self.window.remove(0);
            self.probation.push(item);
        }
    }
}

impl Naive for Tiny {
    fn get(&mut self, key: u64) -> bool {
        self.count(key);
        if let Some(at) = place(&self.window, key) {
            let item = self.window.remove(at);
            self.window.push(item);
            return true;
        }
        let found = match (place(&self.probation, key), place(&self.protected, key)) {
            (Some(at), _) => self.probation.remove(at),
            (None, Some(at)) => self.protected.remove(at),
            (None, None) => return false,
        };
        self.protected.push(found);
        while bytes(&self.protected) > self.main_most() * 80 / 100 {
            let oldest = self.protected.remove(0);
            self.probation.push(oldest);
        }
        true
    }

    fn insert(&mut self, key: u64, size: u64) -> Vec<u64> {
        let mut evicted = Vec::new();
        self.window.push(item(key, size));
        self.settle();
        while bytes(&self.window) + self.main_bytes() > self.capacity {
            evicted.extend(self.evict());
        }
        evicted
    }

    fn remove(&mut self, key: u64) {
        for queue in [&mut self.window, &mut self.probation, &mut self.protected] {
            queue.retain(|i| i.key != key);
        }
    }

    fn evict(&mut self) -> Option<u64> {
        self.settle();
        let new = self.window.first().filter(|_| self.window_is_long());
        let old = self.probation.first().or_else(|| self.protected.first());
        let asked = |item: &Item| self.counts.get(&item.key).copied().unwrap_or(0);
        let key = match (new, old) {
            (Some(new), Some(old)) if asked(new) > asked(old) => old.key,
            (Some(new), _) => new.key,
            (None, Some(old)) => old.key,
            (None, None) => self.window.first()?.key,
        };
        self.remove(key);
        Some(key)
    }
}
