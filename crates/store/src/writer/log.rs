//! The end of the log: the segment that takes clusters, the full segments that are being sealed, and
//! the chain that links all clusters.

use std::sync::Arc;

use foxy_base::{MonoTime, rule};
use foxy_format::{ClusterHeader, LogPosition, UNIT, chain_sum, cluster_table_bytes};

use super::chain::Chain;
use super::flight::Cluster;
use super::io::Io;
use super::objects::Objects;
use super::records::{Chosen, Records, removal_entries};
use super::seal::Sealer;
use crate::interface::add;
use crate::recovery::Judged;
use crate::shared::{Numbered, OpenSegment, StoreShared};

/// The end of the log of one store.
#[derive(Debug)]
pub(super) struct Log {
    store: Arc<StoreShared>,
    open: Option<OpenSegment>,
    sealer: Sealer,
    chain: Chain,
}

impl Log {
    pub(super) fn new(store: Arc<StoreShared>, open: Option<OpenSegment>, chain: Judged) -> Self {
        Self {
            sealer: Sealer::new(store.clone()),
            store,
            open,
            chain: Chain::new(chain),
        }
    }

    pub(super) const fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(super) const fn chain_mut(&mut self) -> &mut Chain {
        &mut self.chain
    }

    /// The place of the next cluster; it is the beginning of the incarnation `next` if no segment is open.
    pub(super) fn end(&self, next: u64) -> LogPosition {
        self.open.as_ref().map_or(LogPosition::new(next, 0), |s| {
            LogPosition::new(s.sequence, s.used_units)
        })
    }

    /// Returns whether the open segment is over half full, or no segment is open.
    pub(super) fn is_half_full(&self) -> bool {
        let half = self.store.space.geometry().segment_bytes / UNIT as u32 / 2;
        self.open.as_ref().is_none_or(|s| s.used_units > half)
    }

    /// Returns whether this is the open segment.
    pub(super) fn is_open(&self, index: u32) -> bool {
        self.open.as_ref().is_some_and(|s| s.index == index)
    }

    /// The room in the open segment for a cluster of `entries` entries, in bytes.
    pub(super) fn room(&self, entries: usize) -> Option<usize> {
        let segment = self.open.as_ref()?;
        Some(segment.room_bytes(self.store.space.geometry(), entries) as usize)
    }

    /// Returns whether the open segment has `need` bytes left for a cluster of `entries` entries.
    pub(super) fn has_room(&self, need: u64, entries: usize) -> bool {
        let condition = &self.store.condition;
        self.open.as_ref().is_some_and(|s| {
            s.room_bytes(self.store.space.geometry(), entries) >= need
                && rule!(
                    "write: a segment in quarantine gets no more clusters",
                    !condition.is_quarantined(s.index),
                    true
                )
        })
    }

    /// Opens another segment for the log. The previous segment is full.
    pub(super) fn go_on(&mut self, index: u32, sequence: u64) {
        if let Some(full) = self.open.replace(OpenSegment::empty(index, sequence)) {
            add(
                &self.store.counters.segment_tail_bytes,
                full.room_bytes(self.store.space.geometry(), 0),
            );
            self.sealer.take(full);
        }
    }

    /// Makes a cluster at the end of the open segment. Objects that were superseded since they were chosen
    /// are left out. A cluster without removals and objects is made only to confirm removals in earlier
    /// clusters.
    pub(super) fn append(
        &mut self,
        removals: Vec<Numbered>,
        chosen: &[Chosen],
        objects: &Objects,
        buf: &mut [u8],
        now: MonoTime,
    ) -> Option<Cluster> {
        let segment = self.open.as_mut()?;
        let base = segment.used_units;
        let mut entries = removal_entries(&removals, base);
        entries.extend(self.chain.entries(base));
        let first = cluster_table_bytes(entries.len() + chosen.len());
        let mut records = Records::new(&self.store, segment, entries, first, chosen.len());
        for (item, object) in chosen {
            records.add(item, object, objects, buf);
        }
        let (mut entries, records, len) = records.finish(buf);
        let header = ClusterHeader {
            uuid: self.store.space.uuid(),
            sequence: segment.sequence,
            segment: segment.index,
            offset_units: base,
            len_units: (len as u64 / UNIT) as u32,
            entries: entries.len() as u32,
            link: self.chain.next_link(),
        };
        let table = header.encode(&entries);
        let sum = chain_sum(&table).unwrap_or_default();
        self.chain.made(sum, removals.first().map(|r| r.number));
        buf[..table.len()].copy_from_slice(&table);
        buf[table.len()..first].fill(0);
        let disk_at =
            self.store.space.geometry().segment_at(segment.index) + u64::from(base) * UNIT;
        segment.used_units += header.len_units;
        let end = LogPosition::new(segment.sequence, segment.used_units);
        self.store.marks.set_log_end(end);
        segment.entries.append(&mut entries);
        segment.writing += 1;
        segment.last_cluster = header.link.number;
        Some(Cluster {
            number: header.link.number,
            given_up: self.chain.given_up(),
            sequence: segment.sequence,
            segment: segment.index,
            range: disk_at..disk_at + len as u64,
            table: first,
            begun: now,
            records,
            removals,
        })
    }

    /// Notes that the write of a cluster in this incarnation has ended.
    pub(super) fn cluster_ended(&mut self, sequence: u64) {
        let all = self.open.iter_mut().chain(self.sealer.segments_mut());
        for segment in all.filter(|s| s.sequence == sequence) {
            segment.writing -= 1;
        }
    }

    /// Begins to seal the open segment, if it contains anything.
    pub(super) fn close(&mut self) -> bool {
        let Some(segment) = self.open.take().filter(|s| s.used_units > 0) else {
            return false;
        };
        self.sealer.take(segment);
        true
    }

    /// Returns whether a segment is being sealed.
    pub(super) fn is_sealing(&self) -> bool {
        !self.sealer.is_empty()
    }

    /// Continues sealing by one step.
    pub(super) fn seal_step(&mut self, io: &mut Io) {
        self.sealer.step(io);
    }

    /// See [`Sealer::spill_done`].
    pub(super) fn spill_done(&mut self, sequence: u64, written: bool, io: &mut Io) {
        self.sealer.spill_done(sequence, written, io);
    }

    /// See [`Sealer::slot_done`].
    pub(super) fn slot_done(&mut self, sequence: u64, written: bool) {
        self.sealer.slot_done(sequence, written);
    }

    /// The capacity, in entries, of the entry lists of all segments that are open or being sealed.
    pub(super) fn entries(&self) -> usize {
        let all = self.open.iter().chain(self.sealer.segments());
        all.map(|s| s.entries.capacity()).sum()
    }
}
