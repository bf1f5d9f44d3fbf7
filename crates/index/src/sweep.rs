//! Removal of all entries in an address range, in small steps. The caller need not know the keys of these
//! entries.

use std::ops::Range;

use crate::shard::Shard;

/// An incremental removal of an address range; see [`crate::Index::sweep`]. Dropping this value
/// ends the sweep early; removed entries stay removed.
#[derive(Debug)]
pub struct Sweep<'a> {
    shards: &'a [Shard],
    sectors: Range<u64>,
    /// The next bucket of `shards[0]` to sweep; 0 means that the sweep of this shard has not begun.
    bucket: u32,
    removed: u64,
}

impl<'a> Sweep<'a> {
    pub(crate) const fn new(shards: &'a [Shard], sectors: Range<u64>) -> Self {
        Self {
            shards,
            sectors,
            bucket: 0,
            removed: 0,
        }
    }

    /// Sweeps up to `buckets` further buckets: at least one, and never beyond the end of a shard. A bucket
    /// contains up to 5 entries. Returns true when the whole table has been swept. A step of 1,024 buckets
    /// holds one shard's lock for about 10 us; lookups do not wait for this lock.
    pub fn step(&mut self, buckets: u32) -> bool {
        let Some((shard, rest)) = self.shards.split_first() else {
            return true;
        };
        if self.bucket == 0 {
            shard.condemn(&self.sectors);
        }
        let to = self.bucket.saturating_add(buckets.max(1));
        match shard.sweep(&self.sectors, self.bucket, to) {
            Some(removed) => {
                self.removed += removed;
                self.bucket = to;
                false
            }
            None => {
                shard.acquit(&self.sectors);
                self.shards = rest;
                self.bucket = 0;
                rest.is_empty()
            }
        }
    }

    /// Sweeps to the end. Returns the number of removed entries.
    pub fn run(mut self) -> u64 {
        while !self.step(1024) {}
        self.removed
    }

    /// Number of entries removed so far.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed
    }
}

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        if self.bucket > 0
            && let Some(shard) = self.shards.first()
        {
            shard.acquit(&self.sectors);
        }
    }
}
