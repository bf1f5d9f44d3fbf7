//! Removal of an address range whose keys are not known, in small steps.

use std::ops::Range;

use crate::shard::Shard;

/// An incremental removal of an address range; see [`crate::Index::sweep`]. Dropping it ends it
/// early: what was removed stays removed.
#[derive(Debug)]
pub struct Sweep<'a> {
    shards: &'a [Shard],
    units: Range<u64>,
    /// The line of `shards[0]` to look at next; 0 means that the shard was not begun.
    line: u32,
    removed: u64,
}

impl<'a> Sweep<'a> {
    pub(crate) const fn new(shards: &'a [Shard], units: Range<u64>) -> Self {
        Self {
            shards,
            units,
            line: 0,
            removed: 0,
        }
    }

    /// Looks at up to `lines` more cache lines (5 entries each; at least one, and never beyond
    /// the end of a shard); true when the whole table has been seen. A step of 1,024 lines holds
    /// one shard's lock for some 10 us; lookups do not wait for it.
    pub fn step(&mut self, lines: u32) -> bool {
        let Some((shard, rest)) = self.shards.split_first() else {
            return true;
        };
        if self.line == 0 {
            shard.condemn(&self.units);
        }
        let to = self.line.saturating_add(lines.max(1));
        match shard.sweep(&self.units, self.line, to) {
            Some(removed) => {
                self.removed += removed;
                self.line = to;
                false
            }
            None => {
                shard.acquit(&self.units);
                self.shards = rest;
                self.line = 0;
                rest.is_empty()
            }
        }
    }

    /// Runs to the end; returns the entries removed.
    pub fn run(mut self) -> u64 {
        while !self.step(1024) {}
        self.removed
    }

    /// Entries removed so far.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed
    }
}

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        if self.line > 0
            && let Some(shard) = self.shards.first()
        {
            shard.acquit(&self.units);
        }
    }
}
