//! The rules that use one queue: LRU, FIFO, CLOCK and SIEVE.
//!
//! Sources: LRU and FIFO are folklore. CLOCK is from Corbato 1968. Here it is a queue with one bit per object
//! that records a use. (With several bits per object, it is the generalised clock.) SIEVE is from Zhang et
//! al., "SIEVE is simpler than LRU", NSDI 2024. The hand of SIEVE walks from old to new objects. Objects that
//! were used since the hand's last visit stay where they are.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::cache::{Cache, Key, Rule, SharedRule};
use crate::slab::{List, NIL, Slab};

/// The least recently used object is evicted first.
pub type Lru<K, V> = Cache<K, V, LruRule>;
/// The oldest object is evicted first.
pub type Fifo<K, V> = Cache<K, V, FifoRule>;
/// The search for the object to evict (the hand) starts at the oldest object, and evicts the first object
/// that was not used since the hand last passed it. An object that the hand passes moves to the head.
pub type Clock<K, V> = Cache<K, V, ClockRule>;
/// The search for the object to evict (the hand) moves from the tail to the head, and continues where the
/// last search ended. It evicts the next object that was not used since the hand last passed it.
pub type Sieve<K, V> = Cache<K, V, SieveRule>;

/// Counts a use up to `max`. If two threads race, one use is lost.
pub(crate) fn bump(freq: &AtomicU8, max: u8) {
    let uses = freq.load(Ordering::Relaxed);
    if uses < max {
        freq.store(uses + 1, Ordering::Relaxed);
    }
}

/// The order of [`Lru`].
#[derive(Debug, Default)]
pub struct LruRule {
    list: List,
}

impl<K: Key> Rule<K> for LruRule {
    const NAME: &'static str = "lru";

    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.list.push_head(slab, at);
    }

    fn hit<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.list.move_to_head(slab, at);
    }

    fn remove<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.list.unlink(slab, at);
    }

    fn victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        let at = self.list.tail()?;
        self.list.unlink(slab, at);
        Some(at)
    }
}

/// The order of [`Fifo`].
#[derive(Debug, Default)]
pub struct FifoRule {
    list: List,
}

impl<K: Key> Rule<K> for FifoRule {
    const NAME: &'static str = "fifo";

    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.list.push_head(slab, at);
    }

    fn hit<V>(&mut self, _slab: &mut Slab<K, V>, _at: u32) {}

    fn remove<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.list.unlink(slab, at);
    }

    fn victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        let at = self.list.tail()?;
        self.list.unlink(slab, at);
        Some(at)
    }
}

impl<K: Key> SharedRule<K> for FifoRule {
    fn hit_shared(&self, _freq: &AtomicU8) {}
}

/// The order of [`Clock`].
#[derive(Debug)]
pub struct ClockRule {
    list: List,
    freq_max: u8,
}

impl ClockRule {
    /// Creates a rule with use counters up to `freq_max` (1: the classical clock). Each use lets an object
    /// survive one pass.
    #[must_use]
    pub fn new(freq_max: u8) -> Self {
        Self {
            list: List::default(),
            freq_max,
        }
    }
}

impl Default for ClockRule {
    fn default() -> Self {
        Self::new(1)
    }
}

impl<K: Key> Rule<K> for ClockRule {
    const NAME: &'static str = "clock";

    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.list.push_head(slab, at);
    }

    fn hit<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        bump(slab.freq_cell(at), self.freq_max);
    }

    fn remove<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.list.unlink(slab, at);
    }

    fn victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        loop {
            let at = self.list.tail()?;
            let freq = slab.freq(at);
            if freq == 0 {
                self.list.unlink(slab, at);
                return Some(at);
            }
            slab.set_freq(at, freq - 1);
            self.list.move_to_head(slab, at);
        }
    }
}

impl<K: Key> SharedRule<K> for ClockRule {
    fn hit_shared(&self, freq: &AtomicU8) {
        bump(freq, self.freq_max);
    }
}

/// The order of [`Sieve`].
#[derive(Debug)]
pub struct SieveRule {
    list: List,
    /// Position at which the search for a victim continues; `NIL`: at the tail.
    hand: u32,
}

impl Default for SieveRule {
    fn default() -> Self {
        Self {
            list: List::default(),
            hand: NIL,
        }
    }
}

impl SieveRule {
    fn leave<K: Key, V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        if self.hand == at {
            self.hand = slab.newer(at);
        }
        self.list.unlink(slab, at);
    }
}

impl<K: Key> Rule<K> for SieveRule {
    const NAME: &'static str = "sieve";

    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.list.push_head(slab, at);
    }

    fn hit<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        bump(slab.freq_cell(at), 1);
    }

    fn remove<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.leave(slab, at);
    }

    fn victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        if self.hand == NIL {
            self.hand = self.list.tail()?;
        }
        while slab.freq(self.hand) > 0 {
            slab.set_freq(self.hand, 0);
            self.hand = match slab.newer(self.hand) {
                NIL => self.list.tail()?,
                newer => newer,
            };
        }
        let at = self.hand;
        self.leave(slab, at);
        Some(at)
    }
}

impl<K: Key> SharedRule<K> for SieveRule {
    fn hit_shared(&self, freq: &AtomicU8) {
        bump(freq, 1);
    }
}
