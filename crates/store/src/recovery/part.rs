//! A segment that is to be loaded, and the entries from its summary or its clusters.

use foxy_base::rule;
use foxy_disk::Disk;
use foxy_format::{
    Entry, Geometry, SLOT_HEADER_BYTES, SegmentState, SlotHeader, decode_slot_entries,
};

use super::chain::{Incarnation, Seen};
use super::scan::{Scan, scan_segment};
use crate::interface::add;
use crate::shared::StoreShared;

/// A segment that is to be loaded.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) index: u32,
    pub(crate) sequence: u64,
    pub(crate) used_units: u32,
    /// True if the slot of the segment contains an open header: the incarnation has begun, and has no summary
    /// yet.
    pub(crate) open: bool,
    /// The header of the segment's slot, if the entries must still be read from there; `None` if they are
    /// in `entries`.
    pub(super) header: Option<SlotHeader>,
    /// The entries of the segment, if they were read already.
    pub(crate) entries: Vec<Entry>,
    /// The segment's clusters, if the segment was searched.
    clusters: Vec<Seen>,
    /// The number of the last cluster that the slot names as durable; 0 if it names none.
    named: u64,
}

impl Part {
    pub(crate) const fn sealed(index: u32, header: SlotHeader) -> Self {
        Self {
            index,
            sequence: header.sequence,
            used_units: header.used_units,
            open: false,
            header: Some(header),
            entries: Vec::new(),
            clusters: Vec::new(),
            named: header.last_cluster,
        }
    }
    /// Makes the part of a scanned segment. `slot` is the open header in the segment's slot, if the slot
    /// contains an open header.
    pub(crate) fn scanned(index: u32, scan: Scan, slot: Option<&SlotHeader>) -> Self {
        Self {
            index,
            sequence: scan.sequence,
            used_units: scan.end_units,
            open: slot.is_some(),
            header: None,
            entries: scan.entries,
            clusters: scan.clusters,
            named: slot.map_or(0, |slot| slot.last_cluster),
        }
    }
    /// Returns the known clusters of the segment.
    pub(super) fn incarnation(&self) -> Incarnation<'_> {
        Incarnation {
            sequence: self.sequence,
            seen: self.header.is_none().then_some(&self.clusters),
            named: self.named,
        }
    }
    /// Number of the segment's last cluster; 0: not known.
    pub(super) fn last_cluster(&self) -> u64 {
        let seen = self.clusters.iter().map(|seen| seen.link.number);
        seen.fold(self.named, u64::max)
    }
    /// Returns whether the segment has an open header and is empty.
    pub(crate) const fn is_unused(&self) -> bool {
        self.open && self.used_units == 0
    }
    /// Returns whether the slot of the segment does not list its contents, so that a summary must still
    /// be written.
    pub(crate) const fn needs_slot(&self) -> bool {
        self.header.is_none()
    }
    /// Number of the segment's entries.
    pub(super) fn count(&self) -> u64 {
        let listed = self.header.map_or(0, |header| u64::from(header.entries));
        listed + self.entries.len() as u64
    }
    /// Reads the entries of the segment now. Returns `None` if that fails.
    pub(crate) fn make_scanned(&mut self, store: &StoreShared) -> Option<()> {
        if let Some(header) = self.header {
            let mut slot = vec![0; slot_len(store.space.geometry(), &header)];
            let read = store
                .disk
                .read_at(store.space.geometry().slot_at(self.index), &mut slot);
            let entries = read
                .ok()
                .and_then(|()| sealed_entries(store, &header, &slot));
            self.entries = match entries {
                Some(entries) => entries,
                None => scanned_entries(store, self)?,
            };
            self.header = None;
        }
        Some(())
    }
}

/// Returns the entries of a segment as its clusters contain them, or `None` if the clusters do not
/// contain all of its entries.
pub(super) fn scanned_entries(store: &StoreShared, part: &Part) -> Option<Vec<Entry>> {
    let scan = scan_segment(store, part.index, Some(part.sequence));
    let entries = scan.ok().flatten()?.entries;
    let sealed = part.header.filter(|h| h.state == SegmentState::Sealed);
    let all = sealed.is_none_or(|header| entries.len() >= header.entries as usize);
    rule!(
        "load: clusters tell a segment only if they tell all that its summary counts",
        all,
        true
    )
    .then_some(entries)
}

/// The number of used bytes of a slot.
pub(super) fn slot_len(geometry: &Geometry, header: &SlotHeader) -> usize {
    let summary = SLOT_HEADER_BYTES + header.entries as usize * foxy_format::ENTRY_BYTES;
    summary.min(geometry.slot_bytes as usize)
}

/// Returns the entries of a segment whose slot was read. The entries for which the slot has no room are read
/// from the end of the segment. Returns `None` if a read fails or the entries are damaged.
pub(crate) fn summary_entries(
    disk: &dyn Disk,
    geometry: &Geometry,
    header: &SlotHeader,
    slot: &[u8],
) -> Option<Vec<Entry>> {
    let entries = header.entries as usize;
    let spill = geometry.spill_bytes(entries);
    if spill == 0 {
        return decode_slot_entries(header, slot, geometry.segment_bytes).ok();
    }
    let at = geometry.spill_at(header.segment, entries)?;
    let first = geometry.slot_bytes as usize;
    let mut summary = slot.get(..first)?.to_vec();
    summary.resize(first + spill as usize, 0);
    disk.read_at(at, &mut summary[first..]).ok()?;
    decode_slot_entries(header, &summary, geometry.segment_bytes).ok()
}

/// Returns the entries in a slot and its spill (the entries for which the slot has no room), or `None` if
/// they are damaged.
pub(super) fn read_entries(
    store: &StoreShared,
    header: &SlotHeader,
    slot: &[u8],
    spill: &[u8],
) -> Option<Vec<Entry>> {
    if header.state != SegmentState::Sealed {
        return None;
    }
    let decode =
        |summary: &[u8]| decode_slot_entries(header, summary, store.space.geometry().segment_bytes);
    let entries = if spill.is_empty() {
        decode(slot)
    } else {
        decode(&[slot, spill].concat())
    };
    let entries = entries.ok();
    count(store, entries.is_some());
    entries
}

/// Does the same as [`read_entries`], but reads the spill itself.
fn sealed_entries(store: &StoreShared, header: &SlotHeader, slot: &[u8]) -> Option<Vec<Entry>> {
    if header.state != SegmentState::Sealed {
        return None;
    }
    let entries = summary_entries(&*store.disk, store.space.geometry(), header, slot);
    add(
        &store.counters.load_bytes,
        store.space.geometry().spill_bytes(header.entries as usize),
    );
    count(store, entries.is_some());
    entries
}

/// Counts a summary under `load_slots` if it could be used, and otherwise under `damaged`.
fn count(store: &StoreShared, used: bool) {
    let counters = &store.counters;
    add(
        if used {
            &counters.load_slots
        } else {
            &counters.damaged
        },
        1,
    );
}
