//! LFU with ageing.
//!
//! Source: Robinson and Devarakonda, SIGMETRICS 1990, in the form that web caching adopted (Arlitt and
//! others). The object with the fewest counted uses is evicted first; among objects with equal counts, the
//! least recently used is evicted first. When the mean count exceeds a maximum, all counts are halved, so
//! that objects that were requested often only in the past can be evicted. UCFS (the file system for proxies
//! by Wang and Hu) uses LFU with ageing to choose the clusters to evict. It is no longer known which
//! constants UCFS used.

use crate::cache::{Cache, Key, Rule};
use crate::slab::{List, Slab};

/// The object with the fewest uses is evicted first. Counts are halved when their mean exceeds a maximum.
pub type LfuAging<K, V> = Cache<K, V, LfuAgingRule>;

/// The order of [`LfuAging`].
#[derive(Debug)]
pub struct LfuAgingRule {
    /// `lists[c]` contains the objects with `c` uses, the most recently used at the head; `lists[0]` is
    /// empty.
    lists: Vec<List>,
    /// All lists below this index are empty.
    least: usize,
    counted: u64,
    objects: u64,
    mean_max: u64,
}

impl LfuAgingRule {
    /// Creates a rule whose counts stop at `count_max` (1 to 255) and are halved when their
    /// mean exceeds `mean_max`.
    #[must_use]
    pub fn new(count_max: u8, mean_max: u64) -> Self {
        Self {
            lists: vec![List::default(); usize::from(count_max.max(1)) + 1],
            least: 1,
            counted: 0,
            objects: 0,
            mean_max: mean_max.max(1),
        }
    }

    fn link<K: Key, V>(&mut self, slab: &mut Slab<K, V>, at: u32, count: u8) {
        slab.set_freq(at, count);
        self.lists[usize::from(count)].push_head(slab, at);
        self.counted += u64::from(count);
        self.objects += 1;
        self.least = self.least.min(usize::from(count));
    }

    fn unlink<K: Key, V>(&mut self, slab: &mut Slab<K, V>, at: u32) -> u8 {
        let count = slab.freq(at);
        self.lists[usize::from(count)].unlink(slab, at);
        self.counted -= u64::from(count);
        self.objects -= 1;
        count
    }

    fn age<K: Key, V>(&mut self, slab: &mut Slab<K, V>) {
        if self.counted <= self.mean_max * self.objects {
            return;
        }
        // The counts are halved list by list, from the lowest count up, and each list from its tail. If
        // objects of two counts enter the same list, the objects that had fewer uses are then nearer to the
        // tail.
        for count in 2..self.lists.len() {
            let mut old = std::mem::take(&mut self.lists[count]);
            while let Some(at) = old.tail() {
                old.unlink(slab, at);
                self.counted -= count as u64;
                self.objects -= 1;
                self.link(slab, at, (count / 2) as u8);
            }
        }
    }
}

impl Default for LfuAgingRule {
    fn default() -> Self {
        Self::new(255, 10)
    }
}

impl<K: Key> Rule<K> for LfuAgingRule {
    const NAME: &'static str = "lfu-aging";

    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.link(slab, at, 1);
    }

    fn hit<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        let count = self.unlink(slab, at);
        let most = (self.lists.len() - 1) as u8;
        self.link(slab, at, count.saturating_add(1).min(most));
        self.age(slab);
    }

    fn remove<V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        self.unlink(slab, at);
    }

    fn victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32> {
        while self.least < self.lists.len() {
            if let Some(at) = self.lists[self.least].tail() {
                self.unlink(slab, at);
                return Some(at);
            }
            self.least += 1;
        }
        None
    }
}
