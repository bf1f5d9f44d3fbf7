//! The contents of the segments of a store, as far as they are known at a start.
//!
//! If neither the summary nor the clusters of a segment can be read, the segment is *lost*. Then more
//! than its own records is lost. Older segments may contain records that the lost segment removed.
//! From now on, removals of the records in the lost segment itself are not logged, so these records could
//! return when the segment is readable again. Therefore everything that was written up to the end of this
//! segment is dead.

use foxy_base::rule;
use foxy_format::{Geometry, SegmentState, SlotHeader};

use super::part::Part;
use super::scan::scan_segment;
use super::slots::Found;
use crate::interface::add;
use crate::shared::{StoreShared, segments_ahead};

/// The segments of a store, as far as they are known.
#[derive(Debug)]
pub(super) struct Stock<'a> {
    store: &'a StoreShared,
    /// The segments, in their order on the disk; newest first after `settle`.
    pub(super) parts: Vec<Part>,
    /// The incarnations that are lost.
    pub(super) lost: Vec<u64>,
    /// The lost segments whose slot does not contain the incarnation.
    unknown: Vec<u32>,
    /// The segments whose slot has no valid contents, each with the incarnation that its clusters contain.
    guessed: Vec<(u32, u64)>,
    /// True if a slot or table could not be read.
    pub(super) tables_damaged: bool,
}

impl<'a> Stock<'a> {
    pub(super) const fn new(store: &'a StoreShared) -> Self {
        Self {
            store,
            parts: Vec::new(),
            lost: Vec::new(),
            unknown: Vec::new(),
            guessed: Vec::new(),
            tables_damaged: false,
        }
    }

    /// Takes in the contents of a segment from its slot or, if the slot is not valid, from its
    /// clusters.
    pub(super) fn take(&mut self, found: Found, index: u32) {
        match found {
            Found::Nothing => {}
            Found::Slot(header) => self.known(index, header),
            Found::Damaged => {
                add(&self.store.counters.damaged, 1);
                self.tables_damaged = true;
                match scan_segment(self.store, index, None) {
                    Ok(Some(scan)) => {
                        self.guessed.push((index, scan.sequence));
                        self.parts.push(Part::scanned(index, scan, None));
                    }
                    Ok(None) => {}
                    Err(_) => rule!(
                        "start: a segment without slot that cannot be read is lost",
                        self.unknown.push(index),
                        ()
                    ),
                }
            }
        }
    }

    fn known(&mut self, index: u32, header: SlotHeader) {
        match header.state {
            SegmentState::Sealed | SegmentState::SealedOverflow => {
                self.parts.push(Part::sealed(index, header));
            }
            SegmentState::Open => match scan_segment(self.store, index, Some(header.sequence)) {
                Ok(scan) => self
                    .parts
                    .extend(scan.map(|scan| Part::scanned(index, scan, Some(&header)))),
                Err(_) => {
                    self.tables_damaged = true;
                    rule!(
                        "start: an open segment that cannot be read is lost, and all before it",
                        self.lost.push(header.sequence),
                        ()
                    );
                }
            },
            SegmentState::Retired => {}
        }
    }

    /// Leaves out overwritten incarnations. The slot of such a segment is older than the contents of the
    /// segment: the sequence number in the slot is at least a whole round of segments behind the newest
    /// incarnation. Sorts the remaining segments, newest first.
    pub(super) fn settle(mut self) -> Self {
        let geometry = self.store.space.geometry();
        let known = self.parts.iter().map(|part| part.sequence);
        let newest = known.chain(self.lost.iter().copied()).max().unwrap_or(0);
        let unknown = self.unknown.iter();
        self.lost
            .extend(unknown.filter_map(|index| latest_incarnation(geometry, *index, newest)));
        // The slot of a segment in `guessed` may have contained the open header of the next incarnation
        // before it was damaged. In this case the index entries of the segment were dropped, and later
        // removals of its records were not logged.
        let opened = self.guessed.iter().filter(|(index, sequence)| {
            latest_incarnation(geometry, *index, newest).is_some_and(|latest| latest > *sequence)
        });
        rule!(
            "start: a damaged slot may have been the open header of the next incarnation",
            self.lost.extend(opened.map(|(_, sequence)| *sequence)),
            drop(opened)
        );
        let newest = self.lost.iter().copied().fold(newest, u64::max);
        let current = |sequence: u64| {
            rule!(
                "start: an incarnation a whole round behind is dead",
                sequence + u64::from(geometry.segments) > newest,
                true
            )
        };
        self.parts.retain(|part| current(part.sequence));
        self.lost.retain(|sequence| current(*sequence));
        self.parts
            .sort_by_key(|part| std::cmp::Reverse(part.sequence));
        self
    }
}

/// Returns the latest incarnation that segment `index` can have. `newest` is the newest known incarnation of
/// the store. The incarnation after `newest` may be in use already, and further incarnations may be in
/// preparation.
fn latest_incarnation(geometry: &Geometry, index: u32, newest: u64) -> Option<u64> {
    let latest = rule!(
        "start: the latest incarnation of an unreadable segment includes those prepared ahead",
        newest + 1 + u64::from(segments_ahead(geometry)),
        newest
    );
    let round = latest.saturating_sub(u64::from(geometry.segments)).max(1)..=latest;
    round
        .rev()
        .find(|incarnation| geometry.segment_of(*incarnation) == index)
}
