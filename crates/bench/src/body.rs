//! Bodies that can be verified: every byte follows from the body's identity and the byte's offset.
//!
//! A body is a sequence of 64-bit words. Each word is a hash of the body's key (host, id, version, size) and
//! the word's number. So each range can be generated or checked without the other parts of the body. The
//! check detects bytes of another object, another version, another length or another offset.

use foxy_base::hash64;

/// Identity of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity<'h> {
    /// Host name without port, lower case.
    pub host: &'h [u8],
    /// Number of the object at that host.
    pub id: u64,
    /// Version of the object.
    pub version: u32,
    /// Length of the complete body in bytes.
    pub size: u64,
}

/// A hash of an [`Identity`], from which the bytes of the body are generated. It is small enough to be kept
/// with each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BodyKey(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX: u64 = 0xbf58_476d_1ce4_e5b9;

impl Identity<'_> {
    /// The key of this body.
    #[must_use]
    pub fn key(&self) -> BodyKey {
        let host = hash64(0x0b0d, self.host);
        let mut key = host;
        for part in [self.id, u64::from(self.version), self.size] {
            key = (key ^ part).wrapping_mul(MIX);
            key ^= key >> 29;
        }
        BodyKey(key)
    }
}

impl BodyKey {
    /// The word with this number.
    const fn word(self, number: u64) -> u64 {
        let mut x = self.0 ^ number.wrapping_mul(STEP);
        x ^= x >> 32;
        x = x.wrapping_mul(MIX);
        x ^ (x >> 29)
    }

    /// Writes the bytes of the body that begin at `offset`.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let (mut number, skip) = (offset / 8, (offset % 8) as usize);
        let mut rest = out;
        if skip > 0 {
            let bytes = self.word(number).to_le_bytes();
            let n = rest.len().min(8 - skip);
            let (first, others) = rest.split_at_mut(n);
            first.copy_from_slice(&bytes[skip..skip + n]);
            rest = others;
            number += 1;
        }
        let mut words = rest.chunks_exact_mut(8);
        for chunk in &mut words {
            chunk.copy_from_slice(&self.word(number).to_le_bytes());
            number += 1;
        }
        let tail = words.into_remainder();
        let n = tail.len();
        tail.copy_from_slice(&self.word(number).to_le_bytes()[..n]);
    }

    /// Compares `bytes` with the bytes that the body has at `offset`.
    ///
    /// # Errors
    /// If a byte is wrong, returns the offset of the first wrong byte, counted from the beginning of the
    /// body.
    pub fn check(self, offset: u64, bytes: &[u8]) -> Result<(), u64> {
        let lead = ((8 - offset % 8) % 8).min(bytes.len() as u64) as usize;
        let (first, rest) = bytes.split_at(lead);
        self.check_slowly(offset, first)?;
        let mut at = offset + lead as u64;
        let mut words = rest.chunks_exact(8);
        for chunk in &mut words {
            let have = chunk.try_into().map_or(0, u64::from_le_bytes);
            if have != self.word(at / 8) {
                return self.check_slowly(at, chunk);
            }
            at += 8;
        }
        self.check_slowly(at, words.remainder())
    }

    fn check_slowly(self, offset: u64, bytes: &[u8]) -> Result<(), u64> {
        for (at, byte) in (offset..).zip(bytes) {
            if self.word(at / 8).to_le_bytes()[(at % 8) as usize] != *byte {
                return Err(at);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: Identity<'_> = Identity {
        host: b"127.0.0.1",
        id: 7,
        version: 1,
        size: 5000,
    };

    proptest! {
        #[test]
        fn any_range_is_a_piece_of_the_whole(offset in 0usize..5000, len in 0usize..5000) {
            let mut whole = vec![0; 10_000];
            ONE.key().fill(0, &mut whole);
            let mut piece = vec![0; len];
            ONE.key().fill(offset as u64, &mut piece);
            prop_assert_eq!(&piece[..], &whole[offset..offset + len]);
            prop_assert_eq!(ONE.key().check(offset as u64, &piece), Ok(()));
        }

        #[test]
        fn any_wrong_byte_is_found(offset in 0u64..100, len in 1usize..300, at in 0usize..300, bit in 0u8..8) {
            let at = at % len;
            let mut piece = vec![0; len];
            ONE.key().fill(offset, &mut piece);
            piece[at] ^= 1 << bit;
            prop_assert_eq!(ONE.key().check(offset, &piece), Err(offset + at as u64));
        }
    }

    #[test]
    fn every_part_of_the_identity_counts() {
        let mut body = vec![0; 64];
        ONE.key().fill(0, &mut body);
        for other in [
            Identity {
                host: b"127.0.0.2",
                ..ONE
            },
            Identity { id: 8, ..ONE },
            Identity { version: 2, ..ONE },
            Identity { size: 5001, ..ONE },
        ] {
            assert!(other.key().check(0, &body).is_err(), "{other:?}");
        }
        assert!(
            ONE.key().check(8, &body[..56]).is_err(),
            "shifted by a word"
        );
    }
}
