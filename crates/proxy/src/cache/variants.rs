//! A table of the variants (Vary) of each URL. The answer to a purge states the number of removed objects,
//! and this table is used to count them.
//!
//! A variant is noted when a response that varies is stored. The table is bounded, and it is empty after a
//! restart. If a purge concerns variants that the table does not know, a pass over the complete store counts
//! them.

use foxy_base::KeyHash;
use hashbrown::HashMap;
use parking_lot::Mutex;

/// Largest number of variants in the table, which needs at most about 64 MiB.
const NOTED_MAX: usize = 1 << 20;

/// Variants, by the hash of their primary key.
#[derive(Debug, Default)]
pub(crate) struct Variants {
    families: Mutex<Families>,
}

#[derive(Debug, Default)]
struct Families {
    by_base: HashMap<KeyHash, Family>,
    noted: usize,
}

/// All variants of one URL whose keys contain the same nonce (see `cache::key`).
#[derive(Debug)]
struct Family {
    nonce: u64,
    /// The key hashes of these variants, without the primary entry (the object under the primary key).
    others: Vec<KeyHash>,
}

impl Variants {
    /// Notes that an object with Vary is being stored under `hash`. The object is the primary entry (then
    /// `hash` equals `base`) or a variant. `fresh` is true if the response has a new nonce. Then no request
    /// can find the older variants.
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
            // The table does not know the primary entry, which may have been stored before the last start. So
            // the table does not know the other variants either.
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

    /// Forgets the variants of a URL. Returns all of them except the primary entry, or `None` if the table
    /// does not know them.
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
