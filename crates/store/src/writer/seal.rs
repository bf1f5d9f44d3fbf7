//! Sealing full segments.
//!
//! A segment is sealed in this order: all clusters are written, then a flush, then the summary slot. If
//! a crash comes before the slot is complete, a start finds the contents of the segment by its
//! clusters.

use std::collections::VecDeque;
use std::sync::Arc;

use foxy_base::rule;

use super::io::{Io, Purpose};
use crate::interface::add;
use crate::shared::{OpenSegment, StoreShared, summary};

/// A full segment that is being sealed.
#[derive(Debug)]
struct Sealing {
    segment: OpenSegment,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Clusters are being written.
    Writing,
    /// The part of the summary that does not fit into the slot is being written.
    Spilling,
    /// The segment waits for this flush.
    Flushing(u64),
    /// The slot is being written.
    Slot,
    /// The slot is written, or it was given up. In the second case a start reads the clusters.
    Done,
}

/// The full segments that are being sealed, oldest first.
#[derive(Debug)]
pub(super) struct Sealer {
    store: Arc<StoreShared>,
    all: VecDeque<Sealing>,
}

impl Sealer {
    pub(super) const fn new(store: Arc<StoreShared>) -> Self {
        Self {
            store,
            all: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes a segment that gets no more clusters.
    pub(super) fn take(&mut self, segment: OpenSegment) {
        self.all.push_back(Sealing {
            segment,
            stage: Stage::Writing,
        });
    }

    /// Returns the segments that are being sealed.
    pub(super) fn segments(&self) -> impl Iterator<Item = &OpenSegment> {
        self.all.iter().map(|sealed| &sealed.segment)
    }

    /// Returns the segments that are being sealed, so that they can be changed.
    pub(super) fn segments_mut(&mut self) -> impl Iterator<Item = &mut OpenSegment> {
        self.all.iter_mut().map(|sealed| &mut sealed.segment)
    }

    /// Continues sealing every segment by one step, in order.
    pub(super) fn step(&mut self, io: &mut Io) {
        for sealed in &mut self.all {
            sealed.step(&self.store, io);
        }
        self.drop_finished();
    }

    /// Handles the end of the write of a spill. If it failed, a start reads the clusters instead.
    pub(super) fn spill_done(&mut self, sequence: u64, written: bool, io: &mut Io) {
        let stage = if written {
            Stage::Flushing(io.want_flush())
        } else {
            add(&self.store.counters.write_errors, 1);
            Stage::Done
        };
        let mut all = self.all.iter_mut();
        if let Some(sealed) = all.find(|s| s.segment.sequence == sequence) {
            sealed.stage = stage;
        }
        self.drop_finished();
    }

    /// Handles the end of the write of a summary slot. If it failed, a start reads the clusters
    /// instead.
    pub(super) fn slot_done(&mut self, sequence: u64, written: bool) {
        if !written {
            add(&self.store.counters.write_errors, 1);
        }
        let all = self.all.iter_mut();
        for sealed in all.filter(|s| s.segment.sequence == sequence) {
            sealed.stage = Stage::Done;
        }
        self.drop_finished();
    }

    fn drop_finished(&mut self) {
        while self.all.pop_front_if(|s| s.stage == Stage::Done).is_some() {}
    }
}

impl Sealing {
    fn step(&mut self, store: &StoreShared, io: &mut Io) {
        let written = rule!(
            "seal: the summary waits until all clusters are written",
            self.segment.writing == 0,
            true
        );
        if self.stage == Stage::Writing && written {
            self.stage = self.spill(store, io);
        }
        if let Stage::Flushing(number) = self.stage {
            match rule!(
                "seal: the summary is written after the flush",
                io.flushed(number),
                Some(true)
            ) {
                Some(true) => self.stage = self.write_slot(store, io),
                // The clusters may be lost, so the slot must not list them.
                Some(false) => {
                    self.stage = rule!(
                        "seal: no summary vouches for clusters whose flush failed",
                        Stage::Done,
                        self.write_slot(store, io)
                    );
                }
                None => {}
            }
        }
    }

    /// Writes the entries for which the slot has no room. The flush comes after this write, and the slot
    /// after the flush.
    fn spill(&self, store: &StoreShared, io: &mut Io) -> Stage {
        let summary = summary(
            store.space.geometry(),
            store.space.uuid(),
            &self.segment,
            false,
        );
        let Some((at, buf)) = summary.spill else {
            return Stage::Flushing(io.want_flush());
        };
        let len = buf.len();
        add(&store.counters.meta_bytes, len as u64);
        io.write(Purpose::Spill(self.segment.sequence), at, len, buf);
        Stage::Spilling
    }

    fn write_slot(&self, store: &StoreShared, io: &mut Io) -> Stage {
        let (geometry, segment) = (store.space.geometry(), &self.segment);
        let buf = summary(geometry, store.space.uuid(), segment, false).slot;
        let len = buf.len();
        add(&store.counters.meta_bytes, len as u64);
        add(&store.counters.sealed, 1);
        let purpose = Purpose::SealSlot(segment.sequence);
        io.write(purpose, geometry.slot_at(segment.index), len, buf);
        Stage::Slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::stand::Stand;

    #[test]
    fn a_summary_waits_for_clusters_and_a_flush() {
        let mut stand = Stand::new();
        let mut sealer = Sealer::new(stand.store.clone());
        let mut segment = OpenSegment::empty(0, 5);
        (segment.used_units, segment.writing) = (64, 1);
        sealer.take(segment);
        let sealed = |stand: &Stand| stand.store.counters.read().sealed;
        for _ in 0..2 {
            sealer.step(&mut stand.io);
            assert!(stand.run().is_empty(), "a cluster is under way");
        }
        sealer
            .segments_mut()
            .for_each(|segment| segment.writing = 0);
        sealer.step(&mut stand.io);
        assert_eq!((stand.run().len(), sealed(&stand)), (1, 0), "a flush");
        sealer.step(&mut stand.io);
        let done = stand.run();
        assert!(done.iter().any(|done| done.purpose == Purpose::SealSlot(5)));
        assert!(!sealer.is_empty());
        sealer.slot_done(5, true);
        assert_eq!((sealer.is_empty(), sealed(&stand)), (true, 1));
    }
}
