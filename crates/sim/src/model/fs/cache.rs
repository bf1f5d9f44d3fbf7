//! A least-recently-used cache of blocks that knows which are dirty, and since when.

use std::collections::HashMap;

use crate::model::{SimTime, hash::BuildIdHasher};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    newer: u32,
    older: u32,
    /// When it became dirty.
    dirty: Option<SimTime>,
    used: bool,
}

/// Blocks in memory, by key.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    map: HashMap<u64, u32, BuildIdHasher>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    capacity: usize,
    dirty: usize,
}

impl Cache {
    /// Room for `capacity` blocks, at least one.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            map: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            capacity: capacity.max(1),
            dirty: 0,
        }
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.map.contains_key(&key)
    }

    pub(super) const fn dirty(&self) -> usize {
        self.dirty
    }

    pub(super) fn is_dirty(&self, key: u64) -> bool {
        self.map
            .get(&key)
            .is_some_and(|slot| self.slots[*slot as usize].dirty.is_some())
    }

    /// Makes the block the newest, if it is there.
    pub(super) fn touch(&mut self, key: u64) -> bool {
        let Some(&slot) = self.map.get(&key) else {
            return false;
        };
        self.promote(slot);
        true
    }

    /// Puts a block in as the newest; returns the block that had to leave: key, dirty or not.
    pub(super) fn insert(&mut self, key: u64) -> Option<(u64, bool)> {
        if self.touch(key) {
            return None;
        }
        let evicted = if self.map.len() >= self.capacity {
            self.pop_oldest()
        } else {
            None
        };
        let entry = Slot {
            key,
            newer: NONE,
            older: NONE,
            dirty: None,
            used: true,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
        };
        self.map.insert(key, slot);
        self.link(slot);
        evicted
    }

    /// The block that the next insertion would push out, if it is dirty.
    pub(super) fn dirty_victim(&self) -> Option<u64> {
        let slot = self.slots.get(self.oldest as usize)?;
        (self.map.len() >= self.capacity && slot.dirty.is_some()).then_some(slot.key)
    }

    /// Marks a block dirty, if it is there and was clean; true if it is there.
    pub(super) fn set_dirty(&mut self, key: u64, now: SimTime) -> bool {
        let Some(&slot) = self.map.get(&key) else {
            return false;
        };
        let slot = &mut self.slots[slot as usize];
        if slot.dirty.is_none() {
            slot.dirty = Some(now);
            self.dirty += 1;
        }
        true
    }

    /// Marks a block clean; true if it was dirty.
    pub(super) fn set_clean(&mut self, key: u64) -> bool {
        let Some(&slot) = self.map.get(&key) else {
            return false;
        };
        let was = self.slots[slot as usize].dirty.take().is_some();
        self.dirty -= usize::from(was);
        was
    }

    /// Forgets a block, dirty or not; true if it was there.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        let Some(slot) = self.map.remove(&key) else {
            return false;
        };
        self.dirty -= usize::from(self.slots[slot as usize].dirty.is_some());
        self.unlink(slot);
        self.release(slot);
        true
    }

    /// Dirty blocks in the part `from..to` (of `1.0`) of the memory: what a daemon meets that
    /// sweeps it page by page.
    pub(super) fn sweep(&self, from: f64, to: f64) -> Vec<u64> {
        if self.dirty == 0 {
            return Vec::new();
        }
        let at = |share: f64| ((self.capacity as f64 * share) as usize).min(self.slots.len());
        let dirty = self.slots[at(from)..at(to)]
            .iter()
            .filter(|s| s.used && s.dirty.is_some());
        dirty.map(|s| s.key).collect()
    }

    /// Blocks that are dirty since `since` or longer.
    pub(super) fn dirty_since(&self, since: SimTime) -> Vec<u64> {
        if self.dirty == 0 {
            return Vec::new();
        }
        let old = |s: &&Slot| s.used && s.dirty.is_some_and(|d| d <= since);
        self.slots.iter().filter(old).map(|s| s.key).collect()
    }

    fn pop_oldest(&mut self) -> Option<(u64, bool)> {
        let slot = self.oldest;
        let Slot { key, dirty, .. } = *self.slots.get(slot as usize)?;
        self.map.remove(&key);
        self.dirty -= usize::from(dirty.is_some());
        self.unlink(slot);
        self.release(slot);
        Some((key, dirty.is_some()))
    }

    fn release(&mut self, slot: u32) {
        self.slots[slot as usize].used = false;
        self.slots[slot as usize].dirty = None;
        self.free.push(slot);
    }

    fn promote(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    fn link(&mut self, slot: u32) {
        self.slots[slot as usize].newer = NONE;
        self.slots[slot as usize].older = self.newest;
        match self.slots.get_mut(self.newest as usize) {
            Some(old) => old.newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match self.slots.get_mut(newer as usize) {
            Some(next) => next.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(next) => next.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_block_leaves() {
        let mut cache = Cache::new(3);
        for key in 1..=3 {
            assert_eq!(cache.insert(key), None);
        }
        assert!(cache.touch(1));
        assert!(cache.set_dirty(2, SimTime::ZERO));
        assert_eq!(cache.insert(4), Some((2, true)));
        assert_eq!(cache.insert(5), Some((3, false)));
        assert!(cache.remove(1) && !cache.remove(1));
        assert_eq!(cache.insert(6), None);
        assert_eq!(cache.insert(7), Some((4, false)));
        assert_eq!(cache.dirty(), 0);
    }

    #[test]
    fn dirt_is_counted_once_and_found_by_age_and_place() {
        let mut cache = Cache::new(4);
        for key in 0..4 {
            cache.insert(key);
            assert!(cache.set_dirty(key, SimTime::from_nanos(key)));
            assert!(cache.set_dirty(key, SimTime::from_nanos(99)));
        }
        assert_eq!(cache.dirty(), 4);
        assert_eq!(cache.dirty_since(SimTime::from_nanos(1)), [0, 1]);
        assert_eq!(cache.sweep(0.5, 1.0), [2, 3]);
        assert!(
            cache.set_clean(3) && !cache.set_clean(3) && !cache.is_dirty(3) && cache.is_dirty(2)
        );
        assert_eq!(cache.sweep(0.0, 1.0), [0, 1, 2]);
        assert!(!cache.set_dirty(9, SimTime::ZERO));
    }
}
