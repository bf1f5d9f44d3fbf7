//! The tables of keys: the contents of memory for each key, and the position of its record on a disk.

use std::sync::Arc;

use foxy_base::KeyHash;
use foxy_index::{Entry, Index};
use parking_lot::RwLock;

use super::shard::Shard;
use super::shards::Shards;
use crate::Object;
use crate::interface::Spot;

/// The functions with which the index allocates, prefetches and frees its memory.
pub const INDEX_PAGES: foxy_index::Pages = foxy_index::Pages {
    map: foxy_disk::map_zeroed,
    unmap: foxy_disk::unmap_zeroed,
    advice: foxy_disk::prefer_huge_pages,
    prefetch: foxy_disk::prefetch,
};

/// The shards and the index of an engine. Clones share the same tables.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    shards: Shards,
    index: Arc<Index>,
}

impl Tables {
    pub(super) fn new(shards: Shards, index: Index) -> Self {
        Self {
            shards,
            index: Arc::new(index),
        }
    }

    /// Returns the shard of a key. Every change to the state of the key happens under the lock of this
    /// shard.
    pub(crate) fn shard(&self, hash: KeyHash) -> &RwLock<Shard> {
        self.shards.of(hash)
    }

    /// Returns all shards.
    pub(crate) const fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Returns the index, which has the entries of records on disks.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Returns whether an object is probably stored under a hash. This does not count as a use.
    pub(crate) fn is_known(&self, hash: KeyHash) -> bool {
        self.shard(hash).read().in_memory(hash).is_some() || !self.index.lookup(hash).is_empty()
    }

    /// Returns whether an object probably has the present version of its key. The check uses memory only.
    /// If no object of the key is in memory, the result only states whether the index has an entry for the
    /// key. The record of this entry may have another version.
    pub(crate) fn is_current_version(&self, object: &Object) -> bool {
        let shard = self.shard(object.hash()).read();
        match shard.in_memory(object.hash()) {
            Some(present) => present.meta().version == object.meta().version,
            None => !self.index.lookup(object.hash()).is_empty(),
        }
    }

    /// Returns the index entry that leads from this hash to `spot`.
    pub(crate) fn entry_at(&self, hash: KeyHash, spot: Spot) -> Option<Entry> {
        let mut found = self.index.lookup(hash).into_iter();
        found.find(|entry| Spot::of(entry) == spot)
    }

    /// Returns whether the index has an entry for this hash that leads to `spot`.
    pub(crate) fn leads_to(&self, hash: KeyHash, spot: Spot) -> bool {
        self.entry_at(hash, spot).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectMeta;
    use crate::tests::rig::object;

    fn of_version(version: u64) -> Object {
        let mut new = object("k", b"body");
        new.meta = ObjectMeta {
            version,
            ..ObjectMeta::default()
        };
        Object::from_new(new, version)
    }

    #[test]
    fn memory_tells_a_version_and_the_index_only_that_there_is_one() {
        let tables = Tables::new(Shards::new(1, 1 << 20), Index::new());
        let (old, new) = (of_version(1), of_version(2));
        let hash = new.hash();
        assert!(!tables.is_known(hash) && !tables.is_current_version(&new));
        tables.shard(hash).write().insert_ram(Arc::new(new.clone()));
        assert!(tables.is_known(hash) && tables.is_current_version(&new));
        assert!(!tables.is_current_version(&old));
        tables.shards().clear();
        let spot = Spot::from_units(1234).unwrap();
        let entry = spot.entry(512).unwrap();
        let _ = tables.index().insert(hash, entry);
        assert!(tables.is_known(hash) && tables.is_current_version(&old));
        assert!(tables.leads_to(hash, spot));
        assert_eq!(tables.entry_at(hash, Spot::from_units(1235).unwrap()), None);
    }
}
