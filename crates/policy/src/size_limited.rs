//! A cache that refuses large objects, with any replacement rule.
//!
//! Source: LRU-TH of the Foxy papers: LRU, but documents larger than a threshold are not cached.

use crate::cache::{CachePolicy, Evicted, Inserted, Key};
use crate::queues::Lru;

/// LRU that refuses objects larger than a threshold.
pub type LruTh<K, V> = SizeLimited<Lru<K, V>>;

/// Cache `C` for objects of at most a given size.
#[derive(Debug)]
pub struct SizeLimited<C> {
    cache: C,
    size_max: u64,
    name: &'static str,
}

impl<K: Key, V> LruTh<K, V> {
    /// Creates an LRU cache of `capacity` bytes for objects of at most `size_max` bytes.
    #[must_use]
    pub fn new(capacity: u64, size_max: u64) -> Self {
        Self::with_cache(Lru::new(capacity), size_max, "lru-th")
    }
}

impl<C> SizeLimited<C> {
    /// Puts a limit of `size_max` bytes per object around `cache`. Reports use `name`.
    pub const fn with_cache(cache: C, size_max: u64, name: &'static str) -> Self {
        Self {
            cache,
            size_max,
            name,
        }
    }
}

impl<K: Key, V, C: CachePolicy<K, V>> CachePolicy<K, V> for SizeLimited<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn get(&mut self, key: &K) -> Option<&V> {
        self.cache.get(key)
    }

    fn peek(&self, key: &K) -> Option<&V> {
        self.cache.peek(key)
    }

    fn insert(
        &mut self,
        key: K,
        value: V,
        size: u64,
        evicted: &mut Vec<Evicted<K, V>>,
    ) -> Inserted<V> {
        if size <= self.size_max {
            return self.cache.insert(key, value, size, evicted);
        }
        Inserted {
            stored: false,
            replaced: self.cache.remove(&key),
        }
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        self.cache.remove(key)
    }

    fn evict(&mut self) -> Option<Evicted<K, V>> {
        self.cache.evict()
    }

    fn set_capacity(&mut self, bytes: u64, evicted: &mut Vec<Evicted<K, V>>) {
        self.cache.set_capacity(bytes, evicted);
    }

    fn capacity(&self) -> u64 {
        self.cache.capacity()
    }

    fn used(&self) -> u64 {
        self.cache.used()
    }

    fn len(&self) -> usize {
        self.cache.len()
    }
}
