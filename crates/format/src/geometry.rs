//! Where everything lies in a store.

use crate::{BLOCK, FormatError, round_to_block};

/// The identity of a store, drawn at random when it is formatted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StoreUuid(pub [u8; 16]);

impl std::fmt::Debug for StoreUuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The sizes chosen when a store was formatted. Everything is in bytes unless named otherwise.
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
    /// Longest cluster: 16 KiB to 4 MiB, at most half a segment, a multiple of [`BLOCK`].
    pub cluster_bytes: u32,
    /// Length of a summary slot, a multiple of [`BLOCK`].
    pub slot_bytes: u32,
    /// Length of both halves of the purge journal together, a multiple of two [`BLOCK`]s.
    pub journal_bytes: u32,
    /// Length of the removal log, a multiple of [`BLOCK`]. Written and read through the page
    /// cache alone.
    pub removals_bytes: u32,
}

impl Geometry {
    /// Fewest segments that reuse in sequence can work with: one being written, one being made
    /// ready, and two that keep something.
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

    /// Entries that the removal log has room for.
    #[must_use]
    pub const fn removal_places(&self) -> u64 {
        self.removals_bytes as u64 / crate::REMOVAL_BYTES as u64
    }

    /// Byte offset of the summary slot of segment `index`.
    #[must_use]
    pub const fn slot_at(&self, index: u32) -> u64 {
        self.removals_at() + self.removals_bytes as u64 + index as u64 * self.slot_bytes as u64
    }

    /// Byte offset of segment `index`.
    #[must_use]
    pub const fn segment_at(&self, index: u32) -> u64 {
        self.slot_at(self.segments) + index as u64 * self.segment_bytes as u64
    }

    /// Bytes of disk that the store needs.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.segment_at(self.segments)
    }

    /// The segment that the life numbered `sequence` (from 1) is written to: strictly in turn.
    #[must_use]
    pub const fn segment_of(&self, sequence: u64) -> u32 {
        (sequence.wrapping_sub(1) % self.segments as u64) as u32
    }

    /// Chooses a geometry that fits into `total` bytes.
    ///
    /// `mean_object` (bytes on disk) sizes the summary slots; the rest of a longer summary lies at
    /// the end of its segment.
    ///
    /// # Errors
    /// `Invalid("size")` if fewer than [`MIN_SEGMENTS`](Self::MIN_SEGMENTS) segments fit, or what
    /// [`check`](Self::check) says.
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
        };
        geometry.check()?;
        Ok(geometry)
    }

    /// Whether the sizes keep the limits given at the fields.
    ///
    /// # Errors
    /// `Invalid`, naming the first field that does not.
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
        ];
        match rules.iter().find(|(_, kept)| !kept) {
            Some((name, _)) => Err(FormatError::Invalid(name)),
            None => Ok(()),
        }
    }

    /// Bytes at the end of a segment that a summary of so many entries needs beside its slot.
    #[must_use]
    pub const fn spill_bytes(&self, entries: usize) -> u64 {
        let summary = (crate::SLOT_HEADER_BYTES + entries * crate::ENTRY_BYTES) as u64;
        round_to_block(summary.saturating_sub(self.slot_bytes as u64))
    }

    /// Byte offset of that part of the summary of segment `index`; `None` if there is none, or no
    /// segment is that long.
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
        // 512 entries and the header need four blocks, which hold 680.
        assert_eq!(geometry.slot_bytes, 16384);
        for (entries, blocks) in [(0, 0), (679, 0), (680, 0), (681, 1), (850, 1), (851, 2)] {
            assert_eq!(geometry.spill_bytes(entries), blocks * BLOCK, "{entries}");
            let at = geometry.spill_at(3, entries);
            let end = geometry.segment_at(4) - blocks * BLOCK;
            assert_eq!(at, (blocks > 0).then_some(end));
        }
        assert_eq!(geometry.spill_at(0, u32::MAX as usize), None);
    }
}
