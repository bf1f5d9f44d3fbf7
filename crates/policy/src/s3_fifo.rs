//! S3-FIFO, weighted by bytes.
//!
//! Source: Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023. Defaults and details
//! are those of its authors' simulator: small queue 10 %, ghost (a memory of evicted keys) 90 %, promotion at
//! two uses, use counter up to 3 (it starts again from zero in the main queue). Until the first eviction,
//! objects that do not fit into the small queue go to the main queue. A search for a victim that began in the
//! small queue stays there until it finds a victim. Unlike that simulator, this cache accepts objects that
//! are larger than the small queue; put [`crate::SizeLimited`] around it to refuse them.

use std::sync::atomic::AtomicU8;

use crate::cache::{Cache, Key, Rule, SharedRule};
use crate::ghost::Ghost;
use crate::queues::bump;
use crate::slab::{List, Slab};

/// The rule's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct S3FifoConfig {
    /// Share of the small queue in the capacity, in percent (default: 10).
    pub small_percent: u8,
    /// Bytes of objects that the ghost remembers, in percent of the capacity (default: 90).
    pub ghost_percent: u8,
    /// Number of uses after insertion that moves an object from the small queue to the main queue (default:
    /// 2).
    pub promote_at: u8,
    /// Maximum of the use counter (default: 3).
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

/// An S3-FIFO cache. A hit needs only shared access ([`Cache::get_shared`]). So several threads can have hits
/// at the same time in a cache behind a reader-writer lock. A memory tier can consist of several such caches.
pub type S3Fifo<K, V> = Cache<K, V, S3FifoRule<K>>;

impl<K: Key, V> S3Fifo<K, V> {
    /// Creates an empty cache of `capacity` bytes.
    #[must_use]
    pub fn with_config(capacity: u64, config: S3FifoConfig) -> Self {
        Self::with_rule(capacity, S3FifoRule::new(config))
    }
}

const SMALL: u8 = 0;
const MAIN: u8 = 1;

/// The order of [`S3Fifo`].
#[derive(Debug)]
pub struct S3FifoRule<K> {
    config: S3FifoConfig,
    small: List,
    main: List,
    small_max: u64,
    main_max: u64,
    ghost: Ghost<K>,
    /// True after the first eviction: the cache has been full.
    warm: bool,
    /// True if the object that is about to be inserted was in the ghost.
    returns: bool,
}

impl<K: Key> S3FifoRule<K> {
    /// Creates a rule with these parameters.
    #[must_use]
    pub fn new(config: S3FifoConfig) -> Self {
        Self {
            config,
            small: List::default(),
            main: List::default(),
            small_max: 0,
            main_max: 0,
            ghost: Ghost::new(0),
            warm: false,
            returns: false,
        }
    }

    fn list(&mut self, number: u8) -> &mut List {
        if number == MAIN {
            &mut self.main
        } else {
            &mut self.small
        }
    }

    /// Unlinks the oldest object of the small queue that has too few uses. Older objects, which have enough
    /// uses, move to the main queue.
    fn small_victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        while let Some(at) = self.small.tail() {
            self.small.unlink(slab, at);
            if slab.freq(at) < self.config.promote_at {
                self.ghost.insert(slab.key(at), slab.size(at));
                return Some(at);
            }
            slab.set_freq(at, 0);
            slab.set_list(at, MAIN);
            self.main.push_head(slab, at);
        }
        None
    }

    /// Unlinks the oldest object of the main queue that has no uses. Each older object loses one use and
    /// moves to the head of this queue.
    fn main_victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        loop {
            let at = self.main.tail()?;
            let freq = slab.freq(at);
            if freq == 0 {
                self.main.unlink(slab, at);
                return Some(at);
            }
            slab.set_freq(at, freq - 1);
            self.main.move_to_head(slab, at);
        }
    }
}

impl<K: Key> Default for S3FifoRule<K> {
    fn default() -> Self {
        Self::new(S3FifoConfig::default())
    }
}

impl<K: Key> Rule<K> for S3FifoRule<K> {
    const NAME: &'static str = "s3-fifo";

    fn set_capacity(&mut self, bytes: u64) {
        self.small_max = percent(bytes, self.config.small_percent.min(100));
        self.main_max = bytes - self.small_max;
        let ghost = percent(bytes, self.config.ghost_percent);
        self.ghost.set_capacity(ghost);
    }

    fn arrives(&mut self, key: &K) {
        // The ghost is read before the evictions for this object, because they push other keys
        // into the ghost.
        self.returns = self.ghost.remove(key);
    }

    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        let returns = std::mem::take(&mut self.returns);
        let filling = !self.warm && self.small.bytes() >= self.small_max;
        let list = if returns || filling { MAIN } else { SMALL };
        slab.set_list(at, list);
        self.list(list).push_head(slab, at);
    }

    fn hit<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        bump(slab.freq_cell(at), self.config.freq_max);
    }

    fn remove<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        let list = slab.list(at);
        self.list(list).unlink(slab, at);
    }

    fn forget(&mut self, key: &K) {
        self.ghost.remove(key);
    }

    fn victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        self.warm = true;
        if self.main.bytes() <= self.main_max
            && let Some(at) = self.small_victim(slab)
        {
            return Some(at);
        }
        self.main_victim(slab).or_else(|| self.small_victim(slab))
    }
}

impl<K: Key> SharedRule<K> for S3FifoRule<K> {
    fn hit_shared(&self, freq: &AtomicU8) {
        bump(freq, self.config.freq_max);
    }
}

fn percent(bytes: u64, percent: u8) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}
