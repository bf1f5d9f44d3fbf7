//! The place where a record begins. The index keeps the sector (512 bytes) of this place and, as a hint, the
//! unit (16 bytes) within the sector.

use foxy_format::UNIT;
use foxy_index::{Address, Entry, SECTOR_BYTES, SizeClass};

/// The number of units (16 bytes) in a sector (512 bytes). A record begins at any unit, but the index
/// addresses sectors.
const PER_SECTOR: u64 = SECTOR_BYTES / UNIT;
/// The bits of the index's hint that contain the number of the unit in its sector.
const HINT_MASK: u16 = PER_SECTOR as u16 - 1;

/// The place of a record in the engine's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The sector in which the record begins.
    pub(crate) address: Address,
    unit: u16,
}

impl Spot {
    /// Returns the place to which an index entry leads.
    pub(crate) const fn of(entry: &Entry) -> Self {
        Self {
            address: entry.address,
            unit: entry.hint & HINT_MASK,
        }
    }

    /// Makes a spot from a number of units since the beginning of the address space.
    pub(crate) fn from_units(units: u64) -> Option<Self> {
        Some(Self {
            address: Address::from_sectors(units / PER_SECTOR)?,
            unit: (units % PER_SECTOR) as u16,
        })
    }

    /// The number of units from the beginning of the address space to this spot.
    pub(crate) const fn units(self) -> u64 {
        self.address.sectors() * PER_SECTOR + self.unit as u64
    }

    /// The bytes of the sector that are before the record.
    pub(crate) const fn skip(self) -> u64 {
        self.unit as u64 * UNIT
    }

    /// Returns the index entry of a record of `bytes` bytes at this spot. A read that begins at the
    /// entry's sector and has the length of the entry's size class covers the record.
    pub(crate) fn entry(self, bytes: u64) -> Option<Entry> {
        let class = SizeClass::for_bytes(self.skip() + bytes)?;
        Some(Entry::new(self.address, class).with_hint(self.unit))
    }
}
