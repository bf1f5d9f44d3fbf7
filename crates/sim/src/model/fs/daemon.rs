//! The update daemon, which writes old dirty data, and the calls that write data and wait for the drive.

use super::{FsError, Ufs};
use crate::model::SimTime;

impl Ufs {
    /// Runs the update daemon, if its next run is due.
    pub(super) fn tick(&mut self) {
        if self.now < self.next_update {
            return;
        }
        self.next_update = self.now + self.config.update_every;
        let share = self.config.update_every.as_secs() / self.config.update_age.as_secs().max(1e-9);
        let from = self.hand;
        self.hand += share;
        for key in self.pages.sweep(from, self.hand) {
            self.push_page((key >> 32) as u32, key & 0xffff_ffff);
        }
        if self.hand >= 1.0 {
            self.hand = 0.0;
            self.settle_inodes();
        }
        self.push_blocks(self.now - self.config.update_age);
        // A page is not free before it is written. If all pages waited for writes, no page could be used, so
        // at most half of the memory may wait.
        let end = self.queue.wait_below(self.now, self.config.page_cache / 2);
        self.wait_until(end);
    }

    fn settle_inodes(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty_inodes);
        dirty.sort_unstable();
        dirty.dedup();
        for slot in dirty {
            self.settle_inode(slot);
        }
    }

    fn push_blocks(&mut self, since: SimTime) {
        for key in self.blocks.dirty_since(since) {
            self.push_block(key);
        }
    }

    /// Writes everything and waits for it.
    pub(super) fn write_all(&mut self) {
        self.settle_inodes();
        for key in self.pages.sweep(0.0, 1.0) {
            self.push_page((key >> 32) as u32, key & 0xffff_ffff);
        }
        // With soft updates, the first pass writes some blocks without their newest changes. The second pass
        // writes these blocks again.
        self.push_blocks(self.now);
        self.push_blocks(self.now);
        let end = self.queue.drain(self.now);
        let end = self.queue.drive_mut().flush(end);
        self.wait_until(end);
    }

    /// Writes a file and its inode and waits for them.
    pub(super) fn write_file(&mut self, slot: u32) -> Result<(), FsError> {
        self.push_file(slot);
        let end = self.queue.wait_owned(self.now, u64::from(slot), 0);
        self.wait_until(end);
        if self.inodes[slot as usize].dirty {
            self.settle_inode(slot);
            let block = self.groups.inode_block(self.inodes[slot as usize].number);
            self.write_block(super::IoKind::Inode, block);
        }
        Ok(())
    }
}
