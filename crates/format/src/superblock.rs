//! The superblock: it contains the store's identity, its layout, the floor of its log (everything before this
//! position is dead), and the set of stores that are open together with this store.

use crate::bytes_io::{Put, Take, check_crc, check_mark};
use crate::{
    EXTENSION_SEED, EXTENSIONS, FORMAT_VERSION, FormatError, GROWTHS_MAX, Geometry, Growth,
    LogPosition, StoreUuid,
};
use foxy_base::{KeySeed, rule};

/// Length of a superblock in bytes.
pub const SUPERBLOCK_BYTES: usize = 4096;
const MAGIC: [u8; 4] = *b"FOXY";
/// Greatest number of segments in the quarantine list (the list of segments that could not be read).
pub const QUARANTINE_MAX: usize = 512;
/// Number of earlier store sets (sets of stores that were open together) that a superblock records.
pub const FORMER_MAX: usize = 32;
const USED: usize = 176 + 8 * FORMER_MAX + 4 * QUARANTINE_MAX;

/// The membership record: it describes the store set, which is the set of stores that are open together. Each
/// store of the set keeps the same record. When stores are opened together again, the records show which
/// store was absent while the other stores were in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Number of changes of the store set; 0 if the store was never in a store set.
    pub epoch: u64,
    /// A hash over the uuids of the stores in the store set.
    pub members: u64,
    /// The values of `members` at earlier epochs, the latest first. There are zeros for epochs before the
    /// first.
    pub former: [u64; FORMER_MAX],
}

/// One of the two superblocks. The valid superblock with the higher generation is current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Extensions of the format that the store uses: bits of [`EXTENSIONS`].
    pub extensions: u16,
    /// Generation of the superblock. It increases with every write, usually by one. No generation is
    /// used twice.
    pub generation: u64,
    /// The store's identity.
    pub uuid: StoreUuid,
    /// The sizes chosen at formatting.
    pub geometry: Geometry,
    /// A log position. Everything before it in the log is dead (after a purge of all objects, or after lost
    /// tombstones).
    pub floor: LogPosition,
    /// The record of the stores that were open together with this store.
    pub membership: Membership,
    /// Segments that could not be read, ascending; at most [`QUARANTINE_MAX`] are remembered.
    pub quarantine: Vec<u32>,
    /// Seed of the hashes of keys in this store. It is not 0 if, and only if, [`EXTENSION_SEED`] is set.
    pub seed: KeySeed,
}

impl Superblock {
    /// Sets the seed with which keys are hashed from now on.
    pub fn set_seed(&mut self, seed: KeySeed) {
        self.seed = seed;
        self.extensions &= !EXTENSION_SEED;
        if seed != KeySeed::default() {
            self.extensions |= EXTENSION_SEED;
        }
    }

    /// Encodes the superblock as it is on disk.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SUPERBLOCK_BYTES);
        let mut put = Put(&mut out);
        put.bytes(&MAGIC);
        put.u16(FORMAT_VERSION);
        put.u16(self.extensions);
        put.u64(self.generation);
        put.bytes(&self.uuid.0);
        let g = &self.geometry;
        for v in [
            g.segment_bytes,
            g.segments,
            g.cluster_bytes,
            g.slot_bytes,
            g.journal_bytes,
            g.removals_bytes,
        ] {
            put.u32(v);
        }
        put.u64(self.floor.0);
        put.u64(self.membership.epoch);
        put.u64(self.membership.members);
        self.membership.former.iter().for_each(|m| put.u64(*m));
        for growth in &g.grown {
            put.u64(growth.turn);
            put.u32(growth.first);
        }
        let bad = &self.quarantine[..self.quarantine.len().min(QUARANTINE_MAX)];
        put.u32(bad.len() as u32);
        for place in 0..QUARANTINE_MAX {
            put.u32(bad.get(place).copied().unwrap_or(0));
        }
        put.u64(self.seed.0);
        debug_assert_eq!(put.0.len(), USED);
        put.pad_to(SUPERBLOCK_BYTES - 4);
        let crc = foxy_base::crc32c(&out);
        Put(&mut out).u32(crc);
        out
    }

    /// Reads superblocks A and B, which follow each other in `bytes`. If one superblock is valid and only the
    /// version field of the other superblock is wrong, the other superblock counts as damaged (`Checksum`). A
    /// flipped bit must not look like a newer version.
    pub fn decode_both(bytes: &[u8]) -> [Result<Self, FormatError>; 2] {
        let (a, b) = bytes.split_at(SUPERBLOCK_BYTES.min(bytes.len()));
        let found = [Self::decode(a), Self::decode(b)];
        if found.iter().all(Result::is_err) {
            return found;
        }
        let [first, second] = found;
        [(first, a), (second, b)].map(|(found, bytes)| match found {
            Err(FormatError::Newer(_) | FormatError::Older(_))
                if rule!(
                    "superblock: a flipped bit is no newer version",
                    only_version_differs(bytes),
                    false
                ) =>
            {
                Err(FormatError::Checksum)
            }
            found => found,
        })
    }

    /// Reads a superblock.
    ///
    /// # Errors
    /// `Empty` for zeros. `Foreign` if the magic number is missing. `Newer` or `Older` for another version;
    /// this is checked before the checksum, because another version may compute the checksum differently.
    /// `Extended` for unknown extensions. Other errors for other damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = bytes
            .get(..SUPERBLOCK_BYTES)
            .ok_or(FormatError::Truncated)?;
        let mut take = Take::new(bytes);
        check_mark(&mut take, MAGIC, bytes)?;
        check_crc(bytes, SUPERBLOCK_BYTES - 4)?;
        let extensions = take.u16()?;
        if rule!(
            "superblock: a store with extensions that are not known is refused",
            extensions & !EXTENSIONS != 0,
            false
        ) {
            return Err(FormatError::Extended(extensions & !EXTENSIONS));
        }
        let generation = take.u64()?;
        let uuid = StoreUuid(take.array()?);
        let mut geometry = Geometry {
            segment_bytes: take.u32()?,
            segments: take.u32()?,
            cluster_bytes: take.u32()?,
            slot_bytes: take.u32()?,
            journal_bytes: take.u32()?,
            removals_bytes: take.u32()?,
            grown: [Growth::default(); GROWTHS_MAX],
        };
        let floor = LogPosition(take.u64()?);
        let mut membership = Membership {
            epoch: take.u64()?,
            members: take.u64()?,
            ..Membership::default()
        };
        for members in &mut membership.former {
            *members = take.u64()?;
        }
        for growth in &mut geometry.grown {
            *growth = Growth {
                turn: take.u64()?,
                first: take.u32()?,
            };
        }
        geometry.check()?;
        let quarantine = quarantine(&mut take, geometry.segments)?;
        let seed = KeySeed(take.u64()?);
        if (seed.0 != 0) != (extensions & EXTENSION_SEED != 0) {
            return Err(FormatError::Invalid("seed of hashes"));
        }
        take.zeros(SUPERBLOCK_BYTES - 4 - USED)?;
        Ok(Self {
            extensions,
            generation,
            uuid,
            geometry,
            floor,
            membership,
            quarantine,
            seed,
        })
    }
}

/// True if the checksum is right when the version field is set to this program's version.
fn only_version_differs(bytes: &[u8]) -> bool {
    let Some(mut own) = bytes.get(..SUPERBLOCK_BYTES).map(<[u8]>::to_vec) else {
        return false;
    };
    own[4..6].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    check_crc(&own, SUPERBLOCK_BYTES - 4).is_ok()
}

/// Reads the numbers of quarantined segments. They must be ascending, and the segments must exist. Unused
/// bytes are zero.
fn quarantine(take: &mut Take<'_>, segments: u32) -> Result<Vec<u32>, FormatError> {
    let count = take.u32()? as usize;
    let mut bad = Vec::with_capacity(count.min(QUARANTINE_MAX));
    for _ in 0..count.min(QUARANTINE_MAX) {
        bad.push(take.u32()?);
    }
    let ascending = bad.is_sorted_by(|a, b| a < b) && bad.last().is_none_or(|b| *b < segments);
    if count > QUARANTINE_MAX || !ascending {
        return Err(FormatError::Invalid("quarantine"));
    }
    take.zeros(4 * (QUARANTINE_MAX - count))?;
    Ok(bad)
}
