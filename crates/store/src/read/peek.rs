//! Lookups without side effects: nothing is counted, moved between tiers or marked as used. [`Reads::peek`]
//! is for purges, and for reports that explain a request to an operator. [`Reads::in_memory`] is for
//! requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{KeyHash, rule};
use foxy_format::parse_record;
use foxy_index::Entry;

use super::Reads;
use crate::Object;
use crate::interface::Spot;
use crate::memory::Stage;
use crate::shared::of_store;

/// The object that is stored under a key, and its place.
#[derive(Clone, Debug)]
pub struct Peek {
    /// The stored object.
    pub object: Arc<Object>,
    /// True if the object is in memory.
    pub in_memory: bool,
    /// The place of the object on disk, if it already has a place.
    pub place: Option<DiskPlace>,
}

/// The place of a record in its store's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPlace {
    /// The name of the disk.
    pub disk: String,
    /// The number of segments that will be reused before the record's own segment.
    pub segments_before: u32,
    /// The number of all segments of the store.
    pub segments: u32,
    /// Estimated time until the record's segment is reused; `None` before the first reuse. The estimate uses
    /// the average rate of writing since the engine's clock began.
    pub expected: Option<Duration>,
}

impl Reads {
    /// Returns the object stored under a key. This may read the disk and wait, so network threads must not
    /// call it. Returns `None` if the object is not stored or cannot be read.
    #[must_use]
    pub fn peek(&self, hash: KeyHash, key: &[u8]) -> Option<Peek> {
        debug_assert!(self.keys.is_hash_of(hash, key), "hashed with another seed");
        let in_memory = {
            let shard = self.tables.shard(hash).read();
            shard.in_memory(hash).cloned()
        };
        let found = self.tables.index().lookup(hash).first();
        let place = found.and_then(|entry| self.disk_place(&entry));
        if let Some(object) = in_memory {
            let same = object.key() == key && self.may_be_given(&object);
            return same.then_some(Peek {
                object,
                in_memory: true,
                place,
            });
        }
        let entry = found?;
        let stores = self.open.load();
        let store = stores.at(entry.address)?;
        let plan = store.plan(hash, &entry)?;
        let mut record = vec![0; plan.len as usize];
        store.disk.read_at(plan.at, &mut record).ok()?;
        let bytes = Bytes::from(record).slice(plan.skip as usize..);
        let (head, layout) = parse_record(&bytes, &store.space.place(plan.spot)?).ok()?;
        let object = Object::from_record(&head, &layout, &bytes, layout.body.end)?;
        let own = object.hash() == hash && object.key() == key;
        let dead = object.meta().purge_sequence < store.marks.purge_floor();
        let same = own
            && !rule!("peek: what a store missed purges of is dead", dead, false)
            && self.may_be_given(&object);
        same.then(|| Peek {
            object: Arc::new(object),
            in_memory: false,
            place,
        })
    }

    /// Returns the object of a key if memory has it, and whether the object still waits for its
    /// cluster. As long as the object waits, another object of the key can replace it without a trace
    /// on any disk.
    #[must_use]
    pub fn in_memory(&self, hash: KeyHash, key: &[u8]) -> Option<(Arc<Object>, bool)> {
        let shard = self.tables.shard(hash).read();
        let object = shard.in_memory(hash)?.clone();
        let pending = shard.pending.get(&hash);
        let waits = pending.is_some_and(|p| p.stage == Stage::Waiting);
        drop(shard);
        let same = object.key() == key && self.may_be_given(&object);
        same.then_some((object, waits))
    }

    fn may_be_given(&self, object: &Object) -> bool {
        !object.is_fragment() && !self.purges.has_removed(object)
    }

    fn disk_place(&self, entry: &Entry) -> Option<DiskPlace> {
        let stores = self.open.load();
        let store = stores.at(entry.address)?;
        let (index, _) = store.space.locate(Spot::of(entry))?;
        let own = store.space.incarnation(index);
        let before = store
            .space
            .incarnations()
            .filter(|incarnation| *incarnation < own)
            .count();
        let segments = store.space.geometry().segments;
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        let residency = of_store(store, &*self.clock).residency;
        Some(DiskPlace {
            disk: store.disk.describe(),
            segments_before: before,
            segments,
            expected: residency.map(|all| all * before / segments.max(1)),
        })
    }
}
