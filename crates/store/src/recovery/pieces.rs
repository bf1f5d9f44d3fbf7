//! Pieces of segments (slots, and the entries for which a slot has no room). They are read before the
//! segments are loaded, and their entries are decoded here.

use std::collections::BTreeMap;

use foxy_disk::AlignedBuf;
use foxy_format::{EntryKind, LogPosition};
use foxy_index::{Index, LANES};

use super::part::{Part, read_entries, scanned_entries};
use super::take::{Told, beside};
use crate::shared::StoreShared;

/// A piece of a segment that is read separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Piece {
    /// The slot of this incarnation.
    Slot(u64),
    /// The entries for which the slot of this incarnation has no room.
    Spill(u64),
}

/// The requested pieces (with their lengths), and the pieces that were read.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    asked: BTreeMap<Piece, usize>,
    read: BTreeMap<Piece, Option<AlignedBuf>>,
}

impl Pieces {
    /// Notes that a piece is requested. Returns false if it was requested before.
    pub(super) fn ask(&mut self, piece: Piece, len: usize) -> bool {
        !self.read.contains_key(&piece) && self.asked.insert(piece, len).is_none()
    }

    pub(super) fn answer(&mut self, piece: Piece, buf: Option<AlignedBuf>) {
        self.asked.remove(&piece);
        self.read.insert(piece, buf);
    }

    /// Returns whether every piece that `part` needs was read; it may need none.
    pub(super) fn has_all_of(&self, part: &Part) -> bool {
        part.header.is_none()
            || self.read.contains_key(&Piece::Slot(part.sequence))
                && !self.asked.contains_key(&Piece::Spill(part.sequence))
    }

    /// Takes the slot and the spill of a segment. All pieces of the segment must have been read
    /// ([`Pieces::has_all_of`]). The result has `None` for a piece that could not be read, and an empty
    /// buffer for a spill that does not exist.
    pub(super) fn take(&mut self, part: &Part) -> (Option<AlignedBuf>, Option<AlignedBuf>) {
        let slot = self.read.remove(&Piece::Slot(part.sequence));
        let spill = self.read.remove(&Piece::Spill(part.sequence));
        (
            slot.flatten(),
            spill.unwrap_or_else(|| Some(AlignedBuf::new(0))),
        )
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let read = self.read.values().flatten().map(|piece| piece.len());
        read.chain(self.asked.values().copied()).sum()
    }
}

/// A segment and its pieces as they were read.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) part: Part,
    pub(super) slot: Option<AlignedBuf>,
    pub(super) spill: Option<AlignedBuf>,
}

impl Raw {
    /// Makes the value for a segment that needs no reads.
    pub(super) fn of(part: Part) -> Self {
        Self {
            part,
            slot: None,
            spill: None,
        }
    }

    fn tell(mut self, index: &Index, store: &StoreShared) -> Told {
        let entries = match self.part.header {
            None => Some(std::mem::take(&mut self.part.entries)),
            Some(header) => {
                let pieces = self.slot.zip(self.spill);
                let read =
                    pieces.and_then(|(slot, spill)| read_entries(store, &header, &slot, &spill));
                read.or_else(|| scanned_entries(store, &self.part))
            }
        };
        let lost = entries.is_none();
        let entries = entries.unwrap_or_default();
        let half = entries.len() / LANES + entries.len() / 16;
        let mut told = Told {
            part: self.part,
            lost,
            entries: std::array::from_fn(|_| Vec::with_capacity(half)),
            removes: Vec::new(),
            dead_places: Vec::new(),
        };
        for entry in entries {
            match entry.kind {
                EntryKind::RecordTombstone => told.removes.push(LogPosition(entry.hash.low())),
                _ => told.entries[index.lane(entry.hash)].push(entry),
            }
        }
        told
    }
}

/// Returns the segments with their entries, in the same order. If `together` is true, two threads process the
/// segments.
pub(super) fn tell(
    index: &Index,
    store: &StoreShared,
    mut group: Vec<Raw>,
    together: bool,
) -> Vec<Told> {
    let all = |group: &mut Vec<Raw>| -> Vec<Told> {
        let raws = group.drain(..);
        raws.map(|raw| raw.tell(index, store)).collect()
    };
    let mut rest = match together {
        true => group.split_off(group.len() / 2),
        false => Vec::new(),
    };
    let (mut told, late) = beside(together, || all(&mut group), || all(&mut rest));
    told.extend(late.unwrap_or_else(|| all(&mut rest)));
    told
}
