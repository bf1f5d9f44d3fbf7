//! A segment that takes clusters, the summary (list of entries) of a segment, and the number of segments that
//! are prepared for reuse before they are needed.

use foxy_base::rule;
use foxy_disk::AlignedBuf;
use foxy_format::{
    ENTRY_BYTES, Entry, Geometry, SLOT_HEADER_BYTES, SegmentState, SlotHeader, StoreUuid, UNIT,
    encode_slot_into, round_to_block,
};

/// The segments after the open segment are prepared ahead, so that writing can continue in them. At most this
/// part of all segments (1/n) is prepared at a time.
const AHEAD_PART: u32 = 32;
/// The maximum number of segments ahead of the open segment.
pub(crate) const AHEAD_MOST: u32 = 8;
/// The maximum number of bytes in the segments ahead of the open segment; one segment may always be
/// ahead.
const AHEAD_BYTES: u32 = 64 << 20;

/// A segment that takes clusters.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub(crate) index: u32,
    pub(crate) sequence: u64,
    pub(crate) used_units: u32,
    /// All entries of the segment, in order of writing.
    pub(crate) entries: Vec<Entry>,
    /// The number of clusters in this segment that are being written.
    pub(crate) writing: u32,
    /// Number of the segment's last cluster; 0: there is none, or it is not known.
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

    /// Room in bytes for a cluster with `entries` entries. The part of the summary that will not fit
    /// into the slot is subtracted. The room is a multiple of the block size.
    pub(crate) const fn room_bytes(&self, geometry: &Geometry, entries: usize) -> u64 {
        let spill = geometry.spill_bytes(self.entries.len() + entries);
        let taken = self.used_units as u64 * UNIT + spill;
        (geometry.segment_bytes as u64).saturating_sub(taken)
    }
}

/// A segment's summary: the bytes of its slot, and the bytes at the end of the segment. Both are
/// multiples of the block size.
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
    // If recovery closes a segment, the segment may have been filled without room for its summary.
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
    let all = SLOT_HEADER_BYTES + entries.len() * ENTRY_BYTES;
    let mut slot = blocks(all.min(geometry.slot_bytes as usize));
    let at = geometry.spill_at(segment.index, entries.len());
    let mut spill = at.map(|at| (at, blocks(all - slot.len())));
    let rest = spill.as_mut().map(|(_, buf)| &mut buf[..]);
    encode_slot_into(&header, entries, &mut slot, rest.unwrap_or_default());
    Summary { slot, spill }
}

/// The maximum number of segments that are prepared at a time.
pub(crate) fn segments_ahead(geometry: &Geometry) -> u32 {
    let bytes = AHEAD_BYTES / geometry.segment_bytes;
    (geometry.segments / AHEAD_PART)
        .min(bytes)
        .clamp(1, AHEAD_MOST)
}

/// Returns zeroed blocks with room for `bytes` bytes.
fn blocks(bytes: usize) -> AlignedBuf {
    AlignedBuf::new(round_to_block(bytes as u64) as usize)
}
