//! Numbers that are never used twice.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::hash64;
use foxy_format::StoreUuid;

/// The source of two kinds of numbers: numbers that are unique in this run, and object versions that are
/// unique over all runs.
#[derive(Debug)]
pub(crate) struct Numbers {
    seed: u64,
    next: AtomicU64,
    version_seed: AtomicU64,
}

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            next: AtomicU64::new(1),
            version_seed: AtomicU64::new(hash64(seed, b"version")),
        }
    }

    /// Returns a number that was never returned before in this run.
    pub(crate) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a number that was never returned before in this run, mixed with the seed of the
    /// configuration.
    pub(crate) fn next_seeded(&self) -> u64 {
        self.seed ^ self.next()
    }

    /// Returns an object version that was never returned before, in this run or an earlier one.
    pub(crate) fn next_version(&self) -> u64 {
        hash64(
            self.version_seed.load(Ordering::Relaxed),
            &self.next().to_le_bytes(),
        )
    }

    /// Makes versions differ from the versions of all earlier runs of this store. This works because the
    /// generation, a counter in the store's superblocks, is different at each start.
    pub(crate) fn mix_versions(&self, store: StoreUuid, generation: u64) {
        let mut mixed = store.0.to_vec();
        mixed.extend_from_slice(&generation.to_le_bytes());
        let seed = hash64(self.version_seed.load(Ordering::Relaxed), &mixed);
        self.version_seed.store(seed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_differ_between_runs_of_one_store() {
        let run = |generation| {
            let numbers = Numbers::new(7);
            numbers.mix_versions(StoreUuid([1; 16]), generation);
            [numbers.next_version(), numbers.next_version()]
        };
        let (first, again) = (run(1), run(2));
        assert_ne!(first[0], first[1]);
        assert!(first.iter().all(|version| !again.contains(version)));
    }
}
