//! A small hasher for small integer keys: the same on every machine, and not the hot spot.

use std::hash::{BuildHasherDefault, Hasher};

/// Hash maps keyed by small integers use this.
pub(crate) type BuildIdHasher = BuildHasherDefault<IdHasher>;

/// Multiplies and folds; not for keys that others choose.
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
