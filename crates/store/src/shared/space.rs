//! The space of a store: its segments with their present incarnations, and the place of its records in the
//! engine's address space. An incarnation of a segment is the time from one reuse to the next; its sequence
//! number identifies it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::{KeyHash, KeySeed};
use foxy_format::{Geometry, LogPosition, RecordPlace, StoreUuid, Superblock, UNIT};
use foxy_index::{Address, Entry, SECTOR_BYTES};

use crate::interface::Spot;
use crate::{ReadPlan, StoreId};

/// Segments and addresses of one store.
#[derive(Debug)]
pub(crate) struct Space {
    uuid: StoreUuid,
    /// Seed of the engine's key hashes. The superblock may contain another seed until it is written
    /// anew.
    seed: KeySeed,
    geometry: Geometry,
    /// First sector of this store in the engine's address space.
    base_sectors: u64,
    block_bytes: u64,
    /// The present incarnation of each segment; 0 for a segment without an incarnation.
    incarnations: Box<[AtomicU64]>,
}

impl Space {
    /// Makes the space of a store on a disk with blocks of `block_bytes` bytes. The space begins at sector
    /// `base_sectors` of the engine's address space.
    pub(super) fn new(superblock: &Superblock, base_sectors: u64, block_bytes: u64) -> Self {
        let geometry = superblock.geometry;
        Self {
            uuid: superblock.uuid,
            seed: superblock.seed,
            geometry,
            base_sectors,
            block_bytes,
            incarnations: (0..geometry.segments).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Sets the seed with which the engine hashes keys.
    pub(crate) const fn set_seed(&mut self, seed: KeySeed) {
        self.seed = seed;
    }

    pub(crate) const fn uuid(&self) -> StoreUuid {
        self.uuid
    }

    pub(crate) const fn seed(&self) -> KeySeed {
        self.seed
    }

    pub(crate) const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The unit of reads and writes on the disk, in bytes.
    pub(crate) const fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// The sectors of this store in the engine's address space.
    pub(crate) fn sectors(&self) -> Range<u64> {
        self.base_sectors..self.base_sectors + self.geometry.total_bytes() / SECTOR_BYTES
    }

    /// Returns whether an address belongs to this store.
    pub(crate) fn holds(&self, address: Address) -> bool {
        self.sectors().contains(&address.sectors())
    }

    /// First unit of this store in the engine's address space.
    const fn base_units(&self) -> u64 {
        self.base_sectors * (SECTOR_BYTES / UNIT)
    }

    /// Returns the spot of a record in segment `index` at `offset_units`.
    pub(crate) fn spot(&self, index: u32, offset_units: u32) -> Option<Spot> {
        let units = self.geometry.segment_at(index) / UNIT + u64::from(offset_units);
        Spot::from_units(self.base_units() + units)
    }

    /// Returns the segment of a spot of this store, and the offset in that segment.
    pub(crate) fn locate(&self, spot: Spot) -> Option<(u32, u32)> {
        let local = spot.units().checked_sub(self.base_units())?;
        let (index, offset) = self.geometry.segment_with(local * UNIT)?;
        Some((index, (offset / UNIT) as u32))
    }

    pub(crate) fn incarnation(&self, index: u32) -> u64 {
        self.incarnations
            .get(index as usize)
            .map_or(0, |incarnation| incarnation.load(Ordering::Acquire))
    }

    /// The present incarnations of all segments; 0 for a segment without an incarnation. Other threads may
    /// change incarnations during the iteration.
    pub(crate) fn incarnations(&self) -> impl Iterator<Item = u64> {
        self.incarnations
            .iter()
            .map(|incarnation| incarnation.load(Ordering::Relaxed))
    }

    /// The oldest present incarnation of all segments.
    pub(crate) fn oldest_incarnation(&self) -> Option<u64> {
        let incarnations = self
            .incarnations
            .iter()
            .map(|incarnation| incarnation.load(Ordering::Acquire));
        incarnations.filter(|incarnation| *incarnation != 0).min()
    }

    /// The number of segments that have an incarnation.
    pub(crate) fn used_segments(&self) -> usize {
        self.incarnations()
            .filter(|incarnation| *incarnation != 0)
            .count()
    }

    /// Sets the incarnation that a segment has from now on; 0: none.
    pub(crate) fn begin_incarnation(&self, index: u32, sequence: u64) {
        self.incarnations[index as usize].store(sequence, Ordering::Release);
    }

    /// Sets the incarnation that the opening of the store found, before other threads can use the store.
    pub(crate) fn restore_incarnation(&self, index: u32, sequence: u64) {
        self.incarnations[index as usize].store(sequence, Ordering::Relaxed);
    }

    /// Ends the incarnations of all segments.
    pub(crate) fn end_incarnations(&self) {
        for incarnation in &self.incarnations {
            incarnation.store(0, Ordering::Release);
        }
    }

    /// Returns the place of a record at `spot`, with the segment's present incarnation.
    pub(crate) fn place(&self, spot: Spot) -> Option<RecordPlace> {
        let (index, _) = self.locate(spot)?;
        Some(RecordPlace {
            uuid: self.uuid,
            sequence: self.incarnation(index),
            address_units: spot.units() - self.base_units(),
            seed: self.seed,
        })
    }

    /// Returns the place in the log of a record at `spot`, in the segment's present incarnation.
    pub(crate) fn position(&self, spot: Spot) -> Option<LogPosition> {
        let (index, offset) = self.locate(spot)?;
        Some(LogPosition::new(self.incarnation(index), offset))
    }

    /// Returns the aligned read that covers the record of an index entry; `store` is the number of this
    /// store.
    pub(super) fn plan(&self, store: StoreId, hash: KeyHash, entry: &Entry) -> Option<ReadPlan> {
        let spot = Spot::of(entry);
        let (index, _) = self.locate(spot)?;
        let segment_end = self.geometry.segment_at(index) + u64::from(self.geometry.segment_bytes);
        let sector = (spot.address.sectors() - self.base_sectors) * SECTOR_BYTES;
        let end = (sector + entry.class.bytes()).min(segment_end);
        let at = sector / self.block_bytes * self.block_bytes;
        let len = end.div_ceil(self.block_bytes) * self.block_bytes - at;
        Some(ReadPlan {
            store,
            at,
            len: u32::try_from(len).ok()?,
            skip: (sector + spot.skip() - at) as u32,
            hash,
            spot,
            wide: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use foxy_format::Membership;

    use super::*;

    fn space(base_sectors: u64) -> Space {
        let geometry = Geometry::fit(1 << 20, 64 << 10, 16 << 10, 512).unwrap();
        let superblock = Superblock {
            extensions: 0,
            uuid: StoreUuid([1; 16]),
            generation: 1,
            floor: LogPosition(0),
            geometry,
            quarantine: Vec::new(),
            seed: KeySeed::default(),
            membership: Membership::default(),
        };
        Space::new(&superblock, base_sectors, 4096)
    }

    #[test]
    fn a_spot_leads_back_to_its_segment() {
        let space = space(4096);
        for index in 0..space.geometry().segments {
            let spot = space.spot(index, 7).unwrap();
            assert!(space.holds(spot.address));
            assert_eq!(space.locate(spot), Some((index, 7)));
        }
        let before = Address::from_sectors(4095).unwrap();
        let behind = Address::from_sectors(space.sectors().end).unwrap();
        assert!(!space.holds(before) && !space.holds(behind));
    }

    #[test]
    fn a_place_is_of_the_present_incarnation() {
        let space = space(0);
        let spot = space.spot(2, 0).unwrap();
        assert_eq!(
            (space.oldest_incarnation(), space.used_segments()),
            (None, 0)
        );
        space.begin_incarnation(2, 9);
        space.begin_incarnation(1, 8);
        assert_eq!(space.place(spot).map(|place| place.sequence), Some(9));
        assert_eq!(space.position(spot), Some(LogPosition::new(9, 0)));
        assert_eq!(
            (space.oldest_incarnation(), space.used_segments()),
            (Some(8), 2)
        );
        space.end_incarnations();
        assert_eq!(
            (space.incarnation(2), space.oldest_incarnation()),
            (0, None)
        );
    }
}
