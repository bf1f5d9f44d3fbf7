//! Files and directories in memory: the addresses of their blocks, and their last accesses.

use std::{cmp::Reverse, collections::BinaryHeap, collections::HashMap};

use super::{FsConfig, FsError, groups::Groups};
use crate::model::hash::BuildIdHasher;

/// Number of blocks that the inode itself points to.
const DIRECT: u64 = 12;
/// Bytes of a block pointer.
const POINTER: u64 = 4;

/// A directory's entries, and their places. The place of an entry is its position among the entries in the
/// directory's blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    entries: HashMap<u64, (u32, u32), BuildIdHasher>,
    free: BinaryHeap<Reverse<u32>>,
    end: u32,
}

impl Directory {
    /// Returns the place of a name, and the inode slot of its file.
    pub(super) fn find(&self, name: u64) -> Option<(u32, u32)> {
        self.entries.get(&name).copied()
    }

    /// Number of places that are in use or freed: a scan of the whole directory checks all of them.
    pub(super) const fn places(&self) -> u32 {
        self.end
    }

    /// Place of the next name: the first free place.
    pub(super) fn next_place(&self) -> u32 {
        self.free.peek().map_or(self.end, |Reverse(place)| *place)
    }

    pub(super) fn add(&mut self, name: u64, slot: u32) {
        let place = self.free.pop().map_or(self.end, |Reverse(place)| place);
        self.end = self.end.max(place + 1);
        self.entries.insert(name, (place, slot));
    }

    pub(super) fn remove(&mut self, name: u64) {
        if let Some((place, _)) = self.entries.remove(&name) {
            self.free.push(Reverse(place));
        }
    }
}

/// An inode.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    /// Number of the inode on disk.
    pub(super) number: u32,
    pub(super) size: u64,
    /// Address of each block. The last block may be only a few fragments.
    pub(super) blocks: Vec<u32>,
    /// Number of fragments of the last block.
    pub(super) tail: u32,
    /// Indirect blocks: first the single indirect block, then the root of the double indirect blocks, then
    /// the blocks to which that root points.
    pub(super) indirect: Vec<u32>,
    pub(super) directory: Option<Box<Directory>>,
    /// The page after the last page that was read. `streak` is the number of pages read in a row.
    pub(super) next_read: u64,
    pub(super) streak: u32,
    /// Pages that are collected for the next cluster write: first page and count.
    pub(super) gathered: (u64, u64),
    pub(super) opens: u32,
    /// True if the inode differs from its block on disk.
    pub(super) dirty: bool,
    pub(super) live: bool,
    pub(super) generation: u8,
}

impl Inode {
    /// Number of fragments of page `page`.
    pub(super) fn fragments(&self, page: u64, per_block: u32) -> u32 {
        if page + 1 == self.blocks.len() as u64 {
            self.tail
        } else {
            per_block
        }
    }

    /// The indirect blocks that lead to a block of the file, as indices of `indirect`.
    pub(super) fn way(&self, page: u64, block: u64) -> (Option<usize>, Option<usize>) {
        if page < DIRECT {
            return (None, None);
        }
        match (page - DIRECT) / (block / POINTER) {
            0 => (Some(0), None),
            n => (Some(1), Some(n as usize + 1)),
        }
    }

    /// True if the blocks of `page` and `page + 1` are adjacent on disk.
    pub(super) fn adjacent(&self, page: u64, per_block: u32) -> bool {
        let at = |p: u64| self.blocks.get(p as usize).copied();
        matches!((at(page), at(page + 1)), (Some(a), Some(b)) if b == a + per_block)
    }

    /// Allocates everything that `size` bytes need, or nothing. New indirect blocks are appended to
    /// `indirect`; the groups in which space was allocated are appended to `touched`.
    pub(super) fn grow(
        &mut self,
        size: u64,
        groups: &mut Groups,
        config: &FsConfig,
        touched: &mut Vec<u32>,
    ) -> Result<(), FsError> {
        let (blocks, indirect) = (self.blocks.len(), self.indirect.len());
        let wanted = size.div_ceil(config.block).saturating_sub(blocks as u64);
        // Sizes that cannot fit are refused here. Otherwise `add_blocks` would fill the disk before it
        // failed.
        let fragments = wanted
            .saturating_sub(1)
            .saturating_mul(u64::from(groups.per_block()));
        if fragments > groups.available() {
            return Err(FsError::NoSpace);
        }
        let grown = self.add_blocks(size, groups, config, touched);
        if grown.is_err() {
            self.shrink(blocks, indirect, groups);
        }
        grown
    }

    /// Frees all blocks after the first `blocks` blocks, and all indirect blocks after the
    /// first `indirect` ones.
    fn shrink(&mut self, blocks: usize, indirect: usize, groups: &mut Groups) {
        let per_block = groups.per_block();
        while self.blocks.len() > blocks {
            let Some(address) = self.blocks.pop() else {
                break;
            };
            groups.free(address, self.tail);
            self.tail = per_block;
        }
        while self.indirect.len() > indirect {
            let Some(address) = self.indirect.pop() else {
                break;
            };
            groups.free(address, per_block);
        }
    }

    fn add_blocks(
        &mut self,
        size: u64,
        groups: &mut Groups,
        config: &FsConfig,
        touched: &mut Vec<u32>,
    ) -> Result<(), FsError> {
        let per_block = groups.per_block();
        let wanted = size.div_ceil(config.block);
        let fragment = config.block / u64::from(per_block);
        let tail = if wanted > DIRECT || size.is_multiple_of(config.block) {
            per_block
        } else {
            (size % config.block).div_ceil(fragment) as u32
        };
        let have = self.blocks.len() as u64;
        if have > 0 && have <= wanted && self.tail < per_block {
            let new = if have == wanted {
                tail.max(self.tail)
            } else {
                per_block
            };
            self.lengthen_tail(new, groups, touched)?;
        }
        for page in have..wanted {
            self.add_indirect(page, groups, config, touched)?;
            let fragments = if page + 1 == wanted { tail } else { per_block };
            let address = groups
                .allocate_fragments(self.preferred(page, groups, config), fragments)
                .ok_or(FsError::NoSpace)?;
            touched.push(groups.of_address(address));
            self.blocks.push(address);
            self.tail = fragments;
        }
        Ok(())
    }

    fn lengthen_tail(
        &mut self,
        new: u32,
        groups: &mut Groups,
        touched: &mut Vec<u32>,
    ) -> Result<(), FsError> {
        let Some(&old) = self.blocks.last() else {
            return Ok(());
        };
        if new == self.tail {
            return Ok(());
        }
        if !groups.extend(old, self.tail, new) {
            let moved = groups
                .allocate_fragments(old, new)
                .ok_or(FsError::NoSpace)?;
            groups.free(old, self.tail);
            touched.push(groups.of_address(moved));
            if let Some(last) = self.blocks.last_mut() {
                *last = moved;
            }
        }
        touched.push(groups.of_address(old));
        self.tail = new;
        Ok(())
    }

    fn preferred(&self, page: u64, groups: &Groups, config: &FsConfig) -> u32 {
        let home = groups.of_inode(self.number);
        match self.blocks.last() {
            Some(last) if page.is_multiple_of(config.max_per_group) => {
                groups.first_data(groups.next_group(groups.of_address(*last)))
            }
            Some(last) => last + groups.per_block(),
            None => groups.first_data(home),
        }
    }

    fn add_indirect(
        &mut self,
        page: u64,
        groups: &mut Groups,
        config: &FsConfig,
        touched: &mut Vec<u32>,
    ) -> Result<(), FsError> {
        let (first, second) = self.way(page, config.block);
        let needed = second.or(first).map_or(0, |place| place + 1);
        while self.indirect.len() < needed {
            let near = self
                .blocks
                .last()
                .map_or(0, |last| last + groups.per_block());
            let address = groups.allocate_block(near).ok_or(FsError::NoSpace)?;
            touched.push(groups.of_address(address));
            self.indirect.push(address);
        }
        Ok(())
    }

    /// Frees all blocks.
    pub(super) fn release(&mut self, groups: &mut Groups, touched: &mut Vec<u32>) {
        let per_block = groups.per_block();
        let last = self.blocks.len();
        for (i, address) in self.blocks.drain(..).enumerate() {
            groups.free(address, if i + 1 == last { self.tail } else { per_block });
            touched.push(groups.of_address(address));
        }
        for address in self.indirect.drain(..) {
            groups.free(address, per_block);
            touched.push(groups.of_address(address));
        }
        (self.size, self.tail) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_grow_by_fragments_then_blocks_then_indirect_blocks() {
        let config = FsConfig {
            min_free: 0.0,
            ..FsConfig::ufs(1 << 20)
        };
        let mut groups = Groups::new(&config, 64 << 20);
        let all = groups.available();
        let mut file = Inode::default();
        let mut touched = Vec::new();
        for (size, fragments) in [
            (1u64, 1u64),
            (1_025, 2),
            (8_192, 8),
            (10_240, 10),
            (98_304, 96),
            (98_305, 112),
        ] {
            file.grow(size, &mut groups, &config, &mut touched).unwrap();
            // The last size needs 13 data blocks and one indirect block.
            assert_eq!(all - groups.available(), fragments, "{size}");
        }
        assert!((0..10).all(|page| file.adjacent(page, 8)));
        assert_eq!(file.way(11, 8_192), (None, None));
        assert_eq!(file.way(12, 8_192), (Some(0), None));
        assert_eq!(file.way(12 + 2_048, 8_192), (Some(1), Some(2)));
        file.release(&mut groups, &mut touched);
        assert_eq!(groups.available(), all);
    }

    #[test]
    fn growth_that_fails_half_way_gives_everything_back() {
        let config = FsConfig {
            min_free: 0.0,
            ..FsConfig::ufs(1 << 20)
        };
        let mut groups = Groups::new(&config, 20 << 20);
        let blocks: Vec<_> = std::iter::from_fn(|| groups.allocate_block(0)).collect();
        // Half of each block is free, but only one block is completely free.
        blocks.iter().for_each(|at| groups.free(*at, 4));
        groups.free(blocks[9] + 4, 4);
        let free = groups.available();
        let mut file = Inode::default();
        let grown = file.grow(3 * 8_192, &mut groups, &config, &mut Vec::new());
        assert_eq!(grown, Err(FsError::NoSpace));
        assert_eq!((groups.available(), file.blocks.len()), (free, 0));
        assert_eq!(groups.allocate_block(0), Some(blocks[9]));
    }

    #[test]
    fn names_take_the_first_free_place() {
        let mut directory = Directory::default();
        for name in 0..5 {
            directory.add(name, name as u32);
        }
        directory.remove(3);
        directory.remove(1);
        assert_eq!(directory.next_place(), 1);
        directory.add(9, 9);
        assert_eq!((directory.find(9), directory.find(1)), (Some((1, 9)), None));
        assert_eq!((directory.next_place(), directory.places()), (3, 5));
    }
}
