//! Hashes: 128 bits for keys, 64 bits for routing and tables, CRC32C for bytes on disk.

use std::fmt;

use crc_fast::{CrcAlgorithm, Digest};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// The 128-bit hash of a full cache key. The full key itself is in the record and is compared on
/// every disk hit. So if two keys have the same hash, the only cost is a miss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u128);

impl KeyHash {
    /// The upper half. The store's index uses only this half, unless it has a secret number that it mixes
    /// into the complete hash.
    #[must_use]
    pub const fn high(self) -> u64 {
        (self.0 >> 64) as u64
    }
    /// The lower half.
    #[must_use]
    pub const fn low(self) -> u64 {
        self.0 as u64
    }
    /// Little-endian bytes, as on disk.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
    /// Makes a hash from little-endian bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Seed of the hashes of keys. All stores that are open together have the same seed. Only somebody who knows
/// the seed can choose keys whose hashes are equal. 0 means no seed, as in stores that were formatted before
/// seeds existed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySeed(pub u64);

impl KeySeed {
    /// Hash of a full key. The function (XXH3, 128 bits) never changes, because the hash is part of the
    /// format on disk.
    #[must_use]
    pub fn hash(self, key: &[u8]) -> KeyHash {
        KeyHash(xxh3_128_with_seed(key, self.0))
    }
}

/// Hash of a full key with seed 0.
#[must_use]
pub fn key_hash(key: &[u8]) -> KeyHash {
    KeySeed::default().hash(key)
}

/// A 64-bit hash for tables and routing. The hash of the same bytes with the same seed never changes.
#[must_use]
pub fn hash64(seed: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// CRC32C (Castagnoli) of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Continues a CRC32C over more bytes.
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_never_change() {
        // The hashes and checksums of these inputs must stay the same. If one of them changed, every store on
        // disk would be unusable.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(
            key_hash(b"").to_string(),
            "99aa06d3014798d86001c324468d497f"
        );
        let (key, seed) = (
            b"forward GET http://example.com/",
            KeySeed(0x0123_4567_89ab_cdef),
        );
        assert_eq!(
            key_hash(key).to_string(),
            "c92ad7ba29402468c8a03230f2d46d07"
        );
        assert_eq!(
            seed.hash(key).to_string(),
            "7b11acd19436865de388e8e784bce915"
        );
        assert_eq!(
            crc32c_append(crc32c(b"1234"), b"56789"),
            crc32c(b"123456789")
        );
    }

    /// Computes the CRC bit by bit, directly from the polynomial.
    fn crc32c_by_bits(bytes: &[u8]) -> u32 {
        let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
            })
        });
        !crc
    }

    /// The library uses different code for short and long inputs, and different code on different processors.
    /// So the test checks many lengths.
    #[test]
    fn checksums_are_those_of_the_polynomial_at_many_lengths() {
        let bytes: Vec<u8> = (0..4200u32).map(|i| ((i * i) >> 5) as u8).collect();
        let lengths = (0..600).chain((600..4200).step_by(37)).chain(4090..4110);
        for len in lengths {
            let expected = crc32c_by_bits(&bytes[..len]);
            assert_eq!(crc32c(&bytes[..len]), expected, "{len} bytes");
            let (first, rest) = bytes[..len].split_at(len / 3);
            assert_eq!(
                crc32c_append(crc32c(first), rest),
                expected,
                "{len} bytes in two"
            );
        }
    }

    #[test]
    fn bytes_round_trip() {
        let hash = key_hash(b"forward http://example.com/");
        assert_eq!(KeyHash::from_bytes(hash.to_bytes()), hash);
        assert_eq!(
            (u128::from(hash.high()) << 64) | u128::from(hash.low()),
            hash.0
        );
    }
}
