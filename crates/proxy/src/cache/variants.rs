//! The variants that a URL has, so that purging it can say how many objects went.
//!
//! A variant is noted when a response that varies is stored. The table is bounded, and empty after a
//! restart: variants that are not known here are counted by a sweep instead.

use foxy_base::KeyHash;
use hashbrown::HashMap;
use parking_lot::Mutex;

/// Variants that are noted in all: about 64 MiB at most.
const NOTED_MAX: usize = 1 << 20;

/// Variants by the hash of their primary key.
#[derive(Debug, Default)]
pub(crate) struct Variants {
    families: Mutex<Families>,
}

#[derive(Debug, Default)]
struct Families {
    by_base: HashMap<KeyHash, Family>,
    noted: usize,
}

/// All variants made with one nonce.
#[derive(Debug)]
struct Family {
    nonce: u64,
    /// Those other than the primary.
    others: Vec<KeyHash>,
}

impl Variants {
    /// Something that varies is being stored under `hash`: the primary itself (`hash` is `base`)
    /// or a variant. A primary with a new nonce puts the older variants out of reach.
    pub(crate) fn note(&self, base: KeyHash, nonce: u64, hash: KeyHash, fresh: bool) {
        let mut families = self.families.lock();
        if fresh {
            families.forget(base);
            if families.noted >= NOTED_MAX {
                return;
            }
            families.noted += 1;
            let others = Vec::new();
            families.by_base.insert(base, Family { nonce, others });
        }
        let room = families.noted < NOTED_MAX;
        let Some(family) = families.by_base.get_mut(&base) else {
            // The primary is not known here (it may be from before the start), so its other variants are
            // not known either.
            return;
        };
        if hash == base || family.nonce != nonce || family.others.contains(&hash) {
            return;
        }
        if room {
            family.others.push(hash);
            families.noted += 1;
        } else {
            families.forget(base);
        }
    }

    /// Forgets a URL's variants and returns them, the primary left out; `None` if they are not
    /// known.
    pub(crate) fn take(&self, base: KeyHash) -> Option<Vec<KeyHash>> {
        let family = self.families.lock().forget(base)?;
        Some(family.others)
    }
}

impl Families {
    fn forget(&mut self, base: KeyHash) -> Option<Family> {
        let family = self.by_base.remove(&base)?;
        self.noted -= 1 + family.others.len();
        Some(family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::key_hash;

    #[test]
    fn a_family_is_known_from_its_first_primary_on() {
        let variants = Variants::default();
        let [base, a, b] = [b"u", b"a", b"b"].map(|key| key_hash(key));
        variants.note(base, 1, a, false);
        assert_eq!(variants.take(base), None, "older than this process");
        variants.note(base, 1, base, true);
        variants.note(base, 1, a, false);
        variants.note(base, 1, a, false);
        variants.note(base, 1, b, false);
        variants.note(base, 1, base, false);
        assert_eq!(variants.take(base), Some(vec![a, b]));
        assert_eq!(variants.take(base), None);
        variants.note(base, 1, base, true);
        variants.note(base, 1, a, false);
        variants.note(base, 2, base, true);
        variants.note(base, 1, b, false);
        assert_eq!(variants.take(base), Some(vec![]), "another nonce");
        assert_eq!(variants.families.lock().noted, 0);
    }
}
