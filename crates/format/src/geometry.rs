//! Positions of all regions of a store.

use crate::{BLOCK, FormatError, round_to_block};

/// The identity of a store, drawn at random when it is formatted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StoreUuid(pub [u8; 16]);

impl std::fmt::Debug for StoreUuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The sizes chosen when a store was formatted. They are in bytes unless their names state another unit.
///
/// ```text
/// superblock A | superblock B | purge journal (2 halves) | removal log | summary slots | segments
/// 0              BLOCK          2 * BLOCK
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Length of a segment: 64 KiB to 256 MiB, a multiple of [`BLOCK`].
    pub segment_bytes: u32,
    /// Number of segments, at least 4.
    pub segments: u32,
    /// Length of the longest cluster: 16 KiB to 4 MiB, at most half a segment, a multiple of [`BLOCK`].
    pub cluster_bytes: u32,
    /// Length of a summary slot: a multiple of [`BLOCK`].
    pub slot_bytes: u32,
    /// Length of both halves of the purge journal together: a multiple of two [`BLOCK`]s.
    pub journal_bytes: u32,
    /// Length of the removal log: a multiple of [`BLOCK`]. The removal log is written and read only through
    /// the page cache.
    pub removals_bytes: u32,
    /// Growths of the store, in order. Unused elements are zeros. See [`Growth`].
    pub grown: [Growth; GROWTHS_MAX],
}

/// Number of times that a store can grow.
pub const GROWTHS_MAX: usize = 7;

/// One growth of a store. The slots and segments in the added space lie behind the old segments.
///
/// Each use of a segment is an incarnation; incarnations are numbered from 1 over the whole store. From
/// incarnation `turn` on, segments are used in another order: first the new segments, then the old segments
/// in the order in which they would have been reused next. So every segment is reused after exactly one round
/// through all segments of the longer store, and no contents move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// The first incarnation after the growth; 0 means no growth.
    pub turn: u64,
    /// Number of the first new segment.
    pub first: u32,
}

/// Segments that are contiguous on disk. Their slots come first, then the segments.
#[derive(Clone, Copy)]
struct Extent {
    at: u64,
    first: u32,
    count: u32,
}

impl Geometry {
    /// Number of growths.
    const fn growths(&self) -> usize {
        let mut n = 0;
        while n < GROWTHS_MAX && self.grown[n].turn != 0 {
            n += 1;
        }
        n
    }

    /// The extent that contains segment `index`. For an index past the end: the last extent.
    const fn extent(&self, index: u32) -> Extent {
        let growths = self.growths();
        let mut n = 0;
        let mut at = self.removals_at() + self.removals_bytes as u64;
        let mut first = 0;
        loop {
            let end = if n < growths {
                self.grown[n].first
            } else {
                self.segments
            };
            let count = end - first;
            if index < end || n == growths {
                return Extent { at, first, count };
            }
            at += count as u64 * (self.slot_bytes as u64 + self.segment_bytes as u64);
            first = end;
            n += 1;
        }
    }

    /// The segment that contains byte `at`, and the offset of this byte in the segment; `None` outside of all
    /// segments.
    #[must_use]
    pub const fn segment_with(&self, at: u64) -> Option<(u32, u64)> {
        let mut index = 0;
        while index < self.segments {
            let extent = self.extent(index);
            let begin = extent.at + extent.count as u64 * self.slot_bytes as u64;
            let end = begin + extent.count as u64 * self.segment_bytes as u64;
            if at >= begin && at < end {
                let within = at - begin;
                let number = (within / self.segment_bytes as u64) as u32;
                return Some((extent.first + number, within % self.segment_bytes as u64));
            }
            index = extent.first + extent.count;
        }
        None
    }

    /// The geometry of the same store after it grew to `total` bytes; incarnation `turn` is the first
    /// incarnation after the growth.
    ///
    /// # Errors
    /// `Invalid("size")` if there is no space for one more segment, `Invalid("number of growths")` if the
    /// store has already grown as often as it can.
    pub fn grow(&self, total: u64, turn: u64) -> Result<Self, FormatError> {
        let per_segment = u64::from(self.slot_bytes) + u64::from(self.segment_bytes);
        let more = total.saturating_sub(self.total_bytes()) / per_segment;
        let all = u64::from(self.segments) + more;
        if more == 0 {
            return Err(FormatError::Invalid("size"));
        }
        let mut grown = *self;
        let place = grown.grown.get_mut(self.growths());
        *place.ok_or(FormatError::Invalid("number of growths"))? = Growth {
            turn,
            first: self.segments,
        };
        grown.segments = u32::try_from(all).map_err(|_| FormatError::Invalid("size"))?;
        grown.check()?;
        Ok(grown)
    }

    fn grew_rightly(&self) -> bool {
        let growths = self.growths();
        let (used, unused) = self.grown.split_at(growths);
        let mut before = Growth {
            turn: 1,
            first: Self::MIN_SEGMENTS - 1,
        };
        let ascending = used.iter().all(|growth| {
            let right = growth.turn >= before.turn && growth.first > before.first;
            before = *growth;
            right && growth.first < self.segments
        });
        ascending && unused.iter().all(|growth| *growth == Growth::default())
    }

    /// Least number of segments with which reuse in sequence works: one segment is being written, one segment
    /// is being prepared, and two segments keep contents.
    pub const MIN_SEGMENTS: u32 = 4;

    /// Byte offset of superblock 0 (A) or 1 (B).
    #[must_use]
    pub const fn superblock_at(which: usize) -> u64 {
        (which as u64) * BLOCK
    }

    /// Byte offset of the purge journal.
    #[must_use]
    pub const fn journal_at(&self) -> u64 {
        2 * BLOCK
    }

    /// Byte offset of the removal log.
    #[must_use]
    pub const fn removals_at(&self) -> u64 {
        self.journal_at() + self.journal_bytes as u64
    }

    /// Number of places for entries in the removal log.
    #[must_use]
    pub const fn removal_places(&self) -> u64 {
        self.removals_bytes as u64 / crate::REMOVAL_BYTES as u64
    }

    /// Byte offset of the summary slot of segment `index`.
    #[must_use]
    pub const fn slot_at(&self, index: u32) -> u64 {
        let extent = self.extent(index);
        extent.at + (index - extent.first) as u64 * self.slot_bytes as u64
    }

    /// Byte offset of segment `index`.
    #[must_use]
    pub const fn segment_at(&self, index: u32) -> u64 {
        let extent = self.extent(index);
        let slots = extent.count as u64 * self.slot_bytes as u64;
        extent.at + slots + (index - extent.first) as u64 * self.segment_bytes as u64
    }

    /// Bytes of disk that the store needs.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.segment_at(self.segments)
    }

    /// The segment to which incarnation `sequence` (from 1) is written. Successive incarnations use the
    /// segments in cyclic order.
    #[must_use]
    pub const fn segment_of(&self, sequence: u64) -> u32 {
        let mut growth = self.growths();
        while growth > 0 && self.grown[growth - 1].turn > sequence {
            growth -= 1;
        }
        let mut turn = sequence;
        while growth > 0 {
            let Growth { turn: began, first } = self.grown[growth - 1];
            let segments = if growth == self.growths() {
                self.segments
            } else {
                self.grown[growth].first
            };
            let place = (turn - began) % segments as u64;
            let new = (segments - first) as u64;
            if place < new {
                return first + place as u32;
            }
            turn = began + (place - new);
            growth -= 1;
        }
        let first = if self.growths() == 0 {
            self.segments
        } else {
            self.grown[0].first
        };
        (turn.wrapping_sub(1) % first as u64) as u32
    }

    /// Chooses a geometry that fits into `total` bytes.
    ///
    /// `mean_object` is the mean length of an object on disk in bytes. It determines the size of the summary
    /// slots. If a summary is longer than its slot, its remainder lies at the end of the segment.
    ///
    /// # Errors
    /// `Invalid("size")` if fewer than [`MIN_SEGMENTS`](Self::MIN_SEGMENTS) segments fit, or an error of
    /// [`check`](Self::check).
    pub fn fit(
        total: u64,
        segment_bytes: u32,
        cluster_bytes: u32,
        mean_object: u32,
    ) -> Result<Self, FormatError> {
        let entries = u64::from(segment_bytes) / u64::from(mean_object.max(512));
        let slot =
            round_to_block(crate::SLOT_HEADER_BYTES as u64 + entries * crate::ENTRY_BYTES as u64);
        let journal = (total / 1024).clamp(4 * BLOCK, 2 << 20) / (2 * BLOCK) * (2 * BLOCK);
        let removals = (total / 1024).clamp(4 * BLOCK, 1 << 20) / BLOCK * BLOCK;
        let fixed = 2 * BLOCK + journal + removals;
        let per_segment = slot + u64::from(segment_bytes);
        let segments = total.saturating_sub(fixed) / per_segment;
        let geometry = Self {
            segment_bytes,
            segments: u32::try_from(segments).map_err(|_| FormatError::Invalid("size"))?,
            cluster_bytes,
            slot_bytes: u32::try_from(slot).map_err(|_| FormatError::Invalid("slot length"))?,
            journal_bytes: u32::try_from(journal)
                .map_err(|_| FormatError::Invalid("journal length"))?,
            removals_bytes: u32::try_from(removals)
                .map_err(|_| FormatError::Invalid("removal log length"))?,
            grown: [Growth::default(); GROWTHS_MAX],
        };
        geometry.check()?;
        Ok(geometry)
    }

    /// Checks that the sizes keep the limits that the fields' comments state.
    ///
    /// # Errors
    /// `Invalid` with the first field that exceeds its limits.
    pub fn check(&self) -> Result<(), FormatError> {
        let block = |v: u32| v != 0 && u64::from(v).is_multiple_of(BLOCK);
        let rules = [
            ("number of segments", self.segments >= Self::MIN_SEGMENTS),
            (
                "segment length",
                block(self.segment_bytes) && (64 << 10..=256 << 20).contains(&self.segment_bytes),
            ),
            (
                "cluster length",
                block(self.cluster_bytes) && (16 << 10..=4 << 20).contains(&self.cluster_bytes),
            ),
            (
                "cluster length",
                self.cluster_bytes <= self.segment_bytes / 2,
            ),
            (
                "slot length",
                block(self.slot_bytes) && self.slot_bytes <= 64 << 20,
            ),
            (
                "journal length",
                u64::from(self.journal_bytes).is_multiple_of(2 * BLOCK) && self.journal_bytes != 0,
            ),
            (
                "removal log length",
                block(self.removals_bytes) && self.removals_bytes <= 64 << 20,
            ),
            ("growth", self.grew_rightly()),
        ];
        match rules.iter().find(|(_, kept)| !kept) {
            Some((name, _)) => Err(FormatError::Invalid(name)),
            None => Ok(()),
        }
    }

    /// Bytes at the end of a segment that a summary of `entries` entries needs in addition to its slot.
    #[must_use]
    pub const fn spill_bytes(&self, entries: usize) -> u64 {
        let summary = (crate::SLOT_HEADER_BYTES + entries * crate::ENTRY_BYTES) as u64;
        round_to_block(summary.saturating_sub(self.slot_bytes as u64))
    }

    /// Byte offset of the part of the summary that lies at the end of segment `index`; `None` if
    /// there is no such part, or if it is longer than a segment.
    #[must_use]
    pub const fn spill_at(&self, index: u32, entries: usize) -> Option<u64> {
        let bytes = self.spill_bytes(entries);
        if bytes == 0 || bytes > self.segment_bytes as u64 {
            return None;
        }
        Some(self.segment_at(index) + self.segment_bytes as u64 - bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_long_summary_ends_where_its_segment_ends() {
        let geometry = Geometry::fit(64 << 20, 1 << 20, 256 << 10, 2048).unwrap();
        // 512 entries and the header need four blocks. These blocks can contain 680 entries.
        assert_eq!(geometry.slot_bytes, 16384);
        for (entries, blocks) in [(0, 0), (679, 0), (680, 0), (681, 1), (850, 1), (851, 2)] {
            assert_eq!(geometry.spill_bytes(entries), blocks * BLOCK, "{entries}");
            let at = geometry.spill_at(3, entries);
            let end = geometry.segment_at(4) - blocks * BLOCK;
            assert_eq!(at, (blocks > 0).then_some(end));
        }
        assert_eq!(geometry.spill_at(0, u32::MAX as usize), None);
    }

    /// Incarnations use segments in cyclic order, and the store grows several times. Each segment is used
    /// again after one round, and existing segments do not move.
    #[test]
    fn every_segment_has_its_turn_once_a_round_whenever_a_store_grows() {
        let mut geometry = Geometry::fit(2 << 20, 64 << 10, 16 << 10, 2048).unwrap();
        let mut last: Vec<u64> = vec![0; geometry.segments as usize];
        let mut sequence = 0;
        for (incarnations, more) in [(5, 3), (2, 9), (70, 1), (200, 20), (0, 2), (300, 0)] {
            for _ in 0..incarnations {
                sequence += 1;
                let segment = geometry.segment_of(sequence) as usize;
                let oldest = *last.iter().min().unwrap();
                assert_eq!(last[segment], oldest, "incarnation {sequence}");
                last[segment] = sequence;
            }
            if more > 0 {
                let before = geometry;
                let room = more * (64 << 10) + more * u64::from(geometry.slot_bytes);
                geometry = before
                    .grow(before.total_bytes() + room, sequence + 1)
                    .unwrap();
                for (index, incarnation) in last.iter().enumerate() {
                    let index = index as u32;
                    assert_eq!(geometry.segment_at(index), before.segment_at(index));
                    assert_eq!(geometry.slot_at(index), before.slot_at(index));
                    let own = *incarnation == 0 || geometry.segment_of(*incarnation) == index;
                    assert!(own, "segment {index}, incarnation {incarnation}");
                }
                assert_eq!(geometry.slot_at(before.segments), before.total_bytes());
                last.resize(geometry.segments as usize, 0);
            }
        }
        for index in 0..geometry.segments {
            let at = geometry.segment_at(index);
            assert_eq!(geometry.segment_with(at), Some((index, 0)));
            assert_eq!(geometry.segment_with(at + 65535), Some((index, 65535)));
            assert_eq!(geometry.segment_with(geometry.slot_at(index)), None);
        }
        assert_eq!(geometry.segment_with(geometry.total_bytes()), None);
    }

    #[test]
    fn a_growth_needs_room_for_a_segment_and_has_its_limits() {
        let mut geometry = Geometry::fit(2 << 20, 64 << 10, 16 << 10, 2048).unwrap();
        let small = geometry.grow(geometry.total_bytes() + (64 << 10), 9);
        assert_eq!(small, Err(FormatError::Invalid("size")));
        for n in 0..GROWTHS_MAX as u64 {
            geometry = geometry
                .grow(geometry.total_bytes() + (70 << 10), n + 1)
                .unwrap();
        }
        let many = geometry.grow(geometry.total_bytes() + (70 << 10), 9);
        assert_eq!(many, Err(FormatError::Invalid("number of growths")));
        geometry.grown.swap(2, 3);
        assert_eq!(geometry.check(), Err(FormatError::Invalid("growth")));
    }
}
