//! An index entry of one record, and the results of lookups and insertions.

use crate::address::Address;
use crate::bits::Packed;
use crate::size_class::SizeClass;

/// The index's knowledge of one record. Every field except `address` is a hint. A wrong hint may cause an
/// unnecessary read, but never a wrong answer, because the reader checks the record, which contains the same
/// facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Position of the record.
    pub address: Address,
    /// Number of bytes to read.
    pub class: SizeClass,
    /// Number of uses since the insertion or since [`crate::Index::take_freq`]: 0 to 3 (saturating).
    pub freq: u8,
    /// A hint for the caller, 12 bits. The index stores it and never interprets it.
    pub hint: u16,
}

impl Entry {
    /// An entry that was not used yet and has no hint.
    #[must_use]
    pub const fn new(address: Address, class: SizeClass) -> Self {
        Self {
            address,
            class,
            freq: 0,
            hint: 0,
        }
    }

    /// The same entry with a hint. The index keeps the lowest 12 bits of the hint.
    #[must_use]
    pub const fn with_hint(self, hint: u16) -> Self {
        Self { hint, ..self }
    }
}

/// The entries that may belong to a hash: usually none or one, and more only while an entry is being moved.
/// The caller compares the full key in the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// The slots as the table stores them; a caller that needs an entry unpacks it.
    slots: [Packed; Candidates::MAX],
}

impl Candidates {
    /// Greatest number of candidates that a lookup returns.
    pub const MAX: usize = 2;

    #[inline(always)]
    pub(crate) fn push(&mut self, found: Packed) {
        if self.is_empty() {
            self.slots[0] = found;
        } else if self.slots[1].is_empty() {
            self.slots[1] = found;
        }
    }

    /// The first candidate. A caller that treats a mismatch as a miss needs only this candidate.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<Entry> {
        self.slots[0].entry()
    }

    /// True if the lookup found nothing.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.slots[0].is_empty()
    }

    /// All candidates, at most [`Candidates::MAX`].
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.into_iter()
    }
}

impl IntoIterator for Candidates {
    type Item = Entry;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<Entry>, { Candidates::MAX }>>;
    fn into_iter(self) -> Self::IntoIter {
        self.slots.map(Packed::entry).into_iter().flatten()
    }
}

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Insert {
    /// Stored; no entry had these hash bits.
    Stored,
    /// Stored in place of this entry. It belonged to the same key, or to another key with the same stored
    /// hash bits (a colliding key), whose entry is now lost.
    Replaced(Entry),
    /// Not stored, because this entry exists and stays. Only [`crate::Index::insert_if_absent`] returns this.
    Present(Entry),
    /// The entry was dropped, and the drop is counted: the table is at its limit, or all slots that the hash
    /// could have are full.
    Dropped,
}

impl Insert {
    /// True if the new entry can now be looked up.
    #[must_use]
    pub const fn is_stored(self) -> bool {
        matches!(self, Self::Stored | Self::Replaced(_))
    }
}

/// Figures of an index. If writers change the index meanwhile, the figures may belong to slightly different
/// moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Number of entries.
    pub len: u64,
    /// Bytes of memory held, including the directories that locate the buckets.
    pub memory_bytes: u64,
    /// Number of slots in this memory.
    pub slots: u64,
    /// Number of insertions that were dropped since the start.
    pub dropped: u64,
    /// Number of entries that were moved since the start to free a slot. Moves because of growth are not
    /// counted.
    pub displaced: u64,
    /// Number of lookups that were repeated because of a concurrent move.
    pub retried: u64,
}
