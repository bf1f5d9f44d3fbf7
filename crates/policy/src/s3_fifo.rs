//! S3-FIFO, weighted by bytes.
//!
//! Source: Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, with the
//! defaults that its authors' simulator uses: small queue 10 %, ghost 90 %, promotion at two
//! uses, counter up to 3.

use std::sync::atomic::AtomicU8;

use crate::cache::{Cache, Key, Rule, SharedRule};
use crate::ghost::Ghost;
use crate::queues::bump;
use crate::slab::{List, Slab};

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

/// An S3-FIFO cache. A hit needs shared access only ([`Cache::get_shared`]), so a shard of a
/// RAM tier can be a reader-writer lock around one of these.
pub type S3Fifo<K, V> = Cache<K, V, S3FifoRule<K>>;

impl<K: Key, V> S3Fifo<K, V> {
    /// An empty cache of `capacity` bytes.
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
    main_max: u64,
    ghost: Ghost<K>,
    /// The object about to be inserted was in the ghost.
    returns: bool,
}

impl<K: Key> S3FifoRule<K> {
    /// With these parameters.
    #[must_use]
    pub fn new(config: S3FifoConfig) -> Self {
        Self {
            config,
            small: List::default(),
            main: List::default(),
            main_max: 0,
            ghost: Ghost::new(0),
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

    /// The tail of small: promoted, or forgotten but for the ghost.
    fn small_victim<V>(&mut self, slab: &mut Slab<K, V>, at: u32) -> Option<u32> {
        self.small.unlink(slab, at);
        if slab.freq(at) >= self.config.promote_at {
            slab.set_freq(at, 0);
            slab.set_list(at, MAIN);
            self.main.push_head(slab, at);
            return None;
        }
        self.ghost.insert(slab.key(at), slab.size(at));
        Some(at)
    }

    /// The tail of main: round again for one use less, or out.
    fn main_victim<V>(&mut self, slab: &mut Slab<K, V>, at: u32) -> Option<u32> {
        let freq = slab.freq(at);
        if freq > 0 {
            slab.set_freq(at, freq - 1);
            self.main.move_to_head(slab, at);
            return None;
        }
        self.main.unlink(slab, at);
        Some(at)
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
        self.main_max = bytes - percent(bytes, self.config.small_percent.min(100));
        let ghost = percent(bytes, self.config.ghost_percent);
        self.ghost.set_capacity(ghost);
    }

    fn arrives(&mut self, key: &K) {
        // Before the evictions for it, which push others into the ghost.
        self.returns = self.ghost.remove(key);
    }

    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        let list = if std::mem::take(&mut self.returns) {
            MAIN
        } else {
            SMALL
        };
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
        loop {
            let from_main = self.main.bytes() > self.main_max;
            let gone = match (self.small.tail(), self.main.tail()) {
                (Some(at), None) => self.small_victim(slab, at),
                (Some(at), Some(_)) if !from_main => self.small_victim(slab, at),
                (_, Some(at)) => self.main_victim(slab, at),
                (None, None) => return None,
            };
            if gone.is_some() {
                return gone;
            }
        }
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
