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
    /// `mean_object` (bytes on disk) sizes the summary slots; a segment with more entries than its
    /// slot holds stays correct, but is recovered by a scan of its clusters.
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

    /// How many entries a summary slot holds.
    #[must_use]
    pub const fn slot_entries(&self) -> usize {
        (self.slot_bytes as usize - crate::SLOT_HEADER_BYTES) / crate::ENTRY_BYTES
    }
}
