//! Shards: each shard is a part of the tables of keys, and has its own lock.

use std::sync::Arc;

use foxy_base::KeyHash;
use foxy_policy::CachePolicy;
use parking_lot::RwLock;

use super::shard::Shard;

/// All shards of an engine. Their number is a power of two. Clones share the same shards.
#[derive(Clone, Debug)]
pub(crate) struct Shards(Arc<[RwLock<Shard>]>);

impl Shards {
    /// Makes `count` shards, whose RAM tiers have `bytes` bytes together.
    pub(super) fn new(count: usize, bytes: u64) -> Self {
        let each = bytes / count as u64;
        Self((0..count).map(|_| RwLock::new(Shard::new(each))).collect())
    }

    /// Returns the shard of a key.
    pub(crate) fn of(&self, hash: KeyHash) -> &RwLock<Shard> {
        &self.0[(hash.high() >> 32) as usize & (self.0.len() - 1)]
    }

    /// Returns the shard with this number; numbers begin at 0.
    pub(crate) fn get(&self, number: usize) -> Option<&RwLock<Shard>> {
        self.0.get(number)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, RwLock<Shard>> {
        self.0.iter()
    }

    /// Takes and releases the lock of each shard once. So a thread that holds such a lock when the call
    /// begins has released it when the call ends.
    pub(crate) fn barrier(&self) {
        for shard in &*self.0 {
            drop(shard.write());
        }
    }

    /// Sets the capacity of the RAM tier to `bytes` bytes, for all shards together. Returns the number of
    /// objects that were evicted for this.
    pub(crate) fn set_capacity(&self, bytes: u64) -> u64 {
        let each = bytes / self.0.len() as u64;
        self.0
            .iter()
            .map(|shard| shard.write().set_capacity(each))
            .sum()
    }

    /// Empties the RAM tier. Returns the number of objects that were in it.
    pub(crate) fn clear(&self) -> u64 {
        let clear = |shard: &RwLock<Shard>| {
            let mut shard = shard.write();
            let capacity = shard.ram.capacity();
            let gone = shard.set_capacity(0);
            shard.set_capacity(capacity);
            gone
        };
        self.0.iter().map(clear).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_shard_and_all_are_used() {
        let shards = Shards::new(4, 4000);
        let of = |high: u128| shards.of(KeyHash(high << 96));
        let all: Vec<*const _> = (0..4).map(|high| std::ptr::from_ref(of(high))).collect();
        assert!(
            shards
                .iter()
                .all(|shard| all.contains(&std::ptr::from_ref(shard)))
        );
        assert!(std::ptr::eq(of(1), of(5)));
        assert!(shards.get(3).is_some() && shards.get(4).is_none());
        assert_eq!(of(0).read().ram.capacity(), 1000);
        assert_eq!(shards.set_capacity(8000), 0);
        assert_eq!(of(3).read().ram.capacity(), 2000);
    }
}
