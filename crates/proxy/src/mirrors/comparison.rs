//! Compares the bytes of a stream with a digest.

use foxy_mirror::Digest;
use sha2::{Digest as _, Sha256, Sha512};

/// The hash of the bytes that have arrived, and the digest that the complete bytes must have.
#[derive(Debug)]
pub(crate) enum Comparison {
    Sha256(Sha256, [u8; 32]),
    Sha512(Sha512, [u8; 64]),
}

impl Comparison {
    pub(crate) fn with(expected: Digest) -> Self {
        match expected {
            Digest::Sha256(expected) => Self::Sha256(Sha256::new(), expected),
            Digest::Sha512(expected) => Self::Sha512(Sha512::new(), expected),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash, _) => hash.update(bytes),
            Self::Sha512(hash, _) => hash.update(bytes),
        }
    }

    /// Returns true if the bytes that have arrived have the digest.
    pub(crate) fn is_right(&self) -> bool {
        match self {
            Self::Sha256(hash, expected) => hash.clone().finalize()[..] == expected[..],
            Self::Sha512(hash, expected) => hash.clone().finalize()[..] == expected[..],
        }
    }
}
