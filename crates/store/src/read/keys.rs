//! The hash of keys. All stores of an engine share its seed.

use std::sync::OnceLock;

use foxy_base::{KeyHash, KeySeed};

/// Hashes keys with a seed that never changes after its first use.
#[derive(Debug)]
pub struct Keys {
    /// The seed that is used if no store names another seed.
    own: KeySeed,
    /// The seed in force; the first store or the first hashed key fixes it.
    seed: OnceLock<KeySeed>,
}

impl Keys {
    pub(crate) const fn new(own: KeySeed) -> Self {
        Self {
            own,
            seed: OnceLock::new(),
        }
    }

    /// Returns the seed of the hashes.
    pub(crate) fn seed(&self) -> KeySeed {
        self.agree_on(self.own)
    }

    /// Proposes a seed, and returns the seed in force.
    pub(crate) fn agree_on(&self, recorded: KeySeed) -> KeySeed {
        *self.seed.get_or_init(|| recorded)
    }

    /// Returns the hash of a full key.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.seed().hash(key)
    }

    /// Returns true if `hash` is the hash of the key. If the seed in force is 0 (no seed), it always
    /// returns true, because tests make up hashes that collide.
    pub(crate) fn is_hash_of(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.seed() == KeySeed::default() || self.hash(key) == hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seed_holds() {
        let keys = Keys::new(KeySeed(1));
        assert_eq!(keys.agree_on(KeySeed(2)), KeySeed(2));
        assert_eq!(
            (keys.seed(), keys.agree_on(KeySeed(3))),
            (KeySeed(2), KeySeed(2))
        );
        let hash = keys.hash(b"key");
        assert!(keys.is_hash_of(hash, b"key") && !keys.is_hash_of(hash, b"other"));
        assert_eq!(Keys::new(KeySeed(1)).seed(), KeySeed(1));
    }
}
