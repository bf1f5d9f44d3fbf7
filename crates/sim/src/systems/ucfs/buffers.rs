//! The memory cache of UCFS: an LRU order that is divided into three parts, named hot, medium and cold.
//!
//! Rules: hot contains the files that clients requested. When hot exceeds its share, its oldest file moves to
//! medium. Medium contains prefetched and new files. A hit moves a file from any part to hot. When medium is
//! full, its most recent file moves up to hot and its oldest file moves down to cold. Cold contains files
//! that were not requested lately; files leave memory for the disk from cold.

use std::collections::{BTreeMap, BTreeSet};

use super::{UcfsConfig, tables::NONE};

/// A file in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) name: u64,
    pub(super) size: u64,
    pub(super) version: u32,
    pub(super) host: u32,
    /// A number in place of the path: the number of the object without its low 8 bits, because the files of a
    /// page have adjacent numbers.
    pub(super) path: u64,
    pub(super) page: bool,
    pub(super) count: u32,
    /// True if the file was prefetched by the read of another file and not requested since.
    pub(super) fetched: bool,
    pub(super) part: Part,
    pub(super) older: u32,
    pub(super) newer: u32,
    /// Position in cold: the number of bytes that had entered cold up to and including this file.
    pub(super) place: u64,
}

/// One of the three parts of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    #[default]
    Hot,
    Medium,
    Cold,
}

#[derive(Clone, Copy, Debug)]
struct List {
    oldest: u32,
    newest: u32,
    bytes: u64,
}

const EMPTY: List = List {
    oldest: NONE,
    newest: NONE,
    bytes: 0,
};

/// The files in memory, with their order in the three parts.
#[derive(Debug)]
pub(super) struct Buffers {
    slots: Vec<Held>,
    free: Vec<u32>,
    lists: [List; 2],
    most: [u64; 3],
    medium_up: bool,
    cold_bytes: u64,
    entered: u64,
    /// Cold files by age. `pages` contains the cold pages by age. `hosts` and `counts` contain the cold files
    /// by site or by number of requests, then by age.
    cold: BTreeMap<u64, u32>,
    pages: BTreeSet<(u64, u32)>,
    hosts: BTreeSet<(u32, u64, u32)>,
    counts: BTreeSet<(u32, u64, u32)>,
}

impl Buffers {
    pub(super) fn new(config: &UcfsConfig) -> Self {
        let share = |s: f64| (config.memory as f64 * s.clamp(0.0, 1.0)) as u64;
        let (hot, medium) = (share(config.hot), share(config.medium));
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            lists: [EMPTY; 2],
            most: [hot, medium, config.memory.saturating_sub(hot + medium)],
            medium_up: config.medium_up,
            cold_bytes: 0,
            entered: 0,
            cold: BTreeMap::new(),
            pages: BTreeSet::new(),
            hosts: BTreeSet::new(),
            counts: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, slot: u32) -> &Held {
        &self.slots[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Held {
        &mut self.slots[slot as usize]
    }

    pub(super) fn part(&self, slot: u32) -> Part {
        self.get(slot).part
    }

    /// Bytes of files in memory.
    pub(super) const fn used(&self) -> u64 {
        self.lists[0].bytes + self.lists[1].bytes + self.cold_bytes
    }

    /// Number of files in memory.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True if the cold buffer exceeds its share, or if all buffers together exceed memory.
    pub(super) fn over(&self) -> bool {
        let cold = !self.cold.is_empty();
        cold && (self.cold_bytes > self.most[2] || self.used() > self.most.iter().sum())
    }

    /// Adds a file as the most recent file of `part`.
    pub(super) fn add(&mut self, held: Held, part: Part) -> u32 {
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = held;
            slot
        } else {
            self.slots.push(held);
            (self.slots.len() - 1) as u32
        };
        self.link(slot, part);
        slot
    }

    /// Removes a file from memory.
    pub(super) fn remove(&mut self, slot: u32) -> Held {
        self.unlink(slot);
        self.free.push(slot);
        std::mem::take(self.get_mut(slot))
    }

    /// Counts a request for a file, which moves to hot from any part.
    pub(super) fn hit(&mut self, slot: u32) {
        self.unlink(slot);
        let held = self.get_mut(slot);
        held.count = held.count.saturating_add(1);
        self.link(slot, Part::Hot);
    }

    /// Reduces hot and medium to their shares.
    pub(super) fn settle(&mut self) {
        if self.medium_up && self.lists[1].bytes > self.most[1] {
            self.shift(self.lists[1].newest, Part::Hot);
        }
        while self.lists[0].bytes > self.most[0] {
            self.shift(self.lists[0].oldest, Part::Medium);
        }
        while self.lists[1].bytes > self.most[1] {
            self.shift(self.lists[1].oldest, Part::Cold);
        }
    }

    fn shift(&mut self, slot: u32, to: Part) {
        if slot != NONE {
            self.unlink(slot);
            self.link(slot, to);
        }
    }

    /// The file that leaves cold next. If `pages_first` is true and the older half of cold contains pages,
    /// this is the oldest page; otherwise it is the oldest file.
    pub(super) fn victim(&self, pages_first: bool) -> Option<u32> {
        let (oldest, slot) = self.cold.first_key_value()?;
        let page = self.pages.first();
        let older_half = |place: &u64| *place <= oldest + self.most[2] / 2;
        Some(match page {
            Some((place, page)) if pages_first && older_half(place) => *page,
            _ => *slot,
        })
    }

    /// The cold files, oldest first.
    pub(super) fn oldest(&self) -> impl Iterator<Item = u32> + '_ {
        self.cold.values().copied()
    }

    /// The cold files of a site in the older half, oldest first.
    pub(super) fn of_host(&self, host: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.half();
        let all = self.hosts.range((host, 0, 0)..=(host, end, NONE));
        all.map(|(_, _, slot)| *slot)
    }

    /// The cold files in the older half that were requested `count` times, oldest first.
    pub(super) fn of_count(&self, count: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.half();
        let all = self.counts.range((count, 0, 0)..=(count, end, NONE));
        all.map(|(_, _, slot)| *slot)
    }

    fn half(&self) -> u64 {
        self.cold
            .first_key_value()
            .map_or(0, |(oldest, _)| oldest + self.most[2] / 2)
    }

    fn link(&mut self, slot: u32, part: Part) {
        let size = self.get(slot).size;
        self.get_mut(slot).part = part;
        if part == Part::Cold {
            self.entered += size.max(1);
            self.cold_bytes += size;
            let place = self.entered;
            let held = self.get_mut(slot);
            held.place = place;
            let (page, host, count) = (held.page, held.host, held.count);
            self.cold.insert(place, slot);
            self.hosts.insert((host, place, slot));
            self.counts.insert((count, place, slot));
            if page {
                self.pages.insert((place, slot));
            }
            return;
        }
        let list = part as usize;
        let last = self.lists[list].newest;
        let held = self.get_mut(slot);
        (held.older, held.newer) = (last, NONE);
        match self.slots.get_mut(last as usize) {
            Some(last) => last.newer = slot,
            None => self.lists[list].oldest = slot,
        }
        self.lists[list].newest = slot;
        self.lists[list].bytes += size;
    }

    fn unlink(&mut self, slot: u32) {
        let held = self.get(slot);
        let (part, older, newer) = (held.part, held.older, held.newer);
        let (size, place) = (held.size, held.place);
        if part == Part::Cold {
            let (host, count) = (held.host, held.count);
            self.cold_bytes -= size;
            self.cold.remove(&place);
            self.hosts.remove(&(host, place, slot));
            self.counts.remove(&(count, place, slot));
            self.pages.remove(&(place, slot));
            return;
        }
        let list = part as usize;
        self.lists[list].bytes -= size;
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.lists[list].oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.lists[list].newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: u64, size: u64) -> Held {
        Held {
            name,
            size,
            ..Held::default()
        }
    }

    fn buffers(medium_up: bool) -> Buffers {
        Buffers::new(&UcfsConfig {
            medium_up,
            ..UcfsConfig::new(400)
        })
    }

    #[test]
    fn new_files_age_through_medium_to_cold_and_a_hit_makes_them_hot() {
        let mut memory = buffers(false);
        let slots: Vec<_> = (0..4u64)
            .map(|n| {
                let slot = memory.add(file(n, 50), Part::Medium);
                memory.settle();
                slot
            })
            .collect();
        let parts: Vec<_> = slots.iter().map(|s| memory.part(*s)).collect();
        assert_eq!(parts, [Part::Cold, Part::Cold, Part::Medium, Part::Medium]);
        memory.hit(slots[0]);
        assert_eq!(memory.part(slots[0]), Part::Hot);
        assert_eq!((memory.get(slots[0]).count, memory.used()), (1, 200));
        assert!(!memory.over());
    }

    #[test]
    fn a_full_medium_sends_its_newest_up_as_published() {
        let mut memory = buffers(true);
        let slots: Vec<_> = (0..3u64)
            .map(|n| {
                let slot = memory.add(file(n, 50), Part::Medium);
                memory.settle();
                slot
            })
            .collect();
        assert_eq!(memory.part(slots[2]), Part::Hot);
    }

    #[test]
    fn a_page_of_the_older_half_goes_first() {
        let mut memory = buffers(false);
        for n in 0..4u64 {
            let mut held = file(n, 20);
            (held.page, held.host) = (n == 2 || n == 3, n as u32 % 2);
            memory.add(held, Part::Cold);
        }
        assert_eq!(memory.victim(true), Some(2));
        assert_eq!(memory.victim(false), Some(0));
        assert_eq!(memory.of_host(0).collect::<Vec<_>>(), [0, 2]);
        memory.remove(2);
        assert_eq!(memory.of_host(0).collect::<Vec<_>>(), [0]);
        assert_eq!(memory.len(), 3);
    }
}
