//! A least-recently-used cache of blocks. It records which blocks are dirty, and since when.

use std::hash::Hasher as _;

use hashbrown::HashTable;

use super::runs::Runs;
use crate::model::{SimTime, hash::IdHasher};

const NONE: u32 = u32::MAX;
/// Value of `newer` and `older` if the block belongs to a run (the pages of one directory, which [`Runs`]
/// manages). Such a block is not in the list from `newest` to `oldest`.
const IN_RUN: u32 = u32::MAX - 1;
/// Value of `dirty` if the block is not dirty.
const CLEAN: u64 = u64::MAX;
/// Value of `key` if the slot is free.
const FREE: u64 = u64::MAX;

/// One block. A slot is small, half a line of the processor's cache, because the model spends most of its
/// time on reading slots.
#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u64,
    /// Time at which the block became dirty, in nanoseconds.
    dirty: u64,
    /// Value of the cache's touch counter when this block was added or last touched. A touch of the block's
    /// run (`touch_run`) does not change this value.
    moment: u64,
    newer: u32,
    older: u32,
}

impl Slot {
    const fn is_dirty(&self) -> bool {
        self.dirty != CLEAN
    }
}

/// Blocks in memory, found by key.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Slot number of each block, found by the key of the block.
    map: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    capacity: usize,
    dirty: usize,
    /// Number of touches so far.
    moment: u64,
    runs: Runs,
}

fn hash(key: u64) -> u64 {
    let mut hasher = IdHasher::default();
    hasher.write_u64(key);
    hasher.finish()
}

impl Cache {
    /// Creates a cache for `capacity` blocks, at least one.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            map: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            capacity: capacity.max(1),
            dirty: 0,
            moment: 0,
            runs: Runs::default(),
        }
    }

    /// Slot of the block. The slot number is valid until the next block is added or removed.
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        let is = |slot: &u32| self.slots[*slot as usize].key == key;
        self.map.find(hash(key), is).copied()
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.find(key).is_some()
    }

    pub(super) const fn dirty(&self) -> usize {
        self.dirty
    }

    pub(super) fn is_dirty(&self, key: u64) -> bool {
        let slot = self.find(key);
        slot.is_some_and(|slot| self.slots[slot as usize].is_dirty())
    }

    /// Makes the block the newest, if it is in the cache. Returns true if it is in the cache.
    pub(super) fn touch(&mut self, key: u64) -> bool {
        self.touched(key).is_some()
    }

    /// Makes the block the newest as [`touch`](Self::touch) does, and returns the block's slot.
    pub(super) fn touched(&mut self, key: u64) -> Option<u32> {
        let slot = self.find(key)?;
        self.promote(slot);
        Some(slot)
    }

    /// Touches the blocks `0..count` of the owner's run in this order, if all blocks of the run are in the
    /// cache. Otherwise does nothing and returns false.
    pub(super) fn touch_run(&mut self, owner: u32, count: u64) -> bool {
        let whole = self.runs.scan(owner, count, self.moment + 1);
        if whole {
            self.moment += count;
        }
        whole
    }

    /// Adds a block as the newest block. Returns the evicted block, if any: its key, and true if
    /// it was dirty.
    pub(super) fn insert(&mut self, key: u64) -> Option<(u64, bool)> {
        if self.touch(key) {
            return None;
        }
        self.insert_new(key).0
    }

    /// Adds a block as [`insert`](Self::insert) does. The block must be absent. Also returns the block's
    /// slot.
    pub(super) fn insert_new(&mut self, key: u64) -> (Option<(u64, bool)>, u32) {
        let (evicted, slot) = self.enter(key);
        self.link(slot);
        (evicted, slot)
    }

    /// Adds a block as [`insert`](Self::insert) does, but to a run instead of the list. `key` contains the
    /// number of the run and the block's place in the run, in 32 bits each.
    pub(super) fn insert_in_run(&mut self, key: u64) -> Option<(u64, bool)> {
        if self.touch(key) {
            return None;
        }
        let (evicted, slot) = self.enter(key);
        let entry = &mut self.slots[slot as usize];
        (entry.newer, entry.older) = (IN_RUN, IN_RUN);
        self.runs.add(key, slot, self.moment);
        evicted
    }

    /// Returns an unlinked slot for a new block, and the block that was evicted for it, if any.
    fn enter(&mut self, key: u64) -> (Option<(u64, bool)>, u32) {
        let evicted = if self.map.len() >= self.capacity {
            self.pop_oldest()
        } else {
            None
        };
        self.moment += 1;
        let entry = Slot {
            key,
            dirty: CLEAN,
            moment: self.moment,
            newer: NONE,
            older: NONE,
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
        let slots = &self.slots;
        let hash_of = |slot: &u32| hash(slots[*slot as usize].key);
        self.map.insert_unique(hash(key), slot, hash_of);
        (evicted, slot)
    }

    /// The block that the next insertion would evict, if that block is dirty.
    pub(super) fn dirty_victim(&mut self) -> Option<u64> {
        if self.map.len() < self.capacity {
            return None;
        }
        let slot = self.oldest_slot()?;
        let slot = self.slots.get(slot as usize)?;
        slot.is_dirty().then_some(slot.key)
    }

    /// The least recently touched slot, in the list or in a run.
    fn oldest_slot(&mut self) -> Option<u32> {
        let (slots, oldest) = (&self.slots, self.oldest);
        let listed = slots.get(oldest as usize).map(|slot| slot.moment);
        let known = |slot: u32| slots.get(slot as usize).map(|s| (s.key, s.moment));
        let in_run = self.runs.oldest(listed.unwrap_or(u64::MAX), known);
        in_run.or(listed.map(|_| oldest))
    }

    /// Marks a block dirty, if it is in the cache and clean. Returns true if it is in the cache.
    pub(super) fn set_dirty(&mut self, key: u64, now: SimTime) -> bool {
        let slot = self.find(key);
        if let Some(slot) = slot {
            self.set_slot_dirty(slot, now);
        }
        slot.is_some()
    }

    /// Marks the block in `slot` dirty, as [`set_dirty`](Self::set_dirty) does.
    pub(super) fn set_slot_dirty(&mut self, slot: u32, now: SimTime) {
        let slot = &mut self.slots[slot as usize];
        if !slot.is_dirty() {
            slot.dirty = now.as_nanos();
            self.dirty += 1;
        }
    }

    /// Marks a block clean. Returns true if it was dirty.
    pub(super) fn set_clean(&mut self, key: u64) -> bool {
        self.find(key).is_some_and(|slot| self.set_slot_clean(slot))
    }

    /// Marks the block in `slot` clean, as [`set_clean`](Self::set_clean) does.
    pub(super) fn set_slot_clean(&mut self, slot: u32) -> bool {
        let slot = &mut self.slots[slot as usize];
        let was = std::mem::replace(&mut slot.dirty, CLEAN) != CLEAN;
        self.dirty -= usize::from(was);
        was
    }

    /// Removes a block, dirty or not. Returns true if it was in the cache.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        let Some(slot) = self.find(key) else {
            return false;
        };
        self.unmap(key, slot);
        self.dirty -= usize::from(self.slots[slot as usize].is_dirty());
        self.unlink(slot);
        self.release(slot);
        true
    }

    /// Dirty blocks in the part `from..to` of the memory (the whole memory is `0.0..1.0`). The update daemon
    /// sweeps the memory part by part, and writes these blocks.
    pub(super) fn sweep(&self, from: f64, to: f64) -> Vec<u64> {
        if self.dirty == 0 {
            return Vec::new();
        }
        let at = |share: f64| ((self.capacity as f64 * share) as usize).min(self.slots.len());
        let dirty = self.slots[at(from)..at(to)].iter().filter(|s| s.is_dirty());
        dirty.map(|s| s.key).collect()
    }

    /// Dirty blocks that became dirty at `since` or earlier.
    pub(super) fn dirty_since(&self, since: SimTime) -> Vec<u64> {
        if self.dirty == 0 {
            return Vec::new();
        }
        let old = |s: &&Slot| s.is_dirty() && s.dirty <= since.as_nanos();
        self.slots.iter().filter(old).map(|s| s.key).collect()
    }

    fn pop_oldest(&mut self) -> Option<(u64, bool)> {
        let slot = self.oldest_slot()?;
        let entry = *self.slots.get(slot as usize)?;
        self.unmap(entry.key, slot);
        self.dirty -= usize::from(entry.is_dirty());
        self.unlink(slot);
        self.release(slot);
        Some((entry.key, entry.is_dirty()))
    }

    fn unmap(&mut self, key: u64, slot: u32) {
        if let Ok(entry) = self.map.find_entry(hash(key), |other| *other == slot) {
            entry.remove();
        }
    }

    fn release(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        (entry.key, entry.dirty) = (FREE, CLEAN);
        self.free.push(slot);
    }

    fn promote(&mut self, slot: u32) {
        self.moment += 1;
        let entry = &mut self.slots[slot as usize];
        entry.moment = self.moment;
        if entry.newer != IN_RUN && self.newest != slot {
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
        let Slot {
            key, newer, older, ..
        } = self.slots[slot as usize];
        if newer == IN_RUN {
            return self.runs.remove(key, slot);
        }
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
mod tests;
