//! Reads the headers of all slots, with many reads at once. The slot of a segment contains the state and the
//! summary of the segment. The slots are before the segments. (After a growth, the slots of the new segments
//! are before the new segments.) A store has hundreds of slots or more. If a device gets one read at a time,
//! most of the time is spent waiting.
//!
//! Short slots are so close together that one long read covers the headers of many slots. If a long read
//! fails, its slots are read one by one. So a bad block costs only the slot that contains it, and the result
//! does not depend on how the slots were read.
//!
//! A slot that looks unused or damaged is read twice, because a device that returns the bytes of
//! another place could hide an incarnation of the segment. A valid slot of this store names its segment, so
//! it cannot come from another place.

use std::io;
use std::ops::Range;
use std::time::Duration;

use foxy_base::rule;
use foxy_disk::{AlignedBuf, Op};
use foxy_format::{FormatError, Geometry, SLOT_HEADER_BYTES, SlotHeader};

use crate::interface::add;
use crate::shared::StoreShared;

/// Maximum number of reads under way at once.
const DEPTH: usize = 32;
/// Maximum length of a read that covers several slots, in bytes.
pub(crate) const SPAN_BYTES: u64 = 1 << 20;
/// Each slot longer than this, in bytes, gets its own read: there are too many bytes between the
/// headers of such slots.
const SHORT_SLOT: u64 = 64 << 10;
/// After this time without an answer, reads are made one by one.
const PATIENCE: Duration = Duration::from_secs(10);

/// A segment as its slot describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The segment was never used.
    Nothing,
    /// The slot belongs to this store and this segment.
    Slot(SlotHeader),
    /// The slot has no valid contents, or could not be read: the segment's clusters must be searched.
    Damaged,
}

/// Returns the contents of the slots of all segments, in order of the segments.
pub(crate) fn read_slots(store: &StoreShared) -> Vec<Found> {
    let silent = |found: &Found| !matches!(found, Found::Slot(_));
    let mut found = read_all(store, |_| true);
    let doubtful: Vec<bool> = found.iter().map(silent).collect();
    if rule!(
        "slot: a segment without one is looked at twice",
        doubtful.contains(&true),
        false
    ) {
        let second = read_all(store, |index| doubtful[index as usize]);
        for (found, second) in found.iter_mut().zip(second) {
            *found = agreed(*found, second);
        }
    }
    found
}

/// Combines two reads of a slot. If a slot was not read again, its second result is [`Found::Damaged`].
fn agreed(first: Found, second: Found) -> Found {
    match (first, second) {
        (slot @ Found::Slot(_), _) | (_, slot @ Found::Slot(_)) => slot,
        (Found::Nothing, Found::Nothing) => Found::Nothing,
        _ => Found::Damaged,
    }
}

/// Reads the slots of the segments that are `wanted`, and the slots of other segments that are covered
/// by the same reads. The result for all remaining segments is [`Found::Damaged`].
fn read_all(store: &StoreShared, wanted: impl Fn(u32) -> bool) -> Vec<Found> {
    let mut found: Vec<Option<Found>> = Vec::new();
    found.resize_with(store.space.geometry().segments as usize, || None);
    let spans = spans(store.space.geometry()).into_iter();
    let spans = spans.filter(|span| span.clone().any(&wanted));
    // Without a queue, or if the queue fails, all slots are read one by one.
    if let Err(error) = read_spans(store, spans, &mut found) {
        tracing::debug!(store = %store.disk.describe(), %error, "slots are read one by one");
    }
    let found = found.into_iter().zip(0..);
    let alone = |index| match wanted(index) {
        true => read_slot(store, index),
        false => Found::Damaged,
    };
    found
        .map(|(found, index)| found.unwrap_or_else(|| alone(index)))
        .collect()
}

/// Returns groups of slots. One read covers each group: its slots follow each other on the disk.
pub(crate) fn spans(geometry: &Geometry) -> Vec<Range<u32>> {
    let slot = u64::from(geometry.slot_bytes);
    let most = match slot {
        slot if slot > SHORT_SLOT => 1,
        slot => (SPAN_BYTES / slot) as usize,
    };
    let mut spans: Vec<Range<u32>> = Vec::new();
    for index in 0..geometry.segments {
        match spans.last_mut() {
            // The slots of a store that grew are in several places, so two slots in sequence may be far
            // apart.
            Some(span)
                if span.len() < most
                    && geometry.slot_at(index) == geometry.slot_at(span.end - 1) + slot =>
            {
                span.end = index + 1;
            }
            _ => spans.push(index..index + 1),
        }
    }
    spans
}

/// Reads groups of slots, many groups at once, and fills in the results.
fn read_spans(
    store: &StoreShared,
    mut spans: impl Iterator<Item = Range<u32>>,
    found: &mut [Option<Found>],
) -> io::Result<()> {
    let slot = store.space.geometry().slot_bytes as usize;
    // The read includes the header of the last slot, up to the end of its block.
    let last = SLOT_HEADER_BYTES.next_multiple_of(store.space.block_bytes() as usize);
    let mut queue = store.disk.open_queue(DEPTH as u32)?;
    let mut done = Vec::new();
    loop {
        for span in spans.by_ref().take(DEPTH - queue.in_flight()) {
            let len = (span.len() - 1) * slot + last;
            let at = store.space.geometry().slot_at(span.start);
            let token = u64::from(span.start);
            queue.submit(Op::read(token, at, len, AlignedBuf::new(len)));
        }
        if queue.in_flight() == 0 {
            return Ok(());
        }
        if !queue.wait(PATIENCE)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        queue.reap(&mut done);
        for completion in done.drain(..).filter(|c| c.result.is_ok()) {
            let Some(bytes) = completion.buf else {
                continue;
            };
            add(&store.counters.load_bytes, bytes.len() as u64);
            for (bytes, index) in bytes.chunks(slot).zip(completion.token as u32..) {
                found[index as usize] = Some(understand(store, index, bytes));
            }
        }
    }
}

/// Returns the contents of one slot, which is read separately.
pub(crate) fn read_slot(store: &StoreShared, index: u32) -> Found {
    let mut bytes = [0; SLOT_HEADER_BYTES];
    let read = store
        .disk
        .read_at(store.space.geometry().slot_at(index), &mut bytes);
    add(&store.counters.load_bytes, SLOT_HEADER_BYTES as u64);
    match read {
        Ok(()) => understand(store, index, &bytes),
        Err(_) => Found::Damaged,
    }
}

/// Decodes the bytes of the slot of segment `index`.
fn understand(store: &StoreShared, index: u32, bytes: &[u8]) -> Found {
    match SlotHeader::decode(bytes) {
        Ok(h)
            if rule!(
                "slot: one of another store is not valid",
                h.uuid == store.space.uuid(),
                true
            ) && rule!(
                "slot: one of another segment is not valid",
                h.segment == index && store.space.geometry().segment_of(h.sequence) == index,
                true
            ) =>
        {
            Found::Slot(h)
        }
        // This slot belongs to another store, from before this disk was formatted.
        Ok(h) if h.uuid != store.space.uuid() => rule!(
            "slot: a whole one of another store is one never used",
            Found::Nothing,
            Found::Damaged
        ),
        Err(FormatError::Empty) => Found::Nothing,
        _ => Found::Damaged,
    }
}
