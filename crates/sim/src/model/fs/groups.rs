//! Cylinder groups: the allocation of inodes, blocks and fragments.
//!
//! The rules are those of the fast file system (McKusick and others, 1984). An inode goes to its directory's
//! group. A directory goes to a group with few directories and many free inodes. The next block of a file
//! goes directly after its last block. A large file moves to a new group after each `max_per_group` blocks.
//! The tail of a file goes into free fragments of a block that is already broken up. If a group is full, some
//! further groups are tried, each 1, 2, 4, ... groups after the group that was tried before it. Then all
//! groups are tried.

use super::FsConfig;

/// Bytes of an inode on disk.
const INODE: u64 = 128;

#[derive(Clone, Debug)]
struct Group {
    /// For each data block, one bit for each used fragment.
    blocks: Vec<u8>,
    /// One bit for each block that is completely free, to find the next free block quickly.
    whole: Vec<u64>,
    free_blocks: u32,
    free_fragments: u32,
    /// Number of broken-up blocks by the length of their longest run of free fragments. A broken-up block has
    /// used and free fragments.
    runs: [u32; 8],
    /// For each length of a run of free fragments, the number of the block at which a search may start. No
    /// broken-up block with a smaller number has a run of this length or longer.
    first_run: [u32; 8],
    rotor: u32,
    inodes: Vec<u64>,
    free_inodes: u32,
    inode_rotor: u32,
    directories: u32,
}

/// All groups of a file system. Addresses are in fragments from the start of the partition.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    groups: Vec<Group>,
    /// Number of fragments in a block.
    per_block: u32,
    /// Number of fragments in a group.
    size: u32,
    /// First data fragment within a group.
    data: u32,
    /// First fragment of the inode blocks within a group.
    inode_start: u32,
    inodes: u32,
    inodes_per_block: u32,
    /// Number of fragments that must stay free.
    reserve: u64,
    free: u64,
}

/// Length of the longest run of free fragments in a block, indexed by the bit mask of the block's used
/// fragments. If blocks have fewer than 8 fragments, the bits of the missing fragments are set.
const LONGEST_RUN: [u8; 256] = {
    let mut runs = [0; 256];
    let mut used = 0;
    while used < 256 {
        let (mut run, mut bit) = (0, 0);
        while bit < 8 {
            run = if used >> bit & 1 == 0 { run + 1 } else { 0 };
            if run > runs[used] {
                runs[used] = run;
            }
            bit += 1;
        }
        used += 1;
    }
    runs
};

fn longest_run(used: u8) -> u32 {
    u32::from(LONGEST_RUN[used as usize])
}

impl Groups {
    /// Creates empty groups over `bytes` of space.
    pub(super) fn new(config: &FsConfig, bytes: u64) -> Self {
        let per_block = (config.block / config.fragment).clamp(1, 8) as u32;
        let fragment = config.block / u64::from(per_block);
        let bytes = bytes.min(u64::from(u32::MAX) * fragment);
        let group_bytes =
            (config.group / config.block * config.block).min(bytes.max(64 * config.block));
        let count = (bytes / group_bytes).max(1) as u32;
        let size = (group_bytes / fragment) as u32;
        let inodes_per_block = (config.block / INODE) as u32;
        let inode_blocks =
            (group_bytes / config.bytes_per_inode / u64::from(inodes_per_block)).max(1) as u32;
        let inode_start = 2 * per_block; // superblock copy and the group's own block
        let data = inode_start + inode_blocks * per_block;
        let blocks = (size.saturating_sub(data)) / per_block;
        let inodes = inode_blocks * inodes_per_block;
        let full = if per_block == 8 {
            0
        } else {
            !((1u8 << per_block) - 1)
        };
        let group = Group {
            blocks: vec![full; blocks as usize],
            whole: (0..blocks.div_ceil(64))
                .map(|word| u64::MAX >> (64 - (blocks - word * 64).min(64)))
                .collect(),
            free_blocks: blocks,
            free_fragments: 0,
            runs: [0; 8],
            first_run: [0; 8],
            rotor: 0,
            inodes: vec![0; (inodes / 64).max(1) as usize],
            free_inodes: inodes,
            inode_rotor: 0,
            directories: 0,
        };
        let free = u64::from(count) * u64::from(blocks) * u64::from(per_block);
        Self {
            groups: vec![group; count as usize],
            per_block,
            size,
            data,
            inode_start,
            inodes,
            inodes_per_block,
            reserve: (free as f64 * config.min_free) as u64,
            free,
        }
    }

    pub(super) const fn per_block(&self) -> u32 {
        self.per_block
    }

    /// Number of fragments that may still be allocated.
    pub(super) const fn available(&self) -> u64 {
        self.free.saturating_sub(self.reserve)
    }

    pub(super) const fn of_inode(&self, inode: u32) -> u32 {
        inode / self.inodes
    }

    pub(super) const fn of_address(&self, address: u32) -> u32 {
        address / self.size
    }

    /// Address of the block that contains an inode.
    pub(super) const fn inode_block(&self, inode: u32) -> u32 {
        let within = inode % self.inodes / self.inodes_per_block;
        inode / self.inodes * self.size + self.inode_start + within * self.per_block
    }

    /// Address of the block that contains a group's free maps.
    pub(super) const fn map_block(&self, group: u32) -> u32 {
        group * self.size + self.per_block
    }

    /// Address of a group's first data block.
    pub(super) const fn first_data(&self, group: u32) -> u32 {
        group * self.size + self.data
    }

    /// Allocates a free inode near `group`.
    pub(super) fn allocate_inode(&mut self, group: u32) -> Option<u32> {
        let group = self.hunt(group, |g| g.free_inodes > 0)?;
        let entry = &mut self.groups[group as usize];
        let words = entry.inodes.len() as u32;
        let start = entry.inode_rotor / 64;
        let found = (0..words)
            .map(|i| (start + i) % words)
            .find(|w| entry.inodes[*w as usize] != u64::MAX)?;
        let bit = entry.inodes[found as usize].trailing_ones();
        entry.inodes[found as usize] |= 1 << bit;
        entry.free_inodes -= 1;
        entry.inode_rotor = found * 64 + bit;
        Some(group * self.inodes + found * 64 + bit)
    }

    pub(super) fn free_inode(&mut self, inode: u32) {
        let entry = &mut self.groups[(inode / self.inodes) as usize];
        let within = inode % self.inodes;
        entry.inodes[(within / 64) as usize] &= !(1 << (within % 64));
        entry.free_inodes += 1;
        entry.inode_rotor = entry.inode_rotor.min(within);
    }

    /// Chooses the group for a new directory. Of the groups with at least the mean number of free inodes,
    /// this is the group with the fewest directories.
    pub(super) fn group_for_directory(&mut self) -> u32 {
        let total: u64 = self.groups.iter().map(|g| u64::from(g.free_inodes)).sum();
        let mean = total / self.groups.len().max(1) as u64;
        let roomy = |g: &Group| u64::from(g.free_inodes) >= mean;
        let best = (0..self.groups.len())
            .filter(|i| roomy(&self.groups[*i]))
            .min_by_key(|i| self.groups[*i].directories);
        let best = best.unwrap_or(0);
        self.groups[best].directories += 1;
        best as u32
    }

    /// The group in which a large file continues after `group`.
    pub(super) fn next_group(&self, group: u32) -> u32 {
        let count = self.groups.len() as u32;
        let total: u64 = self.groups.iter().map(|g| u64::from(g.free_blocks)).sum();
        let mean = total / u64::from(count.max(1));
        let roomy = |g: &u32| u64::from(self.groups[*g as usize].free_blocks) >= mean;
        (1..=count)
            .map(|i| (group + i) % count)
            .find(roomy)
            .unwrap_or(group)
    }

    /// Allocates a whole block, at `preferred` if that block is free.
    pub(super) fn allocate_block(&mut self, preferred: u32) -> Option<u32> {
        if self.available() < u64::from(self.per_block) {
            return None;
        }
        let wanted = preferred / self.size;
        let group = self.hunt(wanted, |g| g.free_blocks > 0)?;
        let within = preferred % self.size;
        let near =
            (group == wanted && within >= self.data).then(|| (within - self.data) / self.per_block);
        let start = near.unwrap_or(self.groups[group as usize].rotor);
        let index = self.find_block(group, start)?;
        self.groups[group as usize].rotor = index;
        self.mark(group, index, 0, self.per_block, true);
        Some(self.address(group, index))
    }

    /// Allocates `count` fragments (fewer than a block has) of one block near `preferred`.
    pub(super) fn allocate_fragments(&mut self, preferred: u32, count: u32) -> Option<u32> {
        if count >= self.per_block {
            return self.allocate_block(preferred);
        }
        if self.available() < u64::from(count) {
            return None;
        }
        let fits = |g: &Group| g.free_blocks > 0 || g.runs[count as usize..].iter().any(|n| *n > 0);
        let group = self.hunt(preferred / self.size, fits)?;
        let entry = &self.groups[group as usize];
        let broken = entry.runs[count as usize..].iter().any(|n| *n > 0);
        let index = if broken {
            self.find_run(group, count)?
        } else {
            self.find_block(group, entry.rotor)?
        };
        let offset = self.run_offset(group, index, count)?;
        self.mark(group, index, offset, count, true);
        Some(self.address(group, index) + offset)
    }

    /// Extends the `old` fragments at `address` in place to `new` fragments, if the fragments after them are
    /// free.
    pub(super) fn extend(&mut self, address: u32, old: u32, new: u32) -> bool {
        let (group, index, offset) = self.place(address);
        let more = new - old;
        let bits = ((1u32 << more) - 1) << (offset + old);
        let used = u32::from(self.groups[group as usize].blocks[index as usize]);
        if offset + new > self.per_block || used & bits != 0 || self.available() < u64::from(more) {
            return false;
        }
        self.mark(group, index, offset + old, more, true);
        true
    }

    /// Frees `count` fragments at `address`.
    pub(super) fn free(&mut self, address: u32, count: u32) {
        let (group, index, offset) = self.place(address);
        self.mark(group, index, offset, count, false);
    }

    const fn address(&self, group: u32, index: u32) -> u32 {
        group * self.size + self.data + index * self.per_block
    }

    const fn place(&self, address: u32) -> (u32, u32, u32) {
        let within = address % self.size - self.data;
        (
            address / self.size,
            within / self.per_block,
            within % self.per_block,
        )
    }

    /// Finds a group for which `fits` is true. Tries first the wanted group, then groups at growing distances
    /// (a quadratic rehash), then all groups.
    fn hunt(&self, wanted: u32, fits: impl Fn(&Group) -> bool) -> Option<u32> {
        let count = self.groups.len() as u32;
        let wanted = wanted.min(count - 1);
        let mut jumps =
            std::iter::successors(Some(1u32), |i| i.checked_mul(2)).take_while(|i| *i < count);
        let mut at = wanted;
        if fits(&self.groups[at as usize]) {
            return Some(at);
        }
        jumps
            .find_map(|jump| {
                at = (at + jump) % count;
                fits(&self.groups[at as usize]).then_some(at)
            })
            .or_else(|| {
                (1..count)
                    .map(|i| (wanted + i) % count)
                    .find(|g| fits(&self.groups[*g as usize]))
            })
    }

    fn find_block(&self, group: u32, start: u32) -> Option<u32> {
        let whole = &self.groups[group as usize].whole;
        let words = whole.len();
        let start = start.min(self.groups[group as usize].blocks.len() as u32 - 1);
        let first = (start / 64) as usize;
        let ahead = whole[first] & (u64::MAX << (start % 64));
        let rest = (1..=words)
            .map(|i| (first + i) % words)
            .map(|word| (word, whole[word]));
        let (word, bits) = std::iter::once((first, ahead))
            .chain(rest)
            .find(|(_, bits)| *bits != 0)?;
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    fn find_run(&mut self, group: u32, count: u32) -> Option<u32> {
        let empty = self.empty();
        let Group {
            blocks, first_run, ..
        } = &mut self.groups[group as usize];
        let from = first_run[count as usize];
        let fit = |b: &u8| *b != empty && longest_run(*b) >= count;
        let found = from + blocks[from as usize..].iter().position(fit)? as u32;
        first_run[count as usize] = found;
        Some(found)
    }

    fn run_offset(&self, group: u32, index: u32, count: u32) -> Option<u32> {
        let used = u32::from(self.groups[group as usize].blocks[index as usize]);
        let bits = (1u32 << count) - 1;
        (0..=self.per_block - count).find(|offset| used & (bits << offset) == 0)
    }

    /// Mask of a block without used fragments.
    const fn empty(&self) -> u8 {
        if self.per_block == 8 {
            0
        } else {
            !((1u8 << self.per_block) - 1)
        }
    }

    fn mark(&mut self, group: u32, index: u32, offset: u32, count: u32, used: bool) {
        let empty = self.empty();
        let entry = &mut self.groups[group as usize];
        let bits = (((1u32 << count) - 1) << offset) as u8;
        let old = entry.blocks[index as usize];
        debug_assert_eq!(
            old & bits,
            if used { 0 } else { bits },
            "allocated twice or freed twice"
        );
        let new = if used { old | bits } else { old & !bits };
        entry.blocks[index as usize] = new;
        let (word, bit) = ((index / 64) as usize, 1u64 << (index % 64));
        entry.whole[word] = if new == empty {
            entry.whole[word] | bit
        } else {
            entry.whole[word] & !bit
        };
        let sum = |mask: u8| {
            if mask == empty {
                (1, 0, 0)
            } else {
                (0, mask.count_zeros(), longest_run(mask))
            }
        };
        let ((blocks_before, free_before, run_before), (blocks_after, free_after, run_after)) =
            (sum(old), sum(new));
        entry.free_blocks = entry.free_blocks + blocks_after - blocks_before;
        entry.free_fragments = entry.free_fragments + free_after - free_before;
        if run_before > 0 {
            entry.runs[run_before as usize] -= 1;
        }
        if run_after > 0 {
            entry.runs[run_after as usize] += 1;
            for first in &mut entry.first_run[..=run_after as usize] {
                *first = index.min(*first);
            }
        }
        self.free = if used {
            self.free - u64::from(count)
        } else {
            self.free + u64::from(count)
        };
    }
}

#[cfg(test)]
mod tests;
