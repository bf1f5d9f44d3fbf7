//! Pages of directories in the page cache. A scan of a directory touches its pages in order, from the first
//! page on. So the pages of a directory are kept as one entry (`Run`), and the simulator's work for a scan
//! does not depend on the length of the directory. The time of a page's last touch is computed when it is
//! needed.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use crate::model::hash::BuildIdHasher;

/// The pages of one directory.
#[derive(Clone, Debug, Default)]
struct Run {
    /// Number of pages in memory. `end` is the page after the last page that was ever in memory.
    held: u64,
    end: u64,
    /// Moment and length of each scan, oldest first. A moment is a value of the cache's touch counter, which
    /// counts the touches of all blocks. When a scan is added, all earlier scans that are not longer are
    /// removed. So the oldest scan is also the longest.
    scans: Vec<(u64, u64)>,
}

/// The runs by the number of their directory, and the slots of all pages in the runs by age.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    runs: HashMap<u32, Run, BuildIdHasher>,
    /// Slots by the moment at which they were touched. The moment may be too early, because a later touch of
    /// the slot does not change this entry.
    order: BinaryHeap<Reverse<(u64, u32)>>,
}

const fn split(key: u64) -> (u32, u64) {
    ((key >> 32) as u32, key & 0xffff_ffff)
}

impl Runs {
    /// Records that the page is now in memory.
    pub(super) fn add(&mut self, key: u64, slot: u32, moment: u64) {
        let (owner, page) = split(key);
        let run = self.runs.entry(owner).or_default();
        run.held += 1;
        run.end = run.end.max(page + 1);
        self.order.push(Reverse((moment, slot)));
    }

    /// Records that the page has left memory.
    pub(super) fn remove(&mut self, key: u64, slot: u32) {
        if let Some(run) = self.runs.get_mut(&split(key).0) {
            run.held -= 1;
        }
        match self.order.peek() {
            Some(Reverse((_, first))) if *first == slot => drop(self.order.pop()),
            _ => self.order.retain(|Reverse((_, other))| *other != slot),
        }
    }

    /// Touches the first `count` pages in order, if all pages of the directory are in memory. The first page
    /// is touched at the moment `moment`, and each further page one moment later. If a page is absent, does
    /// nothing and returns false.
    pub(super) fn scan(&mut self, owner: u32, count: u64, moment: u64) -> bool {
        let Some(run) = self.runs.get_mut(&owner) else {
            return false;
        };
        if run.held != run.end || count > run.end {
            return false;
        }
        while run.scans.last().is_some_and(|(_, pages)| *pages <= count) {
            run.scans.pop();
        }
        run.scans.push((moment, count));
        true
    }

    /// Moment at which a scan last touched the page; 0 if no scan touched it.
    fn scanned(&self, key: u64) -> u64 {
        let (owner, page) = split(key);
        let Some(run) = self.runs.get(&owner) else {
            return 0;
        };
        let covering = run.scans.partition_point(|(_, pages)| *pages > page);
        let last = covering.checked_sub(1).and_then(|at| run.scans.get(at));
        last.map_or(0, |(moment, _)| moment + page)
    }

    /// The least recently used slot, if it was last touched at or before `moment`. The function `slot`
    /// returns a slot's key and the moment of its last touch by a call other than `scan`.
    pub(super) fn oldest(
        &mut self,
        moment: u64,
        slot: impl Fn(u32) -> Option<(u64, u64)>,
    ) -> Option<u32> {
        loop {
            let Reverse((known, first)) = *self.order.peek()?;
            if known > moment {
                return None;
            }
            let (key, own) = slot(first)?;
            let touched = own.max(self.scanned(key));
            if touched == known {
                return Some(first);
            }
            self.order.pop();
            self.order.push(Reverse((touched, first)));
        }
    }
}
