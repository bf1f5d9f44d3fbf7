//! File contents: the page cache between read(), write(), mappings and the drive.

use super::{FsError, IoKind, Ufs};
use crate::model::Op;

impl Ufs {
    pub(super) const fn page_key(slot: u32, page: u64) -> u64 {
        (slot as u64) << 32 | page
    }

    fn kind_of(&self, slot: u32) -> IoKind {
        if self.is_directory(slot) {
            IoKind::Directory
        } else {
            IoKind::Data
        }
    }

    /// Reads a page into memory. In a sequential run, the following pages are read too.
    pub(super) fn have_page(&mut self, slot: u32, page: u64) {
        let sequential = self.note_read(slot, page);
        if self.pages.touch(Self::page_key(slot, page)) {
            self.counters.page_hits += 1;
            return;
        }
        self.counters.page_misses += 1;
        self.read_cluster(slot, page, sequential);
    }

    /// Reads the pages `from..to` of a directory into memory, one after another. Returns true if all pages
    /// were already in memory: then a repeated call changes only the count of hits.
    pub(super) fn have_pages(&mut self, dir: u32, from: u64, to: u64) -> bool {
        let misses = self.counters.page_misses;
        if from == 0 && to > 1 && self.pages.touch_run(dir, to) {
            self.counters.page_hits += to;
            self.note_read(dir, 0);
            let inode = &mut self.inodes[dir as usize];
            // The state is the same as if `note_read` had been called for each page: every page except the
            // first follows the page before it.
            inode.streak =
                u32::try_from(to - 1).map_or(16, |n| inode.streak.saturating_add(n).min(16));
            inode.next_read = to;
            return true;
        }
        for page in from..to {
            self.have_page(dir, page);
        }
        to < from + 2 && self.counters.page_misses == misses
    }

    /// Records a read at `page`. Returns the number of blocks that this read may include. The number rises
    /// with the length of the sequential run of reads before this read.
    fn note_read(&mut self, slot: u32, page: u64) -> u64 {
        let most = self.config.max_contig;
        let inode = &mut self.inodes[slot as usize];
        if page == inode.next_read {
            inode.streak = (inode.streak + 1).min(16);
        } else if page + 1 != inode.next_read {
            inode.streak = 0;
        }
        inode.next_read = page + 1;
        let whole = page == 0 && inode.blocks.len() as u64 <= most;
        if whole {
            most
        } else {
            (1 << inode.streak).min(most)
        }
    }

    fn read_cluster(&mut self, slot: u32, page: u64, most: u64) {
        self.have_way(slot, page);
        let per_block = self.groups.per_block();
        let inode = &self.inodes[slot as usize];
        let Some(&address) = inode.blocks.get(page as usize) else {
            return;
        };
        let mut count = 1;
        while count < most
            && inode.adjacent(page + count - 1, per_block)
            && !self.pages.contains(Self::page_key(slot, page + count))
        {
            count += 1;
        }
        let fragments = (count - 1) * u64::from(per_block)
            + u64::from(inode.fragments(page + count - 1, per_block));
        self.wait_io(
            self.kind_of(slot),
            Op::Read,
            address,
            fragments * self.config.fragment,
        );
        for each in page..page + count {
            self.keep_page(slot, each);
        }
    }

    /// Writes the page that a new page would evict, if that page is dirty.
    fn clear_page(&mut self) {
        if let Some(victim) = self.pages.dirty_victim() {
            self.counters.evicted_dirty += 1;
            let owner = (victim >> 32) as u32;
            self.push_page(owner, victim & 0xffff_ffff);
            // The memory of a page is free only when the page's write is done. So the process waits here
            // until at most `write_low` bytes of the file are queued.
            let end = self
                .queue
                .wait_owned(self.now, u64::from(owner), self.config.write_low);
            self.wait_until(end);
        }
    }

    /// Adds a page that was not in memory.
    pub(super) fn keep_page(&mut self, slot: u32, page: u64) {
        if self.is_directory(slot) {
            self.clear_page();
            self.pages.insert_in_run(Self::page_key(slot, page));
        } else {
            self.keep_file_page(slot, page);
        }
    }

    /// Adds a page of a file (not of a directory), as [`keep_page`](Self::keep_page) does. Returns the page's
    /// slot.
    fn keep_file_page(&mut self, slot: u32, page: u64) -> u32 {
        self.clear_page();
        self.pages.insert_new(Self::page_key(slot, page)).1
    }

    /// Starts the write of a dirty page, together with the dirty pages that are adjacent in the file and on
    /// disk.
    pub(super) fn push_page(&mut self, slot: u32, page: u64) {
        let per_block = self.groups.per_block();
        let (mut from, mut count) = (page, 1);
        if !self.pages.is_dirty(Self::page_key(slot, page)) {
            return;
        }
        let inode = &self.inodes[slot as usize];
        let dirty = |p: u64| self.pages.is_dirty(Self::page_key(slot, p));
        while from > 0
            && count < self.config.max_contig
            && dirty(from - 1)
            && inode.adjacent(from - 1, per_block)
        {
            (from, count) = (from - 1, count + 1);
        }
        while count < self.config.max_contig
            && dirty(from + count)
            && inode.adjacent(from + count - 1, per_block)
        {
            count += 1;
        }
        self.write_pages(slot, from, count);
    }

    /// Writes the dirty pages among `count` pages, with one request for each contiguous run.
    pub(super) fn write_pages(&mut self, slot: u32, from: u64, count: u64) {
        let per_block = self.groups.per_block();
        let kind = self.kind_of(slot);
        let mut page = from;
        while page < from + count {
            if !self.pages.set_clean(Self::page_key(slot, page)) {
                page += 1;
                continue;
            }
            let start = page;
            while page + 1 < from + count
                && self.inodes[slot as usize].adjacent(page, per_block)
                && self.pages.set_clean(Self::page_key(slot, page + 1))
            {
                page += 1;
            }
            let inode = &self.inodes[slot as usize];
            let fragments =
                (page - start) * u64::from(per_block) + u64::from(inode.fragments(page, per_block));
            if let Some(&address) = inode.blocks.get(start as usize) {
                self.send_io(
                    kind,
                    Op::Write,
                    address,
                    fragments * self.config.fragment,
                    u64::from(slot),
                );
            }
            page += 1;
        }
    }

    /// Write-behind: collects full pages that follow each other into cluster writes.
    fn gather(&mut self, slot: u32, page: u64) {
        let (first, count) = self.inodes[slot as usize].gathered;
        if count > 0 && page + 1 == first + count {
            return;
        }
        if count > 0 && page == first + count && count < self.config.max_contig {
            self.inodes[slot as usize].gathered = (first, count + 1);
        } else {
            self.write_pages(slot, first, count);
            self.inodes[slot as usize].gathered = (page, 1);
        }
        let (first, count) = self.inodes[slot as usize].gathered;
        if count >= self.config.max_contig {
            self.write_pages(slot, first, count);
            self.inodes[slot as usize].gathered = (0, 0);
        }
    }

    pub(super) fn read_range(&mut self, slot: u32, offset: u64, len: u64) -> u64 {
        let size = self.inodes[slot as usize].size;
        let end = offset.saturating_add(len).min(size);
        if offset >= end {
            return 0;
        }
        for page in offset / self.config.block..=(end - 1) / self.config.block {
            self.have_page(slot, page);
            self.cpu(self.config.page_cpu);
        }
        if self.config.atime {
            self.dirty_inode(slot);
        }
        end - offset
    }

    pub(super) fn write_range(&mut self, slot: u32, offset: u64, len: u64) -> Result<(), FsError> {
        let end = offset.checked_add(len).ok_or(FsError::OutOfRange)?;
        if end.div_ceil(self.config.block) >= u64::from(u32::MAX) {
            return Err(FsError::OutOfRange);
        }
        if self.queue.owned_bytes(u64::from(slot)) > self.config.write_high {
            let done = self
                .queue
                .wait_owned(self.now, u64::from(slot), self.config.write_low);
            self.wait_until(done);
        }
        let mut at = offset;
        while at < end {
            let piece = (self.config.block - at % self.config.block).min(end - at);
            self.write_piece(slot, at, piece)?;
            at += piece;
        }
        self.dirty_inode(slot);
        Ok(())
    }

    /// Writes a range within one page.
    fn write_piece(&mut self, slot: u32, at: u64, len: u64) -> Result<(), FsError> {
        let page = at / self.config.block;
        let within = at % self.config.block;
        let key = Self::page_key(slot, page);
        let size = self.inodes[slot as usize].size;
        // A write past the end of the file allocates space. If such a write starts at the start of a page, no
        // page is read.
        let longer = at + len > size;
        let part = if longer {
            self.grow(slot, at + len)?;
            within > 0 && page * self.config.block < size
        } else {
            len < self.config.block
        };
        let there = self.pages.touched(key);
        if there.is_some() && part && !longer {
            self.counters.page_hits += 1;
        }
        let place = match there {
            None if part => self.fetch_for_write(slot, page),
            None => Some(self.keep_file_page(slot, page)),
            there => there,
        };
        if longer {
            self.inodes[slot as usize].size = at + len;
        }
        if let Some(place) = place {
            self.pages.set_slot_dirty(place, self.now);
        }
        self.cpu(self.config.page_cpu);
        if within + len == self.config.block {
            self.gather(slot, page);
        }
        Ok(())
    }

    /// Reads a page before a write that covers only a part of the page.
    fn fetch_for_write(&mut self, slot: u32, page: u64) -> Option<u32> {
        self.counters.read_modify_writes += 1;
        self.read_cluster(slot, page, 1);
        self.pages.find(Self::page_key(slot, page))
    }

    pub(super) fn map_range(
        &mut self,
        slot: u32,
        offset: u64,
        len: u64,
        op: Op,
    ) -> Result<u64, FsError> {
        let size = self.inodes[slot as usize].size;
        let end = offset.saturating_add(len).min(size);
        if op == Op::Write && offset.saturating_add(len) > size {
            return Err(FsError::OutOfRange);
        }
        for page in offset / self.config.block..end.div_ceil(self.config.block) {
            self.have_page(slot, page);
            self.cpu(self.config.page_cpu);
            if op == Op::Write {
                self.pages.set_dirty(Self::page_key(slot, page), self.now);
            }
        }
        Ok(end.saturating_sub(offset))
    }

    /// Starts the writes of all dirty pages of a file.
    pub(super) fn push_file(&mut self, slot: u32) {
        self.inodes[slot as usize].gathered = (0, 0);
        if self.pages.dirty() > 0 {
            let pages = self.inodes[slot as usize].blocks.len() as u64;
            self.write_pages(slot, 0, pages);
        }
    }

    /// Drops the pages of a file.
    pub(super) fn drop_pages(&mut self, slot: u32) {
        let pages = self.inodes[slot as usize].blocks.len() as u64;
        for page in 0..pages {
            self.pages.remove(Self::page_key(slot, page));
        }
        self.inodes[slot as usize].gathered = (0, 0);
    }
}
