//! A small hasher for small integer keys. Its results are the same on every machine, and it is fast.

use std::hash::{BuildHasherDefault, Hasher};

/// The hasher for hash maps with small integers as keys.
pub(crate) type BuildIdHasher = BuildHasherDefault<IdHasher>;

/// A hasher that multiplies and folds. It is not for keys that an attacker can choose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(29) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
