//! The purge journal of one store: notes of purges, which the store's writer writes. Notes that arrive
//! together share a write, and each note is durable before its ticket ends. The journal has two halves. A
//! half begins with a snapshot of all active purges, and blocks with newer notes follow. The next snapshot
//! goes to the other half. It is written when a note does not fit into the half, when new notes need more
//! than one block, after a failed write, and on request (for example, after purges have retired).

use std::mem;

use foxy_base::rule;
use foxy_disk::AlignedBuf;
use foxy_format::{BLOCK, JOURNAL_BLOCK_NOTES, JournalBlock, JournalHalf, PurgeKind, PurgeNote};

use super::set::{PurgeSet, State};
use crate::Durable;
use crate::interface::TicketPart;
use crate::shared::StoreShared;

/// The number of bytes of notes that always fit into a snapshot of this store's journal.
pub(super) fn room(store: &StoreShared) -> usize {
    // Notes do not span blocks, so a part of each block stays unused.
    let blocks = half_blocks(store) as usize;
    blocks * JOURNAL_BLOCK_NOTES / 2
}

pub(crate) const fn half_blocks(store: &StoreShared) -> u32 {
    store.space.geometry().journal_bytes / 2 / BLOCK as u32
}

/// The byte offset on the disk of block `block` in half `half` of the journal.
pub(crate) const fn block_at(store: &StoreShared, half: u32, block: u32) -> u64 {
    let half_bytes = store.space.geometry().journal_bytes as u64 / 2;
    store.space.geometry().journal_at() + half as u64 * half_bytes + block as u64 * BLOCK
}

/// The state of the journal, and the write that is under way.
#[derive(Debug)]
pub(crate) struct Journal {
    half: u32,
    /// The number of used blocks of half `half`.
    used: u32,
    /// The sequence number of the next block.
    next: u64,
    first: u64,
    snapshot: u32,
    /// True if every block of this half is written twice.
    doubled: bool,
    /// True if the last write failed: the present contents of this half are not known.
    broken: bool,
    /// The number of the latest write.
    writes: u64,
    /// The place and the bytes of the latest write. They are read back before any caller relies on the
    /// write.
    latest: (u64, AlignedBuf),
    stage: Stage,
}

/// The write that is under way, if there is one, with its tickets. A call that does not belong to the
/// current stage leaves the stage unchanged.
#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// The write with this number has not completed yet.
    Writing(u64, Vec<TicketPart>),
    /// The flush with this number has not ended yet.
    Flushing(u64, Vec<TicketPart>),
    /// The write with this number has not been read back yet.
    Checking(u64, Vec<TicketPart>),
}

impl Stage {
    /// If the write with number `write` is under way, ends it and returns its tickets.
    fn take_written(&mut self, write: u64) -> Option<Vec<TicketPart>> {
        match self {
            Self::Writing(number, parts)
                if rule!(
                    "journal: a completion ends the tickets of its own write alone",
                    *number == write,
                    true
                ) =>
            {
                let parts = mem::take(parts);
                *self = Self::Idle;
                Some(parts)
            }
            _ => None,
        }
    }

    /// If the write with number `write` is being read back, ends this check and returns the tickets of the
    /// write.
    fn take_checked(&mut self, write: u64) -> Option<Vec<TicketPart>> {
        match self {
            Self::Checking(number, parts) if *number == write => {
                let parts = mem::take(parts);
                *self = Self::Idle;
                Some(parts)
            }
            _ => None,
        }
    }

    /// If the flush for which the write waits has ended, returns its outcome and the tickets. `flushed` gets
    /// the number of the flush, and returns its outcome or `None`.
    fn take_flushed(
        &mut self,
        flushed: impl FnOnce(u64) -> Option<bool>,
    ) -> Option<(bool, Vec<TicketPart>)> {
        let Self::Flushing(number, parts) = self else {
            return None;
        };
        let ok = rule!(
            "journal: a purge is acknowledged after its flush",
            flushed(*number)?,
            true
        );
        let parts = mem::take(parts);
        *self = Self::Idle;
        Some((ok, parts))
    }
}

/// A write to the journal.
#[derive(Debug)]
pub(crate) struct JournalWrite {
    /// The number of this write. The completion carries it, so that it is not taken for the completion of
    /// another write.
    pub(crate) number: u64,
    pub(crate) at: u64,
    pub(crate) bytes: AlignedBuf,
}

impl Journal {
    /// Continues the journal after the blocks that were read.
    pub(crate) fn after(half: u32, read: &JournalHalf) -> Self {
        Self {
            half,
            used: read.blocks,
            next: read.newest.sequence + 1,
            first: read.newest.first,
            snapshot: read.newest.snapshot,
            doubled: read.newest.doubled,
            broken: false,
            writes: 0,
            latest: (0, AlignedBuf::new(0)),
            stage: Stage::Idle,
        }
    }

    /// Continues the journal after damage. Unreadable blocks may become readable again, and blocks written
    /// from now on must count as newer than these unreadable blocks. So the sequence numbers of this start
    /// begin at a value made from its `generation`. This value is above the sequence numbers of every earlier
    /// start.
    pub(crate) fn go_beyond(mut self, generation: u64) -> Self {
        let least = generation << 32;
        if rule!(
            "journal: after damage sequences go on above all that may lie there",
            self.next < least,
            false
        ) {
            self.next = least;
        }
        self.broken = true;
        self
    }

    /// Returns whether every block of this half is written twice, so that damage of one block loses no
    /// note.
    pub(crate) const fn is_doubled(&self) -> bool {
        self.doubled
    }

    /// Returns whether no write is under way, and no note and no ticket waits.
    pub(crate) fn is_idle(&self, store: &StoreShared) -> bool {
        matches!(self.stage, Stage::Idle) && store.journal.lock().is_empty()
    }

    /// Returns the next write, if one should begin now.
    pub(crate) fn begin(&mut self, purges: &PurgeSet, store: &StoreShared) -> Option<JournalWrite> {
        let idle = rule!(
            "journal: one write is under way at a time",
            matches!(self.stage, Stage::Idle),
            true
        );
        if !idle || store.journal.lock().is_empty() {
            return None;
        }
        // A thread that publishes a purge holds the write lock of the set of purges until it has put the note
        // into the inbox. So while `state` has the read lock, the inbox contains the notes of all published
        // purges that no earlier write took, and no other notes.
        let state = purges.read();
        let work = store.journal.lock().take();
        if work.notes.is_empty() && !work.snapshot && !self.broken {
            // An earlier write included the notes of these callers, and is durable.
            end(work.waiting, Durable::Yes);
            return None;
        }
        self.writes += 1;
        self.stage = Stage::Writing(self.writes, work.waiting);
        let blocks = pack(&work.notes);
        // An append writes one block only. If a crash interrupted the write of several blocks, perhaps
        // only a later block would be on the disk, with a hole before it.
        let copies = 1 + u32::from(self.doubled);
        let one = rule!(
            "journal: later blocks are written one at a time",
            blocks.len() == 1,
            true
        );
        let room = one && self.used + (blocks.len() as u32 - 1) + copies <= half_blocks(store);
        let append = room && !work.snapshot && !self.broken;
        let write = if append {
            let at = block_at(store, self.half, self.used);
            self.used += copies;
            self.encode(store, &state, blocks, at)
        } else {
            let blocks = snapshot(&state, half_blocks(store));
            self.half ^= 1;
            self.first = self.next;
            self.snapshot = blocks.len() as u32;
            // A journal that is nearly full has no room for copies.
            self.doubled = rule!(
                "journal: every block is there twice while there is room",
                self.snapshot * 2 <= half_blocks(store),
                false
            );
            self.used = self.snapshot * (1 + u32::from(self.doubled));
            let at = block_at(store, self.half, 0);
            self.encode(store, &state, blocks, at)
        };
        self.broken = false;
        Some(write)
    }

    fn encode(
        &mut self,
        store: &StoreShared,
        state: &State,
        blocks: Vec<Vec<PurgeNote>>,
        at: u64,
    ) -> JournalWrite {
        let mut bytes = Vec::with_capacity(blocks.len() * BLOCK as usize);
        for notes in blocks {
            let block = JournalBlock {
                doubled: self.doubled,
                uuid: store.space.uuid(),
                sequence: self.next,
                first: self.first,
                snapshot: self.snapshot,
                seen: state.latest,
                retired: state.retired,
                floor: store.marks.purge_floor(),
                notes,
            };
            self.next += 1;
            // The notes were packed so that they fit. If a block still did not fit, zeros would be written in
            // its place. A start would detect this hole.
            bytes.extend_from_slice(&block.encode().unwrap_or_else(|_| vec![0; BLOCK as usize]));
        }
        if self.doubled {
            bytes.extend_from_within(..);
        }
        self.latest = (at, AlignedBuf::copy_of(&bytes));
        JournalWrite {
            number: self.writes,
            at,
            bytes: AlignedBuf::copy_of(&bytes),
        }
    }

    /// Handles the end of the write with this number; `ok` states whether it succeeded. `flush`
    /// requests a flush and returns its number.
    pub(crate) fn written(&mut self, write: u64, ok: bool, flush: impl FnOnce() -> u64) {
        let Some(parts) = self.stage.take_written(write) else {
            return;
        };
        if ok {
            self.stage = Stage::Flushing(flush(), parts);
        } else {
            self.fail(parts);
        }
    }

    /// Ends the wait for a flush. Returns the write that must then be read back: its number, its place
    /// and its length.
    pub(crate) fn settle(
        &mut self,
        flushed: impl FnOnce(u64) -> Option<bool>,
    ) -> Option<(u64, u64, usize)> {
        let (durable, parts) = self.stage.take_flushed(flushed)?;
        if !durable {
            self.fail(parts);
            return None;
        }
        self.stage = Stage::Checking(self.writes, parts);
        Some((self.writes, self.latest.0, self.latest.1.len()))
    }

    /// Handles the bytes that were read back for the write with this number. Returns false if they differ
    /// from the written bytes, or could not be read. (The device may have lost the write, or written it to
    /// another place.)
    pub(crate) fn checked(&mut self, write: u64, found: Option<&[u8]>) -> bool {
        let Some(parts) = self.stage.take_checked(write) else {
            return true;
        };
        let right = rule!(
            "journal: a write is read back before it is relied on",
            found == Some(&self.latest.1[..]),
            true
        );
        self.latest.1 = AlignedBuf::new(0);
        match right {
            true => end(parts, Durable::Yes),
            false => self.fail(parts),
        }
        right
    }

    /// Fails the waiting tickets. The next write is a snapshot, which contains all active purges.
    fn fail(&mut self, parts: Vec<TicketPart>) {
        self.broken = rule!("journal: a write that failed is made again", true, false);
        end(parts, Durable::Failed);
    }

    /// Fails the waiting tickets, because the store takes no writes.
    pub(crate) fn give_up(&mut self, store: &StoreShared) {
        let work = store.journal.lock().take();
        self.broken |= !work.is_empty();
        end(
            work.waiting,
            rule!(
                "journal: a store that takes no writes acknowledges no purge",
                Durable::Failed,
                Durable::Yes
            ),
        );
    }

    /// Returns whether the last write failed and must be repeated.
    pub(crate) const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Requests the snapshot that replaces the failed write.
    pub(crate) fn try_again(&self, store: &StoreShared) {
        store.journal.lock().snapshot = true;
    }
}

fn end(parts: Vec<TicketPart>, outcome: Durable) {
    for part in parts {
        part.finish(outcome);
    }
}

/// Divides notes into blocks; there is at least one block.
fn pack(notes: &[PurgeNote]) -> Vec<Vec<PurgeNote>> {
    let mut blocks = vec![Vec::new()];
    let mut used = 0;
    for note in notes {
        if used + note.encoded_len() > JOURNAL_BLOCK_NOTES {
            blocks.push(Vec::new());
            used = 0;
        }
        used += note.encoded_len();
        if let Some(block) = blocks.last_mut() {
            block.push(note.clone());
        }
    }
    blocks
}

/// Returns all active purges, in blocks. If another store has a larger journal, the purges may not fit into
/// the journal of this store. Then the snapshot has one hard and one soft purge of everything, each with the
/// number of the newest purge of its kind. These two purges matter only at a start that has no other journal.
fn snapshot(state: &State, blocks_max: u32) -> Vec<Vec<PurgeNote>> {
    let notes: Vec<_> = state.active.values().map(|a| a.note.clone()).collect();
    let blocks = pack(&notes);
    if blocks.len() as u32 <= blocks_max {
        return blocks;
    }
    let newest = |soft: bool| notes.iter().rfind(|n| n.soft == soft).cloned();
    let coarse = [newest(false), newest(true)].into_iter().flatten();
    let coarse = coarse.map(|note| PurgeNote {
        kind: PurgeKind::All,
        partition: Vec::new(),
        text: Vec::new(),
        ..note
    });
    pack(&coarse.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that were unreadable at a start may become readable again, so the numbers of new blocks must be
    /// above the numbers of these blocks.
    #[test]
    fn after_damage_sequences_are_above_those_of_every_earlier_start() {
        let newest = JournalBlock {
            doubled: true,
            uuid: foxy_format::StoreUuid([1; 16]),
            sequence: 7 << 32,
            first: 7 << 32,
            snapshot: 1,
            seen: 0,
            retired: 0,
            floor: 0,
            notes: Vec::new(),
        };
        let half = JournalHalf {
            newest,
            blocks: 2,
            notes: Vec::new(),
            holes: true,
        };
        let journal = Journal::after(0, &half).go_beyond(9);
        assert!(journal.next >= 9 << 32 && journal.is_broken());
    }
}
