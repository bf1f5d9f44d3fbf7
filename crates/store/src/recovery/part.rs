//! A segment to load, and the entries that its summary or its clusters tell.

use foxy_base::rule;
use foxy_disk::Disk;
use foxy_format::{
    Entry, Geometry, SLOT_HEADER_BYTES, SegmentState, SlotHeader, decode_slot_entries,
};

use super::chain::{Life, Seen};
use super::scan::{Scan, scan_segment};
use crate::interface::add;
use crate::shared::StoreShared;

/// A segment to load.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) index: u32,
    pub(crate) sequence: u64,
    pub(crate) used_units: u32,
    /// Its slot marks it as open.
    pub(crate) open: bool,
    /// Its slot, unless its clusters had to tell.
    pub(super) header: Option<SlotHeader>,
    /// The entries of its clusters, if they were searched.
    pub(crate) entries: Vec<Entry>,
    /// Its clusters, if they were searched for.
    clusters: Vec<Seen>,
    /// The last cluster that the slot names as durable; 0: none.
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
    /// `slot`: the slot, if it marks the segment as open.
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
    /// Its clusters, as far as they are known.
    pub(super) fn life(&self) -> Life<'_> {
        Life {
            sequence: self.sequence,
            seen: self.header.is_none().then_some(&self.clusters),
            named: self.named,
        }
    }
    /// Number of its last cluster; 0: not known.
    pub(super) fn last_cluster(&self) -> u64 {
        let seen = self.clusters.iter().map(|seen| seen.link.number);
        seen.fold(self.named, u64::max)
    }
    /// Returns whether it is marked open and has nothing in it.
    pub(crate) const fn is_unused(&self) -> bool {
        self.open && self.used_units == 0
    }
    /// Its slot does not tell what is in it.
    pub(crate) const fn needs_slot(&self) -> bool {
        self.header.is_none()
    }
    /// Number of its entries.
    pub(super) fn count(&self) -> u64 {
        let listed = self.header.map_or(0, |header| u64::from(header.entries));
        listed + self.entries.len() as u64
    }
    /// Reads its entries now; `None` if that fails.
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

/// The entries of a segment as its clusters have them; `None` if that is not all of them.
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

/// Bytes of a slot that are used.
pub(super) fn slot_len(geometry: &Geometry, header: &SlotHeader) -> usize {
    let summary = SLOT_HEADER_BYTES + header.entries as usize * foxy_format::ENTRY_BYTES;
    summary.min(geometry.slot_bytes as usize)
}

/// The entries of a segment whose slot was read; what the slot has no room for is read here.
/// `None` if that fails, or if they are damaged.
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

/// The entries in a slot and what it had no room for; `None` if they are damaged.
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

/// As [`read_entries`], reading here what the slot has no room for.
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

/// Counts a summary by whether it could be used.
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
