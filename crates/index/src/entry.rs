//! An index entry of one object, and its packing into 12 bytes.

use crate::address::Address;
use crate::bits::Packed;
use crate::size_class::SizeClass;

/// The index's knowledge of one record. Everything but `address` is a hint: a wrong hint may
/// cost a read, never a wrong answer, because the record repeats and checks all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Position of the record.
    pub address: Address,
    /// Number of bytes to read.
    pub class: SizeClass,
    /// Uses since insertion or since [`crate::Index::take_freq`], 0 to 3 (saturating).
    pub freq: u8,
    /// For the owner, 12 bits; the index carries it and never looks at it.
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

    /// The same with a hint, of which the index keeps the lowest 12 bits.
    #[must_use]
    pub const fn with_hint(self, hint: u16) -> Self {
        Self { hint, ..self }
    }
}

/// The entries that a hash may belong to: mostly none or one, more only while an entry is
/// being moved. The record's full key decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// As the table stores them; a caller that needs one unpacks it.
    slots: [Packed; Candidates::MAX],
}

impl Candidates {
    /// The most candidates that a lookup returns.
    pub const MAX: usize = 2;

    #[inline(always)]
    pub(crate) fn push(&mut self, found: Packed) {
        if self.is_empty() {
            self.slots[0] = found;
        } else if self.slots[1].is_empty() {
            self.slots[1] = found;
        }
    }

    /// The first candidate. A caller that treats a mismatch as a miss needs no other.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<Entry> {
        self.slots[0].entry()
    }

    /// True on a miss.
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
    /// Stored; nothing was there under these hash bits.
    Stored,
    /// Stored in place of this entry of the same key (or of a tag twin, which is thereby forgotten).
    Replaced(Entry),
    /// Only from [`crate::Index::insert_if_absent`]: this entry was there and stays.
    Present(Entry),
    /// Not stored: the table is at its limit or the neighbourhood is full. Counted.
    Dropped,
}

impl Insert {
    /// True if the new entry can now be looked up.
    #[must_use]
    pub const fn is_stored(self) -> bool {
        matches!(self, Self::Stored | Self::Replaced(_))
    }
}

/// Figures of an index at one moment; not a consistent cut under concurrent writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Entries.
    pub len: u64,
    /// Bytes of memory held, directory included.
    pub memory_bytes: u64,
    /// Slots that memory has room for.
    pub slots: u64,
    /// Insertions dropped since the start.
    pub dropped: u64,
    /// Entries moved to make room since the start (growth not counted).
    pub displaced: u64,
    /// Lookups repeated because of a concurrent move.
    pub retried: u64,
}
