//! W-TinyLFU, weighted by bytes.
//!
//! Source: Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission policy", ACM ToS 2017. A
//! small LRU window accepts every new object. An object that leaves the window enters the main part
//! (segmented LRU) only if it was requested more often than the object that it would evict.

use crate::cache::{Cache, Key, Rule};
use crate::sketch::Sketch;
use crate::slab::{List, Slab};

/// A window in front of a main part; the frequency of use decides about admission to the main part.
pub type WTinyLfu<K, V> = Cache<K, V, WTinyLfuRule>;

/// The rule's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WTinyLfuConfig {
    /// Share of the window in the capacity, in percent (default: 1).
    pub window_percent: u8,
    /// Share of the protected part in the main part, in percent (default: 80).
    pub protected_percent: u8,
    /// Number of different objects for which the sketch is sized (about as many as the cache contains).
    pub objects: usize,
}

impl Default for WTinyLfuConfig {
    fn default() -> Self {
        Self {
            window_percent: 1,
            protected_percent: 80,
            objects: 1 << 16,
        }
    }
}

const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

/// The order of [`WTinyLfu`].
#[derive(Debug)]
pub struct WTinyLfuRule {
    config: WTinyLfuConfig,
    sketch: Sketch,
    lists: [List; 3],
    window_max: u64,
    main_max: u64,
    protected_max: u64,
}

impl WTinyLfuRule {
    /// Creates a rule with these parameters.
    #[must_use]
    pub fn new(config: WTinyLfuConfig) -> Self {
        Self {
            sketch: Sketch::new(config.objects),
            config,
            lists: [List::default(); 3],
            window_max: 0,
            main_max: 0,
            protected_max: 0,
        }
    }

    fn link<K: Key, V>(&mut self, slab: &mut Slab<K, V>, at: u32, list: u8) {
        slab.set_list(at, list);
        self.lists[usize::from(list)].push_head(slab, at);
    }

    fn unlink<K: Key, V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.lists[usize::from(slab.list(at))].unlink(slab, at);
    }

    fn bytes(&self, list: u8) -> u64 {
        self.lists[usize::from(list)].bytes()
    }

    fn tail(&self, list: u8) -> Option<u32> {
        self.lists[usize::from(list)].tail()
    }

    fn main_bytes(&self) -> u64 {
        self.bytes(PROBATION) + self.bytes(PROTECTED)
    }

    /// The object that leaves the window next, if the window is too large.
    fn candidate(&self) -> Option<u32> {
        self.tail(WINDOW)
            .filter(|_| self.bytes(WINDOW) > self.window_max)
    }

    /// Moves objects from the window to the main part while the window is too large and the main part has
    /// room.
    fn fill_main<K: Key, V>(&mut self, slab: &mut Slab<K, V>) {
        while let Some(at) = self.candidate() {
            if self.main_bytes() + slab.size(at) > self.main_max {
                return;
            }
            self.unlink(slab, at);
            self.link(slab, at, PROBATION);
        }
    }

    fn main_tail(&self) -> Option<u32> {
        self.tail(PROBATION).or_else(|| self.tail(PROTECTED))
    }
}

impl Default for WTinyLfuRule {
    fn default() -> Self {
        Self::new(WTinyLfuConfig::default())
    }
}

impl<K: Key> Rule<K> for WTinyLfuRule {
    const NAME: &'static str = "w-tinylfu";
    const EVICT_FIRST: bool = false;

    fn set_capacity(&mut self, bytes: u64) {
        let part =
            |of: u64, percent: u8| (u128::from(of) * u128::from(percent.min(100)) / 100) as u64;
        self.window_max = part(bytes, self.config.window_percent);
        self.main_max = bytes - self.window_max;
        self.protected_max = part(self.main_max, self.config.protected_percent);
    }

    fn missed(&mut self, key: &K) {
        self.sketch.add(key);
    }

    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.link(slab, at, WINDOW);
        self.fill_main(slab);
    }

    fn hit<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.sketch.add(&slab.key(at));
        let list = slab.list(at);
        self.unlink(slab, at);
        self.link(slab, at, if list == WINDOW { WINDOW } else { PROTECTED });
        while self.bytes(PROTECTED) > self.protected_max {
            let Some(oldest) = self.tail(PROTECTED) else {
                break;
            };
            self.unlink(slab, oldest);
            self.link(slab, oldest, PROBATION);
        }
    }

    fn remove<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.unlink(slab, at);
    }

    fn victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        self.fill_main(slab);
        let at = match (self.candidate(), self.main_tail()) {
            (Some(new), Some(old)) => {
                let asked = |at| self.sketch.estimate(&slab.key(at));
                if asked(new) > asked(old) { old } else { new }
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => self.tail(WINDOW)?,
        };
        self.unlink(slab, at);
        Some(at)
    }
}
