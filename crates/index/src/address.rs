//! Positions on disk as the index stores them: 36 bits, in sectors of 512 bytes, over all stores.

use std::fmt;
use std::ops::Range;

/// Bytes in one sector of an [`Address`] and of a [`crate::SizeClass`].
pub const SECTOR_BYTES: u64 = 512;

/// Position of a record, in sectors of 512 bytes. One address space covers all stores. The code that uses the
/// index knows which range belongs to which store. An address has 36 bits, which are enough for 32 TiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(u64);

impl Address {
    /// Number of bits of an address that the index keeps.
    pub const BITS: u32 = 36;
    /// The greatest address.
    pub const MAX: Self = Self((1 << Self::BITS) - 1);

    /// Makes an address from a number of sectors of 512 bytes; `None` from 2^36 up.
    #[must_use]
    pub const fn from_sectors(sectors: u64) -> Option<Self> {
        if sectors <= Self::MAX.0 {
            Some(Self(sectors))
        } else {
            None
        }
    }

    /// Makes an address from a byte position; `None` if it is not a multiple of 512 or beyond
    /// 32 TiB.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        if bytes.is_multiple_of(SECTOR_BYTES) {
            Self::from_sectors(bytes / SECTOR_BYTES)
        } else {
            None
        }
    }

    /// Makes an address of the lowest 36 bits of a packed word.
    pub(crate) const fn from_word(word: u64) -> Self {
        Self(word & Self::MAX.0)
    }

    /// Position in sectors of 512 bytes.
    #[must_use]
    pub const fn sectors(self) -> u64 {
        self.0
    }

    /// Position in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0 * SECTOR_BYTES
    }

    /// Range of all possible addresses, in sectors. A sweep or a scan over this range covers the whole table.
    #[must_use]
    pub const fn all() -> Range<u64> {
        0..Self::MAX.0 + 1
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}
