//! Segments: the open one, and sealing full ones.
//!
//! At seal: all clusters written, then a flush, then the summary slot. A crash before the slot is
//! whole finds the segment by its clusters.

use std::collections::VecDeque;

use foxy_disk::AlignedBuf;
use foxy_format::{
    Entry, Geometry, SegmentState, SlotHeader, StoreUuid, UNIT, encode_slot, round_to_block,
};

use super::Writer;
use super::io::Purpose;
use super::reuse::Next;
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
}

impl OpenSegment {
    pub(crate) const fn empty(index: u32, sequence: u64) -> Self {
        Self {
            index,
            sequence,
            used_units: 0,
            entries: Vec::new(),
            writing: 0,
        }
    }

    pub(super) const fn room_bytes(&self, geometry: &Geometry) -> u64 {
        geometry.segment_bytes as u64 - self.used_units as u64 * UNIT
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

/// The bytes of a segment's slot, padded to whole blocks.
pub(crate) fn slot_bytes(
    geometry: &Geometry,
    uuid: StoreUuid,
    segment: &OpenSegment,
    open: bool,
) -> AlignedBuf {
    let fits = segment.entries.len() <= geometry.slot_entries();
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
    };
    let mut bytes = encode_slot(&header, entries);
    bytes.resize(round_to_block(bytes.len() as u64) as usize, 0);
    AlignedBuf::copy_of(&bytes)
}

impl Writer {
    /// Sees to it that the open segment has `need` bytes left, going on to the next one if that
    /// is ready. False: not yet.
    pub(super) fn ensure_segment(&mut self, need: u64) -> bool {
        let geometry = self.store.geometry;
        let condition = &self.store.condition;
        if self
            .current
            .as_ref()
            .is_some_and(|s| s.room_bytes(&geometry) >= need && !condition.is_quarantined(s.index))
        {
            return true;
        }
        self.next_urgent = true;
        let Next::Ready { index, sequence } = self.next else {
            return false;
        };
        self.next = Next::Idle;
        self.next_urgent = false;
        if let Some(full) = self.current.replace(OpenSegment::empty(index, sequence)) {
            add(
                &self.store.counters.segment_tail_bytes,
                full.room_bytes(&geometry),
            );
            self.sealing.push_back(Sealing::new(full));
        }
        true
    }

    /// Takes every sealing segment a step further, in order.
    pub(super) fn seal_step(&mut self) {
        let mut sealing = std::mem::take(&mut self.sealing);
        for sealed in &mut sealing {
            if sealed.stage == Stage::Writing && sealed.segment.writing == 0 {
                sealed.stage = Stage::Flushing(self.io.want_flush());
            }
            if let Stage::Flushing(number) = sealed.stage {
                match self.io.flushed(number) {
                    Some(true) => {
                        self.write_slot(&sealed.segment);
                        sealed.stage = Stage::Slot;
                    }
                    // The clusters may be gone: the slot must not vouch for them.
                    Some(false) => sealed.stage = Stage::Done,
                    None => {}
                }
            }
        }
        self.sealing = sealing;
        drop_finished(&mut self.sealing);
    }

    fn write_slot(&mut self, segment: &OpenSegment) {
        let geometry = self.store.geometry;
        let buf = slot_bytes(&geometry, self.store.uuid, segment, false);
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
