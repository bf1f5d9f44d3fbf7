//! Names: directories, the name cache, creating and deleting.

use super::{
    FileId, FsError, IoKind, Metadata, Ufs,
    inode::{Directory, Inode},
};
use crate::model::Op;

impl Ufs {
    const fn name_key(dir: u32, name: u64) -> u64 {
        name.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
            ^ (dir as u64).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// Returns the inode slot of a handle. A handle of a deleted file is refused, even if another file uses
    /// the same slot now, because the handle contains the slot's earlier generation.
    pub(super) fn live(&self, file: FileId) -> Result<u32, FsError> {
        let (slot, generation) = (file.0 & 0x00ff_ffff, (file.0 >> 24) as u8);
        match self.inodes.get(slot as usize) {
            Some(inode) if inode.live && inode.generation == generation => Ok(slot),
            _ => Err(FsError::NotFound),
        }
    }

    pub(super) fn handle(&self, slot: u32) -> FileId {
        FileId(u32::from(self.inodes[slot as usize].generation) << 24 | slot)
    }

    pub(super) fn is_directory(&self, slot: u32) -> bool {
        self.inodes[slot as usize].directory.is_some()
    }

    fn directory(&self, dir: u32) -> Result<&Directory, FsError> {
        let inode = self.inodes.get(dir as usize).ok_or(FsError::NotFound)?;
        inode.directory.as_deref().ok_or(FsError::NotFound)
    }

    /// Reads the entries `0..places` of a directory in order, `times` times. A journalled file system keeps
    /// names in a tree, so its scan reads only the block (leaf) of the last entry.
    fn scan(&mut self, dir: u32, places: u32, times: u64) {
        let per_page = (self.config.block / self.config.name_bytes).max(1);
        let last = u64::from(places.saturating_sub(1)) / per_page;
        let tree = self.config.metadata == Metadata::Journal;
        let first = if tree { last } else { 0 };
        let pages = self.inodes[dir as usize].blocks.len() as u64;
        let looked = if tree {
            u64::from(places).min(per_page)
        } else {
            u64::from(places)
        };
        let end = (last + 1).min(pages);
        for time in 1..=times {
            let all_there = self.have_pages(dir, first, end);
            self.cpu(self.config.entry_cpu * looked);
            if all_there && time < times {
                let left = times - time;
                self.counters.page_hits += left * end.saturating_sub(first);
                return self.cpu(self.config.entry_cpu * (looked * left));
            }
        }
    }

    /// Place and inode slot of a name, from the name cache or from a scan of the directory.
    pub(super) fn lookup(&mut self, dir: u32, name: u64) -> Result<(u32, u32), FsError> {
        let entries = self.directory(dir)?;
        let (found, places) = (entries.find(name), entries.places());
        let key = Self::name_key(dir, name);
        if self.names.touch(key) && found.is_some() {
            self.counters.name_hits += 1;
        } else {
            self.counters.name_misses += 1;
            self.scan(dir, found.map_or(places, |(place, _)| place + 1), 1);
            if found.is_some() {
                self.names.insert(key);
            }
        }
        found.ok_or(FsError::NotFound)
    }

    /// Makes sure that the inode is in memory. If this evicts another inode, the evicted inode is copied to
    /// its block.
    pub(super) fn have_inode(&mut self, slot: u32) {
        if self.core.touch(u64::from(slot)) {
            return;
        }
        let block = self.groups.inode_block(self.inodes[slot as usize].number);
        self.have_block(IoKind::Inode, block);
        if let Some((victim, _)) = self.core.insert(u64::from(slot)) {
            self.settle_inode(victim as u32);
        }
    }

    /// Records that the inode in memory differs from its copy in the inode block.
    pub(super) fn dirty_inode(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.inodes[slot as usize].dirty, true) {
            self.dirty_inodes.push(slot);
        }
    }

    /// Copies a changed inode into its inode block.
    pub(super) fn settle_inode(&mut self, slot: u32) {
        if std::mem::take(&mut self.inodes[slot as usize].dirty) {
            let block = self.groups.inode_block(self.inodes[slot as usize].number);
            self.dirty_block(IoKind::Inode, block);
        }
    }

    /// Writes the directory block that contains the entry at `place`. With synchronous metadata the process
    /// waits for this write, otherwise the block becomes dirty and is written later.
    fn write_entry(&mut self, dir: u32, place: u32) {
        let per_page = (self.config.block / self.config.name_bytes).max(1);
        let page = u64::from(place) / per_page;
        self.have_page(dir, page);
        let key = Self::page_key(dir, page);
        if self.config.metadata == Metadata::Sync {
            let per_block = self.groups.per_block();
            let inode = &self.inodes[dir as usize];
            let bytes = u64::from(inode.fragments(page, per_block)) * self.config.fragment;
            if let Some(&address) = inode.blocks.get(page as usize) {
                self.wait_io(IoKind::Directory, Op::Write, address, bytes);
                self.cpu(self.config.sync_cpu);
            }
            self.pages.set_clean(key);
            if self.config.sync_directory_inode {
                return self.write_inode(dir);
            }
        } else {
            self.pages.set_dirty(key, self.now);
        }
        self.dirty_inode(dir);
    }

    /// Writes an inode. With synchronous metadata the process waits for this write. With a journal the change
    /// goes to the log, otherwise the block becomes dirty and is written later.
    fn write_inode(&mut self, slot: u32) {
        let block = self.groups.inode_block(self.inodes[slot as usize].number);
        match self.config.metadata {
            Metadata::Sync => {
                self.inodes[slot as usize].dirty = false;
                self.write_block(IoKind::Inode, block);
            }
            Metadata::Journal => self.log_change(true),
            _ => self.dirty_block(IoKind::Inode, block),
        }
    }

    /// Writes the inode of a deleted file. The inode no longer points to the file's blocks, so that they can
    /// be allocated to other files. If a kernel thread frees the blocks, the process does not wait for this
    /// write, but the drive is still busy with it.
    fn write_emptied(&mut self, slot: u32) {
        if self.config.metadata != Metadata::Sync || !self.config.frees_behind {
            return self.write_inode(slot);
        }
        let block = self.groups.inode_block(self.inodes[slot as usize].number);
        self.have_block(IoKind::Inode, block);
        self.send_io(
            IoKind::Inode,
            Op::Write,
            block,
            self.config.block,
            super::device::METADATA_OWNER,
        );
    }

    /// Allocates an inode near `group` and returns its slot; nothing is written yet.
    fn new_inode(&mut self, group: u32, directory: bool) -> Result<u32, FsError> {
        let number = self.groups.allocate_inode(group).ok_or(FsError::NoSpace)?;
        let slot = match self.free_slots.pop() {
            Some(slot) => slot,
            None => {
                self.inodes.push(Inode::default());
                (self.inodes.len() - 1) as u32
            }
        };
        if slot > 0x00ff_ffff {
            self.groups.free_inode(number);
            return Err(FsError::NoSpace);
        }
        let old = &mut self.inodes[slot as usize];
        let generation = old.generation.wrapping_add(1);
        // The lists of a freed inode are empty; the new inode reuses their memory.
        let (blocks, indirect) = (
            std::mem::take(&mut old.blocks),
            std::mem::take(&mut old.indirect),
        );
        *old = Inode {
            number,
            generation,
            blocks,
            indirect,
            live: true,
            directory: directory.then(Box::default),
            ..Default::default()
        };
        Ok(slot)
    }

    fn free_inode(&mut self, slot: u32) {
        let number = self.inodes[slot as usize].number;
        self.groups.free_inode(number);
        self.inodes[slot as usize].live = false;
        self.free_slots.push(slot);
        self.core.remove(u64::from(slot));
    }

    /// Creates the root directory. This takes no simulated time, because the root exists from the start.
    pub(super) fn make_root(&mut self) {
        let group = self.groups.group_for_directory();
        if self.new_inode(group, true).is_ok() {
            self.core.insert(0);
        }
    }

    /// Creates a file or directory.
    pub(super) fn make(&mut self, dir: u32, name: u64, directory: bool) -> Result<u32, FsError> {
        self.cpu(self.config.call_cpu + self.config.name_cpu);
        let (known, places, place) = {
            let entries = self.directory(dir)?;
            (
                entries.find(name).is_some(),
                entries.places(),
                entries.next_place(),
            )
        };
        if known {
            self.scan(dir, places, 1);
            return Err(FsError::Exists);
        }
        // The directory is scanned twice: by the lookup, which finds nothing, and by the search for a free
        // place.
        self.scan(dir, places, 2);
        let home = self.groups.of_inode(self.inodes[dir as usize].number);
        let group = if directory {
            self.groups.group_for_directory()
        } else {
            home
        };
        let slot = self.new_inode(group, directory)?;
        let room = (u64::from(place) + 1) * self.config.name_bytes;
        if let Err(error) = self.make_room(dir, room) {
            self.free_inode(slot);
            return Err(error);
        }
        let number = self.inodes[slot as usize].number;
        self.dirty_block(
            IoKind::Bitmap,
            self.groups.map_block(self.groups.of_inode(number)),
        );
        self.have_inode(slot);
        self.write_inode(slot);
        self.write_entry(dir, place);
        if let Some(entries) = self.inodes[dir as usize].directory.as_deref_mut() {
            entries.add(name, slot);
        }
        self.names.insert(Self::name_key(dir, name));
        Ok(slot)
    }

    /// Extends a directory to `room` bytes, if it is shorter.
    fn make_room(&mut self, dir: u32, room: u64) -> Result<(), FsError> {
        let size = self.inodes[dir as usize].size;
        if room <= size {
            return Ok(());
        }
        let page = (room - 1) / self.config.block;
        let fresh = page >= self.inodes[dir as usize].blocks.len() as u64;
        self.grow(dir, room)?;
        self.inodes[dir as usize].size = room;
        if fresh {
            self.keep_page(dir, page);
        }
        Ok(())
    }

    /// Removes a file.
    pub(super) fn unmake(&mut self, dir: u32, name: u64) -> Result<(), FsError> {
        self.cpu(self.config.call_cpu + self.config.name_cpu);
        let (place, slot) = self.lookup(dir, name)?;
        if self.is_directory(slot) {
            return Err(FsError::NotFound);
        }
        self.scan(dir, place + 1, 1);
        self.have_inode(slot);
        self.write_entry(dir, place);
        if self.config.metadata == Metadata::Journal {
            self.log_change(true);
        }
        if let Some(entries) = self.inodes[dir as usize].directory.as_deref_mut() {
            entries.remove(name);
        }
        self.names.remove(Self::name_key(dir, name));
        self.truncate_away(slot);
        Ok(())
    }

    /// Frees the pages and blocks of a deleted file.
    fn truncate_away(&mut self, slot: u32) {
        // Pages on their way to the drive cannot be dropped before their writes are done.
        let end = self.queue.wait_owned(self.now, u64::from(slot), 0);
        self.wait_until(end);
        self.drop_pages(slot);
        if !self.inodes[slot as usize].blocks.is_empty() {
            self.write_emptied(slot);
        }
        let mut touched = std::mem::take(&mut self.touched);
        self.inodes[slot as usize].release(&mut self.groups, &mut touched);
        let number = self.inodes[slot as usize].number;
        touched.push(self.groups.of_inode(number));
        self.dirty_maps(&mut touched);
        self.touched = touched;
        if self.config.metadata != Metadata::Journal {
            self.dirty_block(IoKind::Inode, self.groups.inode_block(number));
        }
        self.inodes[slot as usize].dirty = false;
        self.free_inode(slot);
    }
}
