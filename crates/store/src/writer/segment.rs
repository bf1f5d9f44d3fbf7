//! Segments: the open one, and sealing full ones.
//!
//! At seal: all clusters written, then a flush, then the summary slot. A crash before the slot is
//! whole finds the segment by its clusters.

use std::collections::VecDeque;

use foxy_base::rule;
use foxy_disk::AlignedBuf;
use foxy_format::{
    Entry, Geometry, SegmentState, SlotHeader, StoreUuid, UNIT, encode_slot, round_to_block,
};

use super::Writer;
use super::io::Purpose;
use crate::stats::add;

/// A segment that takes clusters.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub(crate) index: u32,
    pub(crate) sequence: u64,
    pub(crate) used_units: u32,
    /// Everything in it, in order of writing.
    pub(crate) entries: Vec<Entry>,
    /// Clusters being written.
    pub(crate) writing: u32,
    /// Number of its last cluster; 0: none, or not known.
    pub(crate) last_cluster: u64,
}

impl OpenSegment {
    pub(crate) const fn empty(index: u32, sequence: u64) -> Self {
        Self {
            index,
            sequence,
            used_units: 0,
            entries: Vec::new(),
            writing: 0,
            last_cluster: 0,
        }
    }

    /// Room for a cluster with so many entries, beside the part of the summary that will not fit
    /// into the slot. Whole blocks.
    pub(super) const fn room_bytes(&self, geometry: &Geometry, entries: usize) -> u64 {
        let spill = geometry.spill_bytes(self.entries.len() + entries);
        let taken = self.used_units as u64 * UNIT + spill;
        (geometry.segment_bytes as u64).saturating_sub(taken)
    }
}

/// A full segment on its way to being sealed.
#[derive(Debug)]
pub(super) struct Sealing {
    pub(super) segment: OpenSegment,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Clusters are being written.
    Writing,
    /// The part of the summary that does not fit into the slot is being written.
    Spilling,
    /// Waits for this flush.
    Flushing(u64),
    /// The slot is being written.
    Slot,
    /// The slot is written (or given up: the clusters tell as well).
    Done,
}

impl Sealing {
    pub(super) const fn new(segment: OpenSegment) -> Self {
        Self {
            segment,
            stage: Stage::Writing,
        }
    }
}

/// A segment's summary: the bytes of its slot, and those at the end of the segment. Whole blocks.
pub(crate) struct Summary {
    pub(crate) slot: AlignedBuf,
    pub(crate) spill: Option<(u64, AlignedBuf)>,
}

pub(crate) fn summary(
    geometry: &Geometry,
    uuid: StoreUuid,
    segment: &OpenSegment,
    open: bool,
) -> Summary {
    // A segment that recovery closes may have been filled without regard to its summary.
    let taken = u64::from(segment.used_units) * UNIT + geometry.spill_bytes(segment.entries.len());
    let fits = rule!(
        "seal: a summary that does not fit beside the clusters is left out",
        taken <= u64::from(geometry.segment_bytes),
        true
    );
    let (state, entries) = match (open, fits) {
        (true, _) => (SegmentState::Open, &[][..]),
        (false, true) => (SegmentState::Sealed, &segment.entries[..]),
        (false, false) => (SegmentState::SealedOverflow, &[][..]),
    };
    let header = SlotHeader {
        state,
        uuid,
        segment: segment.index,
        sequence: segment.sequence,
        used_units: if open { 0 } else { segment.used_units },
        entries: 0,
        entries_crc: 0,
        last_cluster: segment.last_cluster,
    };
    let bytes = encode_slot(&header, entries);
    let (slot, spill) = bytes.split_at(bytes.len().min(geometry.slot_bytes as usize));
    let at = geometry.spill_at(segment.index, entries.len());
    Summary {
        slot: whole_blocks(slot),
        spill: at.map(|at| (at, whole_blocks(spill))),
    }
}

fn whole_blocks(bytes: &[u8]) -> AlignedBuf {
    let mut padded = bytes.to_vec();
    padded.resize(round_to_block(bytes.len() as u64) as usize, 0);
    AlignedBuf::copy_of(&padded)
}

impl Writer {
    /// Sees to it that the open segment has `need` bytes left for a cluster of so many entries,
    /// going on to the next one if that is ready. False: not yet.
    pub(super) fn ensure_segment(&mut self, need: u64, entries: usize) -> bool {
        let geometry = self.store.geometry;
        let condition = &self.store.condition;
        if self.current.as_ref().is_some_and(|s| {
            s.room_bytes(&geometry, entries) >= need
                && rule!(
                    "write: a segment in quarantine gets no more clusters",
                    !condition.is_quarantined(s.index),
                    true
                )
        }) {
            return true;
        }
        let Some((index, sequence)) = self.line.take_ready() else {
            return false;
        };
        if let Some(full) = self.current.replace(OpenSegment::empty(index, sequence)) {
            add(
                &self.store.counters.segment_tail_bytes,
                full.room_bytes(&geometry, 0),
            );
            self.sealing.push_back(Sealing::new(full));
        }
        true
    }

    /// Takes every sealing segment a step further, in order.
    pub(super) fn seal_step(&mut self) {
        let mut sealing = std::mem::take(&mut self.sealing);
        for sealed in &mut sealing {
            let written = rule!(
                "seal: the summary waits until all clusters are written",
                sealed.segment.writing == 0,
                true
            );
            if sealed.stage == Stage::Writing && written {
                sealed.stage = self.spill(&sealed.segment);
            }
            if let Stage::Flushing(number) = sealed.stage {
                match rule!(
                    "seal: the summary is written after the flush",
                    self.io.flushed(number),
                    Some(true)
                ) {
                    Some(true) => {
                        self.write_slot(&sealed.segment);
                        sealed.stage = Stage::Slot;
                    }
                    // The clusters may be gone: the slot must not vouch for them.
                    Some(false) => rule!(
                        "seal: no summary vouches for clusters whose flush failed",
                        sealed.stage = Stage::Done,
                        {
                            self.write_slot(&sealed.segment);
                            sealed.stage = Stage::Slot;
                        }
                    ),
                    None => {}
                }
            }
        }
        self.sealing = sealing;
        drop_finished(&mut self.sealing);
    }

    /// Writes what the slot has no room for, before the flush that the slot waits for.
    fn spill(&mut self, segment: &OpenSegment) -> Stage {
        let summary = summary(&self.store.geometry, self.store.uuid, segment, false);
        let Some((at, buf)) = summary.spill else {
            return Stage::Flushing(self.io.want_flush());
        };
        let len = buf.len();
        add(&self.store.counters.meta_bytes, len as u64);
        self.io
            .write(Purpose::Spill(segment.sequence), at, len, buf);
        Stage::Spilling
    }

    /// That was written, or not: then the clusters tell what is in the segment.
    pub(super) fn spill_done(&mut self, sequence: u64, result: &std::io::Result<()>) {
        let stage = if result.is_ok() {
            Stage::Flushing(self.io.want_flush())
        } else {
            add(&self.store.counters.write_errors, 1);
            Stage::Done
        };
        let mut sealing = self.sealing.iter_mut();
        if let Some(sealed) = sealing.find(|s| s.segment.sequence == sequence) {
            sealed.stage = stage;
        }
        drop_finished(&mut self.sealing);
    }

    fn write_slot(&mut self, segment: &OpenSegment) {
        let geometry = self.store.geometry;
        let buf = summary(&geometry, self.store.uuid, segment, false).slot;
        let len = buf.len();
        add(&self.store.counters.meta_bytes, len as u64);
        add(&self.store.counters.sealed, 1);
        self.io.write(
            Purpose::SealSlot(segment.sequence),
            geometry.slot_at(segment.index),
            len,
            buf,
        );
    }

    /// A summary slot was written, or not: then the clusters tell what is in the segment.
    pub(super) fn slot_done(&mut self, sequence: u64, result: &std::io::Result<()>) {
        if result.is_err() {
            add(&self.store.counters.write_errors, 1);
        }
        for sealed in self
            .sealing
            .iter_mut()
            .filter(|s| s.segment.sequence == sequence)
        {
            sealed.stage = Stage::Done;
        }
        drop_finished(&mut self.sealing);
    }
}

fn drop_finished(sealing: &mut VecDeque<Sealing>) {
    while sealing.pop_front_if(|s| s.stage == Stage::Done).is_some() {}
}
