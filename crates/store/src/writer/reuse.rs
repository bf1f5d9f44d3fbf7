//! Reuse of segments, strictly in sequence.
//!
//! Order: read the victim and write again what was used since it was written; mark the slot with
//! the new life; flush; read the mark back; drop the index entries; only then overwrite. Until the mark is durable the
//! index still knows every record of the victim, so a supersession leaves its removal in the log;
//! afterwards a restart rejects the old life. Several segments may be on their way at once: each
//! keeps this order, they choose, are marked and dropped in sequence, and their marks share flushes.

use foxy_base::rule;
use foxy_disk::AlignedBuf;
use foxy_format::{Entry, SLOT_HEADER_BYTES, SlotHeader};

use super::Writer;
use super::io::Purpose;
use super::line::{Preparing, Stage};
use super::reinsert::Reinsertion;
use super::segment::{OpenSegment, summary};
use super::trouble::Fault;
use crate::recovery::{scan_segment, summary_entries};
use crate::stats::add;

/// Index entries dropped by one turn.
const DROP_STEP: usize = 4096;

impl Writer {
    /// Takes the preparation of the next segments a step further.
    pub(super) fn reuse_step(&mut self) {
        self.begin_reuse();
        let mut all = std::mem::take(&mut self.line.all);
        let (mut marked, mut ready) = (true, true);
        for next in &mut all {
            self.prepare(next, marked, ready);
            marked &= next.is_marked();
            ready &= next.stage == Stage::Ready;
        }
        self.line.all = all;
    }

    /// Takes one a step further. Marks and drops come in sequence: those before it have to be
    /// `marked`, or `ready`, first.
    fn prepare(&mut self, next: &mut Preparing, marked: bool, ready: bool) {
        let hurry = self.line.is_urgent();
        if next.stage == Stage::Reinserting && self.reinsert_step(&mut next.work, hurry) {
            next.work = Reinsertion::default();
            next.stage = Stage::Unmarked;
        }
        match next.stage {
            Stage::Unmarked
                if rule!("reuse: slots are marked in sequence", marked, true)
                    && self.trouble.may_write(self.now) =>
            {
                self.mark(next);
            }
            Stage::Flushing(number) => match rule!(
                "reuse: entries are dropped after the flush of the mark",
                self.io.flushed(number),
                Some(true)
            ) {
                None => {}
                Some(true) => self.check_mark(next),
                // Not durable: the mark has to be made again, later.
                Some(false) => rule!(
                    "reuse: a mark whose flush failed is made again",
                    next.stage = Stage::Unmarked,
                    next.stage = Stage::Dropping(self.store.life(next.index))
                ),
            },
            Stage::Marked if rule!("reuse: entries are dropped in sequence", ready, true) => {
                next.stage = Stage::Dropping(self.store.life(next.index));
            }
            Stage::Dropping(old) => self.drop_entries(next, old),
            _ => {}
        }
    }

    fn begin_reuse(&mut self) {
        let geometry = self.store.geometry;
        let half = self.log.is_half_full();
        let loading = rule!(
            "reuse: it does not begin while the store is being loaded",
            self.opening.is_loading(),
            false
        );
        let blocked = loading || !self.trouble.may_write(self.now);
        if blocked || self.line.all.len() >= self.line.wanted(half) {
            return;
        }
        // The budget for writing again is given out in sequence.
        if !self.line.all.back().is_none_or(Preparing::has_chosen) {
            return;
        }
        let Some(mut next) = self.next_in_line() else {
            return;
        };
        if self.store.life(next.index) == 0 {
            next.stage = Stage::Unmarked;
        } else {
            let at = geometry.slot_at(next.index);
            let purpose = Purpose::VictimSlot(next.sequence);
            self.io.read(purpose, at, geometry.slot_bytes as usize);
        }
        self.line.all.push_back(next);
    }

    /// The segment whose turn it is; those in quarantine are passed over. They stay known until
    /// the mark of the one after them is durable: until then a start would load them, and what is
    /// superseded needs its removal.
    fn next_in_line(&mut self) -> Option<Preparing> {
        let geometry = self.store.geometry;
        let mut passed_over = Vec::new();
        for sequence in self.next_sequence..self.next_sequence + u64::from(geometry.segments) {
            let index = geometry.segment_of(sequence);
            let in_use = self.log.is_open(index);
            let sound = rule!(
                "reuse: segments in quarantine are passed over",
                !self.store.condition.is_quarantined(index),
                true
            );
            if sound && !in_use && !self.line.has(index) {
                self.next_sequence = sequence + 1;
                return Some(Preparing {
                    passed_over,
                    ..Preparing::new(index, sequence, Stage::Reading)
                });
            }
            rule!(
                "reuse: what lay in a segment that is passed over is forgotten with the next mark",
                passed_over.push(index),
                self.forget_passed_over(vec![index])
            );
        }
        // With most of them in quarantine nothing is written; so this is not met.
        None
    }

    /// Forgets the segments that were passed over: their contents are gone, and the next start does
    /// not load them.
    fn forget_passed_over(&self, passed_over: Vec<u32>) {
        for index in passed_over {
            self.sweep_segment(index);
            self.store.lives[index as usize].store(0, std::sync::atomic::Ordering::Release);
        }
    }

    /// The victim's slot was read: what is in the victim, and which of it is still wanted?
    pub(super) fn victim_slot_done(
        &mut self,
        sequence: u64,
        result: &std::io::Result<()>,
        buf: Option<AlignedBuf>,
    ) {
        let Some(index) = self.line.find(sequence).map(|next| next.index) else {
            return;
        };
        let slot = result.is_ok().then_some(buf).flatten();
        let victim = slot
            .and_then(|slot| self.slot_entries(index, &slot))
            .unwrap_or_else(|| {
                let life = self.store.life(index);
                let scan = scan_segment(&self.store, index, Some(life));
                scan.ok().flatten().map(|s| s.entries).unwrap_or_default()
            });
        let work = self.reinsert_begin(index, sequence, &victim);
        if let Some(next) = self.line.find(sequence) {
            (next.victim, next.work) = (victim, work);
            next.stage = Stage::Reinserting;
        }
    }

    fn slot_entries(&self, index: u32, slot: &[u8]) -> Option<Vec<Entry>> {
        let header = SlotHeader::decode(slot.get(..SLOT_HEADER_BYTES)?).ok()?;
        let sealed = header.state == foxy_format::SegmentState::Sealed;
        let own = header.uuid == self.store.uuid && header.sequence == self.store.life(index);
        let right = sealed && rule!("reuse: the victim's slot is of its present life", own, true);
        let (disk, geometry) = (&*self.store.disk, &self.store.geometry);
        right.then(|| summary_entries(disk, geometry, &header, slot))?
    }

    /// The bytes of the slot of a segment that begins a life.
    fn mark_of(&self, index: u32, sequence: u64) -> AlignedBuf {
        let unused = OpenSegment::empty(index, sequence);
        summary(&self.store.geometry, self.store.uuid, &unused, true).slot
    }

    fn mark(&mut self, next: &mut Preparing) {
        let geometry = self.store.geometry;
        let buf = self.mark_of(next.index, next.sequence);
        let len = buf.len();
        add(&self.store.counters.meta_bytes, len as u64);
        let purpose = Purpose::OpenSlot(next.sequence);
        self.io
            .write(purpose, geometry.slot_at(next.index), len, buf);
        next.stage = Stage::Marking;
    }

    /// The slot was marked, or not.
    pub(super) fn mark_done(&mut self, sequence: u64, result: std::io::Result<()>) {
        let Some(next) = self.line.find(sequence) else {
            return;
        };
        match result {
            Ok(()) => next.stage = Stage::Flushing(self.io.want_flush()),
            Err(error) => {
                next.stage = rule!(
                    "reuse: a mark that could not be written is not taken for made",
                    Stage::Unmarked,
                    Stage::Flushing(self.io.want_flush())
                );
                let at = self.store.geometry.slot_at(next.index);
                self.write_failed(&Fault::write(at, error));
            }
        }
    }

    /// Reads the mark back. A start that found the old slot would take the old life for present, and
    /// what is removed of that life from now on leaves no trace.
    fn check_mark(&mut self, next: &mut Preparing) {
        let len = self.mark_of(next.index, next.sequence).len();
        let at = self.store.geometry.slot_at(next.index);
        self.io.read(Purpose::MarkCheck(next.sequence), at, len);
        next.stage = Stage::Checking;
    }

    /// The mark was read back: if it is not there, it has to be made again.
    pub(super) fn mark_checked(
        &mut self,
        sequence: u64,
        result: &std::io::Result<()>,
        buf: Option<&AlignedBuf>,
    ) {
        let Some(index) = self.line.find(sequence).map(|next| next.index) else {
            return;
        };
        let made = self.mark_of(index, sequence);
        let found = buf.filter(|_| result.is_ok());
        let right = rule!(
            "reuse: the mark is read back before anything relies on it",
            found.is_some_and(|found| found[..] == made[..]),
            true
        );
        if let Some(next) = self.line.find(sequence) {
            next.stage = if right {
                Stage::Marked
            } else {
                Stage::Unmarked
            };
        }
        if !right {
            let at = self.store.geometry.slot_at(index);
            self.write_failed(&Fault::lost(at));
        }
    }

    /// Drops some of the victim's index entries; at the end the segment is ready.
    fn drop_entries(&mut self, next: &mut Preparing, old: u64) {
        let rest = next.victim.len().saturating_sub(DROP_STEP);
        let mut dropped = 0;
        for entry in next.victim.drain(rest..).filter(Entry::is_record) {
            let Some(spot) = self.store.spot(next.index, entry.offset_units) else {
                continue;
            };
            dropped += u64::from(self.objects.drop_entry(entry.hash, spot));
        }
        add(&self.store.counters.reuse_dropped, dropped);
        if !next.victim.is_empty() {
            return;
        }
        next.victim = Vec::new();
        if old != 0 {
            add(&self.store.counters.reused, 1);
            self.sweep(next.index);
        }
        self.forget_passed_over(std::mem::take(&mut next.passed_over));
        let life = &self.store.lives[next.index as usize];
        life.store(next.sequence, std::sync::atomic::Ordering::Release);
        next.stage = Stage::Ready;
    }

    /// Entries that the victim's tables did not name (damaged tables) would outlive it; reads of
    /// them would find other records and fail their checks, but the entries would stay.
    fn sweep(&mut self, index: u32) {
        if !std::mem::take(&mut self.tables_damaged) {
            return;
        }
        self.sweep_segment(index);
    }

    fn sweep_segment(&self, index: u32) {
        let start = self.store.spot(index, 0).map_or(0, |s| s.address.units());
        let sectors = u64::from(self.store.geometry.segment_bytes) / foxy_index::UNIT_BYTES;
        let removed = self.objects.sweep(start..start + sectors);
        add(&self.store.counters.reuse_dropped, removed);
    }
}
