//! The records of a cluster and their entries, as they are encoded into its buffer.

use std::sync::Arc;

use foxy_format::{
    Entry, EntryKind, LogPosition, RecordKind, RecordPlace, UNIT, encode_record, round_to_block,
};

use super::objects::{Objects, Written};
use crate::Object;
use crate::interface::add;
use crate::shared::{Item, Numbered, OpenSegment, StoreShared};

/// An object for a cluster, and the item with which it waited.
pub(super) type Chosen = (Item, Arc<Object>);

/// A cluster that is being encoded.
#[derive(Debug)]
pub(super) struct Records<'a> {
    store: &'a StoreShared,
    segment: u32,
    /// The end of the log so far: the incarnation of the segment, and the first unit of the cluster.
    base: LogPosition,
    entries: Vec<Entry>,
    written: Vec<Written>,
    /// The length of the cluster so far, in bytes.
    at: usize,
}

impl<'a> Records<'a> {
    /// Begins a cluster with these entries, a table that ends at byte `first` of the cluster, and room
    /// for `most` records.
    pub(super) fn new(
        store: &'a StoreShared,
        segment: &OpenSegment,
        entries: Vec<Entry>,
        first: usize,
        most: usize,
    ) -> Self {
        Self {
            store,
            segment: segment.index,
            base: LogPosition::new(segment.sequence, segment.used_units),
            entries,
            written: Vec::with_capacity(most),
            at: first,
        }
    }

    /// Adds the record of an object, if it is still wanted.
    pub(super) fn add(&mut self, item: &Item, object: &Object, objects: &Objects, buf: &mut [u8]) {
        let offset_units = self.base.offset_units() + (self.at as u64 / UNIT) as u32;
        let place = LogPosition::new(self.base.sequence(), offset_units);
        if !objects.begin_record(item, place) {
            return;
        }
        let Some((len, written)) = self.encode(item, object, place, &mut buf[self.at..]) else {
            objects.forget(item.hash, item.ticket);
            return;
        };
        self.entries.push(Entry {
            hash: item.hash,
            offset_units,
            len_units: (len as u64 / UNIT) as u32,
            kind: kind_of(object.kind),
        });
        self.written.push(written);
        self.at += len;
    }

    fn encode(
        &self,
        item: &Item,
        object: &Object,
        place: LogPosition,
        out: &mut [u8],
    ) -> Option<(usize, Written)> {
        let spot = self.store.space.spot(self.segment, place.offset_units())?;
        let mut head = object.record_head();
        head.place = RecordPlace {
            sequence: place.sequence(),
            ..self.store.space.place(spot)?
        };
        let sections = object.sections();
        let (len, layout) = encode_record(&head, &sections, out)?;
        add(&self.store.counters.record_bytes, layout.body.end as u64);
        add(
            &self.store.counters.payload_bytes,
            (layout.body.end - layout.key.start) as u64,
        );
        let entry = spot.entry(len as u64)?;
        Some((
            len,
            Written {
                hash: object.hash(),
                ticket: item.ticket,
                entry,
                bytes: len as u32,
            },
        ))
    }

    /// Pads the cluster to whole blocks. Returns all entries, the records and the length in
    /// bytes.
    pub(super) fn finish(self, buf: &mut [u8]) -> (Vec<Entry>, Vec<Written>, usize) {
        let len = round_to_block(self.at as u64) as usize;
        buf[self.at..len].fill(0);
        (self.entries, self.written, len)
    }
}

/// The entries of removals in a cluster at `base`.
pub(super) fn removal_entries(removals: &[Numbered], base: u32) -> Vec<Entry> {
    let entries = removals.iter().map(|removal| {
        let (kind, hash) = removal.removal.entry();
        Entry {
            hash,
            offset_units: base,
            len_units: 0,
            kind,
        }
    });
    entries.collect()
}

const fn kind_of(kind: RecordKind) -> EntryKind {
    match kind {
        RecordKind::Object => EntryKind::Object,
        RecordKind::Head => EntryKind::Head,
        RecordKind::Fragment => EntryKind::Fragment,
    }
}
