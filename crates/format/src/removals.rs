//! The removal log: a ring of entries of fixed size. It keeps each removal until the removal's tombstone (the
//! entry of the store's log that removes the key or record) is durable. When the process dies, the next start
//! reads these removals from the removal log. So no removed record comes back.
//!
//! Entry `n` (from 1) is written to place `n` modulo the number of places. The oldest active entry is the
//! oldest entry whose removal has no durable tombstone in the store's log. All later entries are active too.
//! Each entry states how many of the entries directly before it were active when it was written. The entries
//! before those were not active any more.

use foxy_base::{KeyHash, crc32c, rule};

use crate::bytes_io::{Put, Take};
use crate::{FormatError, LogPosition, StoreUuid};

/// Length of an entry of the removal log in bytes.
pub const REMOVAL_BYTES: usize = 40;

/// The subject of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removed {
    /// No record: the entry only states that entries before it are no longer active.
    Nothing,
    /// The record at this log position.
    Place(LogPosition),
    /// Everything stored under the hash before this log position.
    Key(KeyHash, LogPosition),
}

/// An entry of the removal log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemovalEntry {
    /// Number of the entry, from 1.
    pub number: u64,
    /// Number of earlier entries that were still active when this entry was written; below 2^24.
    pub before: u32,
    /// Subject of the removal.
    pub removed: Removed,
}

impl RemovalEntry {
    /// Encodes the entry as it is on disk. The checksum includes the store's identity.
    #[must_use]
    pub fn encode(&self, uuid: StoreUuid) -> [u8; REMOVAL_BYTES] {
        let (kind, hash, place) = match self.removed {
            Removed::Nothing => (0, KeyHash(0), LogPosition(0)),
            Removed::Place(place) => (1, KeyHash(0), place),
            Removed::Key(hash, place) => (2, hash, place),
        };
        let mut out = Vec::with_capacity(REMOVAL_BYTES);
        let mut put = Put(&mut out);
        put.bytes(&hash.to_bytes());
        put.u64(place.0);
        put.u64(self.number);
        put.u32(self.before & 0xff_ffff | kind << 24);
        let crc = checksum(uuid, put.0);
        put.u32(crc);
        let mut bytes = [0; REMOVAL_BYTES];
        bytes.copy_from_slice(&out);
        bytes
    }

    /// Reads the entry at place number `place` of a ring with `places` places.
    ///
    /// # Errors
    /// `Empty` for zeros, `Checksum` for a torn entry or an entry of another store, `Invalid` for an entry
    /// that does not belong to this place.
    pub fn decode(
        bytes: &[u8; REMOVAL_BYTES],
        uuid: StoreUuid,
        place: u64,
        places: u64,
    ) -> Result<Self, FormatError> {
        let (body, crc) = bytes.split_at(REMOVAL_BYTES - 4);
        if checksum(uuid, body).to_le_bytes() != crc {
            let empty = bytes.iter().all(|b| *b == 0);
            return Err(if empty {
                FormatError::Empty
            } else {
                FormatError::Checksum
            });
        }
        let mut take = Take::new(body);
        let hash = KeyHash::from_bytes(take.array()?);
        let (at, number, word) = (LogPosition(take.u64()?), take.u64()?, take.u32()?);
        let removed = match word >> 24 {
            0 => Removed::Nothing,
            1 => Removed::Place(at),
            2 => Removed::Key(hash, at),
            _ => return Err(FormatError::Invalid("removal kind")),
        };
        if number == 0 || number % places.max(1) != place {
            return Err(FormatError::Invalid("removal place"));
        }
        Ok(Self {
            number,
            before: word & 0xff_ffff,
            removed,
        })
    }
}

fn checksum(uuid: StoreUuid, body: &[u8]) -> u32 {
    let mut bytes = [0; 16 + REMOVAL_BYTES - 4];
    bytes[..16].copy_from_slice(&rule!(
        "removal log: an entry of another store is not valid",
        uuid.0,
        [0; 16]
    ));
    bytes[16..].copy_from_slice(body);
    crc32c(&bytes)
}

/// The entries of a removal log that are still active, in order, and the number of the next entry. Entries
/// are left out if they are torn, belong to another store or to an earlier round of the ring, or are no
/// longer active.
#[must_use]
pub fn read_removals(log: &[u8], uuid: StoreUuid) -> (Vec<RemovalEntry>, u64) {
    let (places, _) = log.as_chunks::<REMOVAL_BYTES>();
    let count = places.len() as u64;
    let mut entries: Vec<_> = (0..)
        .zip(places)
        .filter_map(|(at, bytes)| RemovalEntry::decode(bytes, uuid, at, count).ok())
        .collect();
    let Some(newest) = entries.iter().max_by_key(|e| e.number).copied() else {
        return (Vec::new(), 1);
    };
    // A power cut can lose the newer entry of a place, so that the place still contains the entry of the
    // previous round.
    let first = newest.number - u64::from(newest.before).min(newest.number.min(count) - 1);
    entries.retain(|e| {
        let counts = rule!(
            "removal log: entries of a former round, or done with, are not active",
            e.number >= first,
            true
        );
        counts && e.removed != Removed::Nothing
    });
    entries.sort_by_key(|e| e.number);
    (entries, newest.number + 1)
}
