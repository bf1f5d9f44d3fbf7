//! Reuse of segments, strictly in sequence. The *victim* is the segment that is reused next, with its old
//! contents. Its *slot* is outside the segment, and contains its state and its summary. An *incarnation* is
//! the time from one reuse of a segment to the next. An *open header* in the slot states that a new
//! incarnation of the segment begins.
//!
//! The order is: read the victim and write the used records again; write the open header of the new
//! incarnation to the slot; flush; read the open header back; drop the index entries; only then overwrite.
//! Until the open header is durable, the index still knows every record of the victim, so a supersession
//! writes its removal to the log. Once the open header is durable, a restart rejects the old incarnation.
//! Several segments may be in preparation at the same time. Each segment keeps this order. Records are
//! chosen, open headers are written, and entries are dropped in the sequence of the segments. The open
//! headers share flushes.

use std::io;
use std::sync::Arc;

use foxy_base::{MonoTime, rule};
use foxy_disk::AlignedBuf;
use foxy_format::{Entry, SLOT_HEADER_BYTES, SlotHeader};

use super::gather::Gather;
use super::io::{Io, Purpose};
use super::log::Log;
use super::objects::Objects;
use super::reinsert::{Reinserter, Reinsertion};
use super::reuse_queue::{Preparing, ReuseQueue, Stage};
use super::trouble::Fault;
use crate::interface::add;
use crate::recovery::{scan_segment, summary_entries};
use crate::shared::{OpenSegment, StoreShared, summary};

/// Maximum number of index entries that one turn drops.
const DROP_STEP: usize = 4096;

/// The state of reuse when a store was opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The segment that already has the open header of its next incarnation: its index and sequence.
    pub(super) ready: Option<(u32, u64)>,
    pub(super) next_sequence: u64,
    /// True if a table could not be read.
    pub(super) tables_damaged: bool,
}

/// The parts of a step that the writer permits now: see [`Reuse::step`].
#[derive(Clone, Copy, Debug)]
pub(super) struct May {
    /// True if the step may start the preparation of another segment.
    pub(super) begin: bool,
    /// True if the step may write open headers.
    pub(super) write_headers: bool,
}

/// The progress of the segments that are before this segment in the queue.
#[derive(Clone, Copy)]
struct Before {
    opened: bool,
    ready: bool,
}

/// The next segments, which are being prepared to be overwritten.
#[derive(Debug)]
pub(super) struct Reuse {
    store: Arc<StoreShared>,
    queue: ReuseQueue,
    next_sequence: u64,
    /// True if a table could not be read: then the whole index must be searched for entries of the next
    /// victim.
    tables_damaged: bool,
    reinserter: Reinserter,
}

impl Reuse {
    /// Makes the state of reuse for a store that was just opened. `found` is the state in which the store was
    /// found; for `percent`, see [`Reinserter::new`].
    pub(super) fn new(store: Arc<StoreShared>, found: Found, percent: u32) -> Self {
        Self {
            queue: ReuseQueue::new(store.space.geometry(), found.ready),
            next_sequence: found.next_sequence,
            tables_damaged: found.tables_damaged,
            reinserter: Reinserter::new(store.clone(), percent),
            store,
        }
    }

    /// The sequence number of the incarnation that the next segment will begin.
    pub(super) const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// See [`ReuseQueue::take_ready`].
    pub(super) fn take_ready(&mut self) -> Option<(u32, u64)> {
        self.queue.take_ready()
    }

    /// Returns whether index entries are being dropped. If so, the next turn must follow without a wait.
    pub(super) fn is_dropping(&self) -> bool {
        self.queue.is_dropping()
    }

    /// Returns whether no preparation has work under way.
    pub(super) fn is_at_rest(&self) -> bool {
        self.queue.is_at_rest()
    }

    /// The capacity, in entries, of the entry lists of all victims.
    pub(super) fn entries(&self) -> usize {
        self.queue.entries()
    }

    pub(super) const fn reinserter(&self) -> &Reinserter {
        &self.reinserter
    }

    pub(super) const fn reinserter_mut(&mut self) -> &mut Reinserter {
        &mut self.reinserter
    }

    /// Passes to the gatherer the records that are to be written again.
    pub(super) fn hand_over(&mut self, gather: &mut Gather, now: MonoTime) {
        for item in self.reinserter.take_items() {
            // The locality buffers would group the record with other records again. When writing had to
            // wait for a segment not long ago, the record bypasses the buffers. So it stays beside the
            // neighbours with which it was first written.
            if self.queue.is_pressed() {
                gather.item_at_once(item, now);
            } else {
                gather.item(item, now);
            }
        }
    }

    /// Continues the preparation of the next segments by one step.
    pub(super) fn step(&mut self, may: May, log: &Log, io: &mut Io, objects: &Objects) {
        if may.begin
            && let Some(next) = self.begin(log, io)
        {
            let at_once = rule!(
                "reuse: what lay in a segment that is passed over is forgotten with the next open header",
                Vec::new(),
                next.passed_over.clone()
            );
            self.forget_passed_over(at_once, objects);
            self.queue.push(next);
        }
        let mut all = self.queue.lend();
        let mut before = Before {
            opened: true,
            ready: true,
        };
        let hurry = self.queue.is_urgent();
        for next in &mut all {
            if next.stage == Stage::Reinserting
                && self.reinserter.step(&mut next.work, hurry, io, objects)
            {
                next.work = Reinsertion::default();
                next.stage = Stage::Unopened;
            }
            if next.stage != Stage::Unopened || may.write_headers {
                self.prepare(next, before, io, objects);
            }
            before.opened &= next.is_opened();
            before.ready &= next.stage == Stage::Ready;
        }
        self.queue.give_back(all);
    }

    /// Continues the preparation of one segment by one step. Open headers are written and entries dropped in
    /// the sequence of the segments.
    fn prepare(&mut self, next: &mut Preparing, before: Before, io: &mut Io, objects: &Objects) {
        match next.stage {
            Stage::Unopened
                if rule!(
                    "reuse: open headers are written in sequence",
                    before.opened,
                    true
                ) =>
            {
                self.write_open_header(next, io);
            }
            Stage::Flushing(number) => match rule!(
                "reuse: entries are dropped after the flush of the open header",
                io.flushed(number),
                Some(true)
            ) {
                None => {}
                Some(true) => self.check_open_header(next, io),
                // The open header is not durable, and must be written again later.
                Some(false) => rule!(
                    "reuse: an open header whose flush failed is written again",
                    next.stage = Stage::Unopened,
                    next.stage = Stage::Dropping(self.store.space.incarnation(next.index))
                ),
            },
            Stage::Opened
                if rule!("reuse: entries are dropped in sequence", before.ready, true) =>
            {
                next.stage = Stage::Dropping(self.store.space.incarnation(next.index));
            }
            Stage::Dropping(old) => self.drop_entries(next, old, objects),
            _ => {}
        }
    }

    /// Starts the preparation of another segment, if the queue has fewer segments than it needs now.
    fn begin(&mut self, log: &Log, io: &mut Io) -> Option<Preparing> {
        let geometry = *self.store.space.geometry();
        if self.queue.len() >= self.queue.wanted(log.is_half_full()) {
            return None;
        }
        // The segments share the budget for reinsertion in their sequence, so the previous segment must
        // have chosen its records first.
        if !self.queue.newest().is_none_or(Preparing::has_chosen) {
            return None;
        }
        let mut next = self.next_victim(log)?;
        if self.store.space.incarnation(next.index) == 0 {
            next.stage = Stage::Unopened;
        } else {
            let at = geometry.slot_at(next.index);
            let purpose = Purpose::VictimSlot(next.sequence);
            io.read(purpose, at, geometry.slot_bytes as usize);
        }
        Some(next)
    }

    /// Returns the next segment in the sequence. Segments in quarantine are skipped. A start would still load
    /// a skipped segment until the next segment has a durable open header. Until then the index keeps the
    /// entries of the skipped segment, so that a supersession of its records logs a removal.
    fn next_victim(&mut self, log: &Log) -> Option<Preparing> {
        let geometry = *self.store.space.geometry();
        let mut passed_over = Vec::new();
        for sequence in self.next_sequence..self.next_sequence + u64::from(geometry.segments) {
            let index = geometry.segment_of(sequence);
            let in_use = log.is_open(index);
            let sound = rule!(
                "reuse: segments in quarantine are passed over",
                !self.store.condition.is_quarantined(index),
                true
            );
            if sound && !in_use && !self.queue.has(index) {
                self.next_sequence = sequence + 1;
                return Some(Preparing {
                    passed_over,
                    ..Preparing::new(index, sequence, Stage::Reading)
                });
            }
            passed_over.push(index);
        }
        // This is not reached: a store with most of its segments in quarantine takes no writes.
        None
    }

    /// Forgets the segments that were skipped: their contents are lost, and the next start does not
    /// load them.
    fn forget_passed_over(&self, passed_over: Vec<u32>, objects: &Objects) {
        for index in passed_over {
            self.sweep_segment(index, objects);
            self.store.space.begin_incarnation(index, 0);
        }
    }

    /// Handles the victim's slot, which was read: finds the records of the victim and chooses those to
    /// write again.
    pub(super) fn victim_slot_done(
        &mut self,
        sequence: u64,
        slot: Option<AlignedBuf>,
        objects: &Objects,
    ) {
        let Some(next) = self.queue.find(sequence) else {
            return;
        };
        let index = next.index;
        next.victim = slot
            .and_then(|slot| slot_entries(&self.store, index, &slot))
            .unwrap_or_else(|| {
                let incarnation = self.store.space.incarnation(index);
                let scan = scan_segment(&self.store, index, Some(incarnation));
                scan.ok().flatten().map(|s| s.entries).unwrap_or_default()
            });
        next.work = self
            .reinserter
            .begin(index, sequence, &next.victim, objects);
        next.stage = Stage::Reinserting;
    }

    /// Handles a part of the victim that was read.
    pub(super) fn victim_part_done(
        &mut self,
        sequence: u64,
        buf: Option<AlignedBuf>,
        objects: &Objects,
    ) {
        if let Some(next) = self.queue.find(sequence) {
            self.reinserter.part_done(&mut next.work, buf, objects);
        }
    }

    /// Returns the bytes of a slot with the open header of incarnation `sequence`, and without entries.
    fn open_header_of(&self, index: u32, sequence: u64) -> AlignedBuf {
        let unused = OpenSegment::empty(index, sequence);
        summary(
            self.store.space.geometry(),
            self.store.space.uuid(),
            &unused,
            true,
        )
        .slot
    }

    fn write_open_header(&self, next: &mut Preparing, io: &mut Io) {
        let geometry = *self.store.space.geometry();
        let buf = self.open_header_of(next.index, next.sequence);
        let len = buf.len();
        add(&self.store.counters.meta_bytes, len as u64);
        let purpose = Purpose::OpenSlot(next.sequence);
        io.write(purpose, geometry.slot_at(next.index), len, buf);
        next.stage = Stage::Opening;
    }

    /// Handles the end of the write of an open header, successful or not.
    pub(super) fn open_header_done(
        &mut self,
        sequence: u64,
        result: io::Result<()>,
        io: &mut Io,
    ) -> Result<(), Fault> {
        let Some(next) = self.queue.find(sequence) else {
            return Ok(());
        };
        match result {
            Ok(()) => {
                next.stage = Stage::Flushing(io.want_flush());
                Ok(())
            }
            Err(error) => {
                next.stage = rule!(
                    "reuse: an open header that could not be written is not taken for written",
                    Stage::Unopened,
                    Stage::Flushing(io.want_flush())
                );
                let at = self.store.space.geometry().slot_at(next.index);
                Err(Fault::write(at, error))
            }
        }
    }

    /// Begins to read the open header back. If the disk still contained the old slot, a start would load
    /// the old incarnation, although from now on removals of its records are not logged.
    fn check_open_header(&self, next: &mut Preparing, io: &mut Io) {
        let len = self.open_header_of(next.index, next.sequence).len();
        let at = self.store.space.geometry().slot_at(next.index);
        io.read(Purpose::OpenSlotCheck(next.sequence), at, len);
        next.stage = Stage::Checking;
    }

    /// Checks the open header that was read back. A missing open header must be written again.
    pub(super) fn open_header_checked(
        &mut self,
        sequence: u64,
        found: Option<&AlignedBuf>,
    ) -> Result<(), Fault> {
        let Some(index) = self.queue.find(sequence).map(|next| next.index) else {
            return Ok(());
        };
        let made = self.open_header_of(index, sequence);
        let right = rule!(
            "reuse: the open header is read back before anything relies on it",
            found.is_some_and(|found| found[..] == made[..]),
            true
        );
        if let Some(next) = self.queue.find(sequence) {
            next.stage = if right {
                Stage::Opened
            } else {
                Stage::Unopened
            };
        }
        match right {
            true => Ok(()),
            false => Err(Fault::lost(self.store.space.geometry().slot_at(index))),
        }
    }

    /// Drops some of the victim's index entries. When all entries are dropped, the segment is ready.
    fn drop_entries(&mut self, next: &mut Preparing, old: u64, objects: &Objects) {
        let rest = next.victim.len().saturating_sub(DROP_STEP);
        let mut dropped = 0;
        for entry in next.victim.drain(rest..).filter(Entry::is_record) {
            let Some(spot) = self.store.space.spot(next.index, entry.offset_units) else {
                continue;
            };
            dropped += u64::from(objects.drop_entry(entry.hash, spot));
        }
        add(&self.store.counters.reuse_dropped, dropped);
        if !next.victim.is_empty() {
            return;
        }
        next.victim = Vec::new();
        if old != 0 {
            add(&self.store.counters.reused, 1);
            self.sweep(next.index, objects);
        }
        self.forget_passed_over(std::mem::take(&mut next.passed_over), objects);
        self.store
            .space
            .begin_incarnation(next.index, next.sequence);
        next.stage = Stage::Ready;
    }

    /// If tables were damaged, drops the victim's index entries that were not in its tables. Without this,
    /// reads through these entries would later find other records and fail their checks.
    fn sweep(&mut self, index: u32, objects: &Objects) {
        if !std::mem::take(&mut self.tables_damaged) {
            return;
        }
        self.sweep_segment(index, objects);
    }

    fn sweep_segment(&self, index: u32, objects: &Objects) {
        let start = self
            .store
            .space
            .spot(index, 0)
            .map_or(0, |s| s.address.sectors());
        let sectors =
            u64::from(self.store.space.geometry().segment_bytes) / foxy_index::SECTOR_BYTES;
        let removed = objects.sweep(start..start + sectors);
        add(&self.store.counters.reuse_dropped, removed);
    }
}

fn slot_entries(store: &StoreShared, index: u32, slot: &[u8]) -> Option<Vec<Entry>> {
    let header = SlotHeader::decode(slot.get(..SLOT_HEADER_BYTES)?).ok()?;
    let sealed = header.state == foxy_format::SegmentState::Sealed;
    let own =
        header.uuid == store.space.uuid() && header.sequence == store.space.incarnation(index);
    let right = sealed
        && rule!(
            "reuse: the victim's slot is of its present incarnation",
            own,
            true
        );
    let (disk, geometry) = (&*store.disk, store.space.geometry());
    right.then(|| summary_entries(disk, geometry, &header, slot))?
}
