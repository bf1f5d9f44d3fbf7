//! S3-FIFO, weighted by bytes.
//!
//! Source: Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, with the
//! defaults that its authors' simulator uses: small queue 10 %, ghost 90 %, promotion at two
//! uses, counter up to 3.

use std::sync::atomic::{AtomicU8, Ordering};

use hashbrown::HashMap;

use crate::cache::{CachePolicy, Evicted, Inserted, Key};

/// The rule's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct S3FifoConfig {
    /// Part of the capacity that is the small queue, in percent (10).
    pub small_percent: u8,
    /// Bytes of objects that the ghost remembers, in percent of the capacity (90).
    pub ghost_percent: u8,
    /// Uses after insertion from which on an object moves from small to main (2).
    pub promote_at: u8,
    /// Where the use counter stops (3).
    pub freq_max: u8,
}

impl Default for S3FifoConfig {
    fn default() -> Self {
        Self {
            small_percent: 10,
            ghost_percent: 90,
            promote_at: 2,
            freq_max: 3,
        }
    }
}

/// An S3-FIFO cache. A hit needs shared access only ([`S3Fifo::get_shared`]), so a shard of a
/// RAM tier can be a reader-writer lock around one of these.
#[derive(Debug)]
pub struct S3Fifo<K, V> {
    config: S3FifoConfig,
    capacity: u64,
    used: u64,
    map: HashMap<K, (V, u64, AtomicU8)>,
}

impl<K: Key, V> S3Fifo<K, V> {
    /// An empty cache of `capacity` bytes with the usual parameters.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self::with_config(capacity, S3FifoConfig::default())
    }

    /// An empty cache of `capacity` bytes.
    #[must_use]
    pub fn with_config(capacity: u64, config: S3FifoConfig) -> Self {
        Self {
            config,
            capacity,
            used: 0,
            map: HashMap::new(),
        }
    }

    /// The value of `key`, counting a use, with shared access only: one hash probe, one relaxed
    /// store, no allocation.
    #[must_use]
    pub fn get_shared(&self, key: &K) -> Option<&V> {
        let (value, _, freq) = self.map.get(key)?;
        let uses = freq.load(Ordering::Relaxed);
        if uses < self.config.freq_max {
            freq.store(uses + 1, Ordering::Relaxed);
        }
        Some(value)
    }

    /// Changes the value of `key` in place (its size stays), counting no use.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key).map(|(value, _, _)| value)
    }
}

impl<K: Key, V> CachePolicy<K, V> for S3Fifo<K, V> {
    fn name(&self) -> &'static str {
        "s3-fifo"
    }

    fn get(&mut self, key: &K) -> Option<&V> {
        self.get_shared(key)
    }

    fn peek(&self, key: &K) -> Option<&V> {
        self.map.get(key).map(|(value, _, _)| value)
    }

    fn insert(
        &mut self,
        key: K,
        value: V,
        size: u64,
        evicted: &mut Vec<Evicted<K, V>>,
    ) -> Inserted<V> {
        let replaced = self.remove(&key);
        let size = size.max(1);
        if size > self.capacity {
            return Inserted {
                stored: false,
                replaced,
            };
        }
        while self.used + size > self.capacity {
            evicted.extend(self.evict());
        }
        self.used += size;
        self.map.insert(key, (value, size, AtomicU8::new(0)));
        Inserted {
            stored: true,
            replaced,
        }
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let (value, size, _) = self.map.remove(key)?;
        self.used -= size;
        Some(value)
    }

    fn evict(&mut self) -> Option<Evicted<K, V>> {
        let key = *self.map.keys().next()?;
        let (value, size, _) = self.map.remove(&key)?;
        self.used -= size;
        Some(Evicted { key, value, size })
    }

    fn set_capacity(&mut self, bytes: u64, evicted: &mut Vec<Evicted<K, V>>) {
        self.capacity = bytes;
        while self.used > bytes {
            evicted.extend(self.evict());
        }
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn len(&self) -> usize {
        self.map.len()
    }
}
