//! The file system's access to the drive: requests that the process waits for, background requests, metadata
//! blocks and the log.

use super::{FsError, IoKind, Metadata, Ufs};
use crate::model::{Op, Request, SimTime};

/// Owner of log writes in the queue. Owners of file writes are numbers of inode slots, and no slot has such a
/// large number.
const LOG_OWNER: u64 = u64::MAX;
/// Owner of background metadata writes.
pub(super) const METADATA_OWNER: u64 = u64::MAX - 1;

impl Ufs {
    pub(super) fn cpu(&mut self, span: SimTime) {
        self.now += span;
    }

    fn request(&self, op: Op, address: u32, bytes: u64) -> Request {
        let at = self.config.start + u64::from(address) * self.config.fragment;
        match op {
            Op::Read => Request::read(at, bytes),
            Op::Write => Request::write(at, bytes),
        }
    }

    /// Sends a request and waits until it is done.
    pub(super) fn wait_io(&mut self, kind: IoKind, op: Op, address: u32, bytes: u64) {
        self.counters.add(kind, op, bytes);
        self.counters.waited += 1;
        let end = self.queue.wait(self.now, self.request(op, address, bytes));
        self.wait_until(end);
    }

    /// Writes a part of the log and waits, as [`Self::wait_io`] does. The write is done only when it is on
    /// the medium, because a power failure loses the contents of the drive's cache (decision 132).
    fn wait_log(&mut self, address: u32, bytes: u64) {
        self.counters.add(IoKind::Log, Op::Write, bytes);
        self.counters.waited += 1;
        let request = self.request(Op::Write, address, bytes).through();
        let end = self.queue.wait(self.now, request);
        self.wait_until(end);
    }

    /// Queues a request. The process does not wait for it.
    pub(super) fn send_io(&mut self, kind: IoKind, op: Op, address: u32, bytes: u64, owner: u64) {
        self.counters.add(kind, op, bytes);
        self.queue
            .submit_owned(self.now, self.request(op, address, bytes), owner);
    }

    pub(super) fn wait_until(&mut self, end: SimTime) {
        self.counters.waiting += end - self.now;
        self.now = self.now.max(end);
    }

    const fn block_key(kind: IoKind, address: u32) -> u64 {
        (kind as u64) << 32 | address as u64
    }

    /// Makes sure that the metadata block is in memory (reads it if necessary). Returns its slot
    /// in the cache.
    pub(super) fn have_block(&mut self, kind: IoKind, address: u32) -> u32 {
        let key = Self::block_key(kind, address);
        if let Some(slot) = self.blocks.touched(key) {
            return slot;
        }
        self.wait_io(kind, Op::Read, address, self.config.block);
        self.clear_block();
        self.blocks.insert_new(key).1
    }

    /// Writes the metadata block that a new block would evict, if that block is dirty.
    fn clear_block(&mut self) {
        // This is a loop, because soft updates may have to write a block twice.
        while let Some(victim) = self.blocks.dirty_victim() {
            self.push_block(victim);
            // The memory of a block is free only when the block's write is done. So the process waits here
            // until the bytes of queued metadata writes are at most half of `block_cache`.
            let end = self
                .queue
                .wait_owned(self.now, METADATA_OWNER, self.config.block_cache / 2);
            self.wait_until(end);
        }
    }

    /// Marks a changed block dirty; it may be written later.
    pub(super) fn dirty_block(&mut self, kind: IoKind, address: u32) {
        let slot = self.have_block(kind, address);
        self.blocks.set_slot_dirty(slot, self.now);
        if self.config.metadata == Metadata::SoftUpdates && kind == IoKind::Inode {
            self.rolled_back.insert(Self::block_key(kind, address));
        }
    }

    /// Writes a changed block and waits until it is on the drive.
    pub(super) fn write_block(&mut self, kind: IoKind, address: u32) {
        let slot = self.have_block(kind, address);
        self.wait_io(kind, Op::Write, address, self.config.block);
        self.cpu(self.config.sync_cpu);
        self.blocks.set_slot_clean(slot);
    }

    /// Starts the write of a dirty metadata block.
    pub(super) fn push_block(&mut self, key: u64) {
        if !self.blocks.set_clean(key) {
            return;
        }
        let kind = IoKind::ALL[(key >> 32) as usize % IoKind::ALL.len()];
        self.send_io(
            kind,
            Op::Write,
            key as u32,
            self.config.block,
            METADATA_OWNER,
        );
        // A block in `rolled_back` was written without its newest changes, because these changes depend on
        // blocks that were not yet on disk. So the block is still dirty.
        if self.rolled_back.remove(&key) {
            self.blocks.set_dirty(key, self.now);
        }
    }

    /// Marks as dirty the free maps of all groups in which space was allocated or freed.
    pub(super) fn dirty_maps(&mut self, touched: &mut Vec<u32>) {
        touched.dedup();
        for group in touched.drain(..) {
            self.dirty_block(IoKind::Bitmap, self.groups.map_block(group));
        }
    }

    /// Reserves the log in the middle of the partition.
    pub(super) fn make_log(&mut self) {
        let middle = self.groups.first_data(
            self.groups
                .of_address((self.bytes / 2 / self.config.fragment) as u32),
        );
        let mut at = middle;
        for _ in 0..self.config.log_bytes / self.config.block {
            let Some(address) = self.groups.allocate_block(at) else {
                break;
            };
            self.log.push(address);
            at = address + self.groups.per_block();
        }
    }

    /// Adds one change to the log. If `forced` and `log_sync` are true, the process waits until the change is
    /// written.
    pub(super) fn log_change(&mut self, forced: bool) {
        if self.log.is_empty() {
            return;
        }
        self.log_fill += self.config.log_record;
        if forced && self.config.log_sync {
            let (address, bytes) = self.next_log();
            self.wait_log(address, bytes);
            self.cpu(self.config.sync_cpu);
        } else if self.log_fill >= self.config.log_buffer {
            let (address, bytes) = self.next_log();
            self.send_io(IoKind::Log, Op::Write, address, bytes, LOG_OWNER);
            let end = self
                .queue
                .wait_owned(self.now, LOG_OWNER, 8 * self.config.log_buffer);
            self.wait_until(end);
        }
    }

    fn next_log(&mut self) -> (u32, u64) {
        let bytes = self.log_fill.next_multiple_of(super::super::drive::SECTOR);
        let total = self.log.len() as u64 * self.config.block;
        if self.log_at + bytes > total {
            self.log_at = 0;
        }
        let block = self.log[(self.log_at / self.config.block) as usize];
        let address = block + (self.log_at % self.config.block / self.config.fragment) as u32;
        // In this model a log write takes whole fragments, so the next log write begins after the last of
        // these fragments.
        self.log_at += bytes.next_multiple_of(self.config.fragment);
        self.log_fill = 0;
        (address, bytes)
    }

    /// Makes sure that the indirect blocks that lead to a block of a file are in memory.
    pub(super) fn have_way(&mut self, slot: u32, page: u64) {
        let inode = &self.inodes[slot as usize];
        let (first, second) = inode.way(page, self.config.block);
        for place in [first, second].into_iter().flatten() {
            if let Some(address) = self.inodes[slot as usize].indirect.get(place).copied() {
                self.have_block(IoKind::Indirect, address);
            }
        }
    }

    /// Allocates space up to `size`. The map blocks and indirect blocks become dirty.
    pub(super) fn grow(&mut self, slot: u32, size: u64) -> Result<(), FsError> {
        let inode = &mut self.inodes[slot as usize];
        let (indirect, last) = (inode.indirect.len(), inode.blocks.len() as u64);
        let before = inode.blocks.last().copied();
        let mut touched = std::mem::take(&mut self.touched);
        let grown = inode.grow(size, &mut self.groups, &self.config, &mut touched);
        let fresh: Vec<u32> = inode.indirect.get(indirect..).unwrap_or_default().to_vec();
        let changed = inode.blocks.len() as u64 != last || inode.blocks.last().copied() != before;
        self.dirty_maps(&mut touched);
        self.touched = touched;
        for address in fresh {
            // With synchronous metadata, a new indirect block is written before the inode points to it.
            self.clear_block();
            self.blocks
                .insert(Self::block_key(IoKind::Indirect, address));
            match self.config.metadata {
                Metadata::Sync => self.write_block(IoKind::Indirect, address),
                _ => self.dirty_block(IoKind::Indirect, address),
            }
        }
        if changed && self.config.metadata == Metadata::Journal {
            self.log_change(false);
        }
        if changed {
            self.dirty_way(slot);
        }
        grown
    }

    fn dirty_way(&mut self, slot: u32) {
        let inode = &self.inodes[slot as usize];
        let last = (inode.blocks.len() as u64).saturating_sub(1);
        let (first, second) = inode.way(last, self.config.block);
        if let Some(address) = second
            .or(first)
            .and_then(|place| inode.indirect.get(place).copied())
        {
            self.dirty_block(IoKind::Indirect, address);
        }
    }
}
