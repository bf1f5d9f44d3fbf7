//! Pages of directories, which are touched in long runs from the first page on. A run is one entry,
//! so that a scan costs the same however long the directory is. When a page was last touched is
//! computed on demand.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use crate::model::hash::BuildIdHasher;

/// The pages of one directory.
#[derive(Clone, Debug, Default)]
struct Run {
    /// Pages in memory, and the page after the last one that was ever in memory.
    held: u64,
    end: u64,
    /// Moment and length of the scans that no later, longer scan covers; oldest and longest first.
    scans: Vec<(u64, u64)>,
}

/// Directories by number, and their pages by age.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    runs: HashMap<u32, Run, BuildIdHasher>,
    /// Slots by the moment they were touched, or by an earlier one if they were touched again.
    order: BinaryHeap<Reverse<(u64, u32)>>,
}

const fn split(key: u64) -> (u32, u64) {
    ((key >> 32) as u32, key & 0xffff_ffff)
}

impl Runs {
    /// The page came into memory.
    pub(super) fn add(&mut self, key: u64, slot: u32, moment: u64) {
        let (owner, page) = split(key);
        let run = self.runs.entry(owner).or_default();
        run.held += 1;
        run.end = run.end.max(page + 1);
        self.order.push(Reverse((moment, slot)));
    }

    /// The page left memory.
    pub(super) fn remove(&mut self, key: u64, slot: u32) {
        if let Some(run) = self.runs.get_mut(&split(key).0) {
            run.held -= 1;
        }
        match self.order.peek() {
            Some(Reverse((_, first))) if *first == slot => drop(self.order.pop()),
            _ => self.order.retain(|Reverse((_, other))| *other != slot),
        }
    }

    /// Touches the first `count` pages, one in each moment from `moment` on, if all pages of the
    /// directory are in memory; otherwise does nothing and says so.
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

    /// When a scan last touched the page; 0 if none did.
    fn scanned(&self, key: u64) -> u64 {
        let (owner, page) = split(key);
        let Some(run) = self.runs.get(&owner) else {
            return 0;
        };
        let covering = run.scans.partition_point(|(_, pages)| *pages > page);
        let last = covering.checked_sub(1).and_then(|at| run.scans.get(at));
        last.map_or(0, |(moment, _)| moment + page)
    }

    /// The slot touched longest ago, if that was not after `moment`. The function `slot` gives a slot's
    /// key and the moment at which it was last touched on its own.
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
