//! Where a record begins: the index keeps its sector, and the unit within the sector as a hint.

use foxy_format::UNIT;
use foxy_index::{Address, Entry, SizeClass, UNIT_BYTES};

/// Units of packing in a sector, the unit of the index's addresses.
const PER_SECTOR: u64 = UNIT_BYTES / UNIT;
/// Bits of the index's hint that hold the unit.
const HINT_MASK: u16 = PER_SECTOR as u16 - 1;

/// The place of a record in the engine's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The sector in which it begins.
    pub(crate) address: Address,
    unit: u16,
}

impl Spot {
    /// Returns the spot that an index entry leads to.
    pub(crate) const fn of(entry: &Entry) -> Self {
        Self {
            address: entry.address,
            unit: entry.hint & HINT_MASK,
        }
    }

    /// From units since the beginning of the address space.
    pub(crate) fn from_units(units: u64) -> Option<Self> {
        Some(Self {
            address: Address::from_units(units / PER_SECTOR)?,
            unit: (units % PER_SECTOR) as u16,
        })
    }

    /// In units since the beginning of the address space.
    pub(crate) const fn units(self) -> u64 {
        self.address.units() * PER_SECTOR + self.unit as u64
    }

    /// Bytes of the sector before the record.
    pub(crate) const fn skip(self) -> u64 {
        self.unit as u64 * UNIT
    }

    /// The index entry of a record of `bytes` bytes here: a read of the entry's class, from the
    /// sector on, covers the record.
    pub(crate) fn entry(self, bytes: u64) -> Option<Entry> {
        let class = SizeClass::for_bytes(self.skip() + bytes)?;
        Some(Entry::new(self.address, class).with_hint(self.unit))
    }
}
