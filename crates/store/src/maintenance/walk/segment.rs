//! A walk through one segment, cluster by cluster and record by record.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use foxy_format::{
    BLOCK, ClusterHeader, Entry, EntryKind, SLOT_HEADER_BYTES, SegmentState, SlotHeader, UNIT,
    parse_record,
};
use foxy_index::SECTOR_BYTES;

use super::{Place, Walk, WalkFault, Walked};
use crate::Object;
use crate::interface::Spot;
use crate::shared::StoreShared;

/// The minimum length of a read in bytes, if the contents of the segment do not end earlier.
const WINDOW: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) store: Arc<StoreShared>,
    index: u32,
    sequence: u64,
    /// The next byte to process, as an offset in the segment.
    pub(super) at: u64,
    /// The first byte after the segment's contents, as an offset in the segment.
    pub(super) end: u64,
    /// The parts of the segment before `at` in which no cluster could be read.
    pub(super) gaps: Vec<Range<u64>>,
}

impl Walk {
    /// Reads and parses the next clusters of a segment. Returns the number of bytes of the read.
    pub(super) fn window(&mut self, segment: &mut Segment, each: &mut impl FnMut(Walked)) -> u64 {
        let store = segment.store.clone();
        let geometry = store.space.geometry();
        let longest = u64::from(geometry.cluster_bytes);
        let len = (segment.end - segment.at).min(WINDOW.max(2 * longest));
        let mut bytes = vec![0; len as usize];
        let from = segment.at;
        let at = geometry.segment_at(segment.index) + from;
        let read = match len {
            0 => Ok(()),
            _ => store.disk.read_at(at, &mut bytes),
        };
        if let Err(error) = read {
            self.missed = true;
            self.damages.read_errors += 1;
            if self.thorough {
                let segment = segment.index;
                self.faults.push(WalkFault::Read {
                    store: store.clone(),
                    segment,
                    at,
                    error,
                });
            }
            segment.at = segment.end;
            return len;
        }
        let bytes = Bytes::from(bytes);
        while segment.at < segment.end {
            let rest = bytes.slice((segment.at - from) as usize..);
            // The end of the read may lie within a cluster. So if fewer bytes of this read are left than the
            // maximum length of a cluster, the next read begins here. The last read of the segment ends where
            // the contents end, so it cuts off no cluster.
            let last = from + len == segment.end;
            if (rest.len() as u64) < longest && !last {
                break;
            }
            match segment.cluster(&rest) {
                Some((header, entries)) => {
                    for entry in entries.iter().filter(|e| e.is_record()) {
                        self.record(segment, entry, &rest, each);
                    }
                    segment.at += u64::from(header.len_units) * UNIT;
                }
                None => segment.gap(),
            }
        }
        len
    }

    fn record(
        &mut self,
        segment: &Segment,
        entry: &Entry,
        cluster: &Bytes,
        each: &mut impl FnMut(Walked),
    ) {
        let store = &segment.store;
        let Some(spot) = store.space.spot(segment.index, entry.offset_units) else {
            return;
        };
        // A walk that is not thorough does not report fragments: their head represents them.
        let live = self.is_live(entry, spot);
        if !self.thorough && (entry.kind == EntryKind::Fragment || !live) {
            return;
        }
        let start = u64::from(entry.offset_units) * UNIT - segment.at;
        let Some(record) = cluster.get(start as usize..) else {
            return;
        };
        // If the segment was reused during the read, parsing the record fails, because the record does
        // not belong to the segment's present incarnation.
        let place = store.space.place(spot);
        let parsed = place.and_then(|place| parse_record(record, &place).ok());
        let Some((head, layout)) = parsed.filter(|(head, _)| head.hash == entry.hash) else {
            self.damages.live += u64::from(live);
            self.damages.dead += u64::from(!live);
            if live && self.thorough {
                let hash = entry.hash;
                let store = store.clone();
                self.faults.push(WalkFault::Record { store, hash, spot });
            }
            return;
        };
        if !live {
            return;
        }
        let mut owned = cluster.slice(start as usize..start as usize + layout.body.end);
        if self.copies {
            owned = Bytes::copy_from_slice(&owned);
        }
        if let Some(object) = Object::from_record(&head, &layout, &owned, owned.len()) {
            let segments_ahead = store.segments_ahead(segment.sequence);
            let shard = self.tables.shard(entry.hash).read();
            let in_memory = shard.in_memory(entry.hash).is_some();
            drop(shard);
            each(Walked {
                object: Arc::new(object),
                place: Place::Store {
                    store: store.id,
                    segment: segment.index,
                    offset: u64::from(entry.offset_units) * UNIT,
                    segments_ahead,
                },
                in_memory,
            });
        }
    }

    fn is_live(&self, entry: &Entry, spot: Spot) -> bool {
        self.tables.leads_to(entry.hash, spot)
    }

    /// Returns whether the index leads to a place in a gap of this segment, where no cluster could be
    /// read.
    pub(super) fn holds_something(&self, segment: &Segment) -> bool {
        let store = &segment.store;
        if store.space.incarnation(segment.index) != segment.sequence {
            return false;
        }
        let first = store.space.spot(segment.index, 0);
        let first = first.map_or(0, |spot| spot.address.sectors());
        let mut found = false;
        for gap in &segment.gaps {
            let sectors = first + gap.start / SECTOR_BYTES..first + gap.end / SECTOR_BYTES;
            self.tables.index().for_each_in(sectors, |_| found = true);
        }
        found
    }
}

impl Segment {
    pub(super) fn new(store: Arc<StoreShared>, index: u32, sequence: u64) -> Self {
        let end = used_bytes(&store, index, sequence);
        Self {
            store,
            index,
            sequence,
            at: 0,
            end,
            gaps: Vec::new(),
        }
    }

    fn cluster(&self, bytes: &[u8]) -> Option<(ClusterHeader, Vec<Entry>)> {
        let (store, at) = (&self.store, self.at);
        let decoded = ClusterHeader::decode(bytes, store.space.geometry().segment_bytes).ok()?;
        let header = &decoded.0;
        let here = header.uuid == store.space.uuid()
            && header.segment == self.index
            && header.sequence == self.sequence
            && u64::from(header.offset_units) * UNIT == at;
        here.then_some(decoded)
    }

    /// The number of bytes in gaps that should contain clusters. If the walk covers the full length of
    /// the segment, a gap at the end does not count, because that part may never have been written.
    pub(super) fn gap_bytes(&self) -> u64 {
        let whole = self.end == u64::from(self.store.space.geometry().segment_bytes);
        let gaps = self.gaps.iter().filter(|gap| !whole || gap.end < self.end);
        gaps.map(|gap| gap.end - gap.start).sum()
    }

    /// Handles a block at which no cluster begins.
    fn gap(&mut self) {
        match self.gaps.last_mut().filter(|gap| gap.end == self.at) {
            Some(gap) => gap.end += BLOCK,
            None => self.gaps.push(self.at..self.at + BLOCK),
        }
        self.at += BLOCK;
    }
}

impl StoreShared {
    /// The number of segments that will be reused before the segment whose incarnation is `sequence`.
    fn segments_ahead(&self, sequence: u64) -> u32 {
        let incarnations = self.space.incarnations();
        incarnations
            .filter(|incarnation| *incarnation != 0 && *incarnation < sequence)
            .count() as u32
    }
}

/// The number of bytes at the beginning of a segment that may contain clusters.
fn used_bytes(store: &StoreShared, index: u32, sequence: u64) -> u64 {
    let end = store.marks.log_end();
    if end.sequence() == sequence {
        return u64::from(end.offset_units()) * UNIT;
    }
    let mut slot = [0; SLOT_HEADER_BYTES];
    let read = store
        .disk
        .read_at(store.space.geometry().slot_at(index), &mut slot);
    let header = read.ok().and_then(|()| SlotHeader::decode(&slot).ok());
    let sealed = header.filter(|h| {
        let sealed = matches!(h.state, SegmentState::Sealed | SegmentState::SealedOverflow);
        sealed && h.uuid == store.space.uuid() && h.sequence == sequence
    });
    let all = u64::from(store.space.geometry().segment_bytes);
    sealed.map_or(all, |h| (u64::from(h.used_units) * UNIT).min(all))
}
