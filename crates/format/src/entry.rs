//! Entries of cluster tables and of summary slots (which list the contents of complete segments). An entry
//! describes a stored record with its position, or a removal.

use crate::bytes_io::{Put, Take};
use crate::{FormatError, UNIT};
use foxy_base::{KeyHash, rule};

/// Length of an entry in bytes.
pub const ENTRY_BYTES: usize = 24;

const OFFSET_BITS: u32 = 25;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
// An offset must also be able to express the end of the longest segment (256 MiB).
const _: () = assert!((256u64 << 20) / UNIT <= OFFSET_MASK);

/// A position in the log. Positions order everything that was ever written to the log of a store. The upper
/// 39 bits are the sequence number of the segment's incarnation (one use of the segment, until it is reused).
/// The lower 25 bits are the offset in the segment, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition(pub u64);

impl LogPosition {
    /// Makes a position from a segment's sequence number and an offset in units (below 2^25).
    #[must_use]
    pub const fn new(sequence: u64, offset_units: u32) -> Self {
        Self(sequence << OFFSET_BITS | (offset_units as u64 & OFFSET_MASK))
    }
    /// The segment's sequence number.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.0 >> OFFSET_BITS
    }
    /// Offset in the segment, in units.
    #[must_use]
    pub const fn offset_units(self) -> u32 {
        (self.0 & OFFSET_MASK) as u32
    }
}

/// The kind of record or removal that an entry describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// A complete object.
    Object = 1,
    /// The head of a large object: a record with everything except the body.
    Head = 2,
    /// A fragment of a large object.
    Fragment = 3,
    /// Removal of everything that was stored under this hash before this position in the log.
    Tombstone = 4,
    /// Removal of the record at one log position, whatever its key is. The lower half of [`Entry::hash`] is
    /// this log position. If the upper half is not 0, it is the number of a cluster that was given up: its
    /// write failed or was torn. The log position is then in the gap that this cluster left.
    RecordTombstone = 5,
}

/// One entry of a table or summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Hash of the full key; for a fragment, hash of the fragment.
    pub hash: KeyHash,
    /// Offset of the record in its segment, in units. For tombstones of both kinds: offset of their
    /// cluster.
    pub offset_units: u32,
    /// Length of the record in units, below 2^24; 0 for tombstones of both kinds.
    pub len_units: u32,
    /// Kind of the record or removal.
    pub kind: EntryKind,
}

impl Entry {
    /// True if this entry describes a record.
    #[must_use]
    pub const fn is_record(&self) -> bool {
        !matches!(self.kind, EntryKind::Tombstone | EntryKind::RecordTombstone)
    }

    /// The number of the cluster that this entry reports as given up (its write failed or was torn).
    #[must_use]
    pub const fn cluster_given_up(&self) -> Option<u64> {
        match (self.kind, self.hash.high()) {
            (EntryKind::RecordTombstone, 0) => None,
            (EntryKind::RecordTombstone, number) => Some(number),
            _ => None,
        }
    }

    /// Appends the bytes of this entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut put = Put(out);
        put.bytes(&self.hash.to_bytes());
        put.u32(self.offset_units);
        put.u32(self.len_units & 0xff_ffff | u32::from(self.kind as u8) << 24);
    }

    /// Reads an entry. The segment to which the entry belongs has `segment_bytes` bytes.
    ///
    /// # Errors
    /// `Invalid` for an unknown kind or a position outside of the segment.
    pub fn decode(bytes: &[u8; ENTRY_BYTES], segment_bytes: u32) -> Result<Self, FormatError> {
        let mut take = Take::new(bytes);
        let hash = KeyHash::from_bytes(take.array()?);
        let offset_units = take.u32()?;
        let word = take.u32()?;
        let kind = match word >> 24 {
            1 => EntryKind::Object,
            2 => EntryKind::Head,
            3 => EntryKind::Fragment,
            4 => EntryKind::Tombstone,
            5 => EntryKind::RecordTombstone,
            _ => return Err(FormatError::Invalid("entry kind")),
        };
        let entry = Self {
            hash,
            offset_units,
            len_units: word & 0xff_ffff,
            kind,
        };
        let end = (u64::from(offset_units) + u64::from(entry.len_units)) * UNIT;
        if rule!(
            "table: a record lies within its segment",
            end > u64::from(segment_bytes),
            false
        ) || entry.is_record() != (entry.len_units > 0)
        {
            return Err(FormatError::Invalid("entry place"));
        }
        Ok(entry)
    }
}

/// Reads `count` entries.
pub(crate) fn decode_entries(
    bytes: &[u8],
    count: u32,
    segment_bytes: u32,
) -> Result<Vec<Entry>, FormatError> {
    let len = (count as usize)
        .checked_mul(ENTRY_BYTES)
        .ok_or(FormatError::Truncated)?;
    let table = bytes.get(..len).ok_or(FormatError::Truncated)?;
    let (chunks, _) = table.as_chunks::<ENTRY_BYTES>();
    // A `collect` into a `Result` cannot know the length in advance, so the memory for all entries is
    // allocated here in one step.
    let mut entries = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        entries.push(Entry::decode(chunk, segment_bytes)?);
    }
    Ok(entries)
}
