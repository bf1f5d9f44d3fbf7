//! Storing: replacing what was there, becoming visible, getting on the way to disk.

use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{FieldBlock, rule};

use crate::inbox::Item;
use crate::large::{LargePut, NewLarge};
use crate::object::place_mark;
use crate::purge::PurgeMark;
use crate::shard::{Pending, Stage};
use crate::shared::StoreShared;
use crate::spot::Spot;
use crate::stats::add;
use crate::{Admission, DropReason, Engine, MAX_KEY_BYTES, NewObject, Object, ObjectMeta, Put};

impl Engine {
    /// Stores an object in place of whatever its key held: visible to lookups at once if it was
    /// admitted, on disk soon. The old one is gone even if the new one is refused. Bodies longer
    /// than [`Engine::fragment_bytes`] are stored as large objects. Never blocks on a disk.
    pub fn put(self: &Arc<Self>, new: NewObject) -> Put {
        debug_assert!(
            self.keys.is_hash_of(new.hash, &new.key),
            "hashed with another seed"
        );
        if new.body.len() > self.fragment_bytes() as usize {
            return self.put_in_fragments(new);
        }
        let object = Arc::new(Object::from_new(new, self.numbers.next_version()));
        let admitted = self.store_object(&object);
        Put { object, admitted }
    }

    /// As [`Engine::put`], past the RAM tier: the object waits for its cluster in memory and takes no
    /// place there afterwards. What does not go to a disk is not stored at all. The caller keeps it
    /// out when it is read, too: [`crate::Reads::finish_read_if`].
    pub fn put_past_memory(self: &Arc<Self>, new: NewObject) -> Put {
        if new.body.len() > self.fragment_bytes() as usize {
            return self.fragmented(new, |put| put.past_memory());
        }
        let object = Arc::new(Object::from_new(new, self.numbers.next_version()));
        let admitted = self.store_in(&object, false, false);
        Put { object, admitted }
    }

    fn put_in_fragments(self: &Arc<Self>, new: NewObject) -> Put {
        self.fragmented(new, |put| put)
    }

    fn fragmented(self: &Arc<Self>, new: NewObject, how: impl FnOnce(LargePut) -> LargePut) -> Put {
        let body = new.body.clone();
        let mut large = how(self.put_large(NewLarge {
            key: new.key,
            hash: new.hash,
            group: new.group,
            meta: new.meta,
            vary: new.vary,
            tags: new.tags,
            fields: new.fields,
            length: Some(body.len() as u64),
        }));
        large.append(&body);
        large.finish()
    }

    /// Stores a head or whole object, counting it.
    pub(crate) fn store_object(&self, object: &Arc<Object>) -> Admission {
        self.store_object_as(object, false)
    }

    /// As [`Engine::store_object`]; the gate was asked before if it is `paid`.
    pub(crate) fn store_object_as(&self, object: &Arc<Object>, paid: bool) -> Admission {
        self.store_in(object, true, paid)
    }

    fn store_in(&self, object: &Arc<Object>, ram: bool, paid: bool) -> Admission {
        add(&self.counters.puts, 1);
        let length = if object.is_large() {
            0
        } else {
            object.body().len()
        };
        let text = object.key().len() + object.fields().as_bytes().len();
        add(&self.counters.put_bytes, (length + text) as u64);
        if object
            .key()
            .len()
            .max(object.vary().len())
            .max(object.tags().len())
            > MAX_KEY_BYTES
        {
            rule!(
                "put: one with too long a key takes the old version away",
                self.supersede(object.hash(), object.key()),
                false
            );
            add(&self.counters.drop_too_large, 1);
            return Admission::Refused(DropReason::TooLarge);
        }
        self.admit(object, ram, paid)
    }

    /// Replaces what the key held; the RAM tier takes it if `ram`, a store if one can.
    pub(crate) fn admit(&self, object: &Arc<Object>, ram: bool, paid: bool) -> Admission {
        let hash = object.hash();
        let bytes = object.record_bytes();
        let mut shard = self.tables.shard(hash).write();
        // A stored object was fetched after the purge, or the purge has removed it. Fragments go with their head.
        let covered = !object.is_fragment() && !self.purges.set().may_store(object);
        if rule!(
            "put: what was fetched before a purge that covers it is not stored",
            covered,
            false
        ) {
            add(&self.counters.drop_purged, 1);
            return Admission::Refused(DropReason::Purged);
        }
        rule!(
            "put: the old version goes whether or not the new one is admitted",
            self.catalogue.supersede_locked(&mut shard, hash),
            false
        );
        let room = match paid || self.is_let_in(object, bytes) {
            true => self.make_room(object, bytes),
            // A head alone in memory would ask for fragments that nobody keeps.
            false if object.is_large() => return Admission::Refused(DropReason::NotAdmitted),
            false => Err(DropReason::NotAdmitted),
        };
        let ticket = self.numbers.next();
        let mut in_ram = false;
        if ram {
            let (stored, evicted) = shard.insert_ram(object.clone());
            in_ram = stored;
            add(&self.counters.ram_evictions, evicted);
        }
        match room {
            Ok((store, bytes)) => {
                let pending = Pending {
                    object: object.clone(),
                    store: store.id,
                    ticket,
                    stage: Stage::Waiting,
                };
                shard.pending.insert(hash, pending);
                drop(shard);
                store.push(Item {
                    hash,
                    ticket,
                    group: object.group(),
                    bytes,
                });
                Admission::Disk
            }
            Err(reason) if in_ram => Admission::Memory(reason),
            Err(reason) => Admission::Refused(reason),
        }
    }

    /// Returns whether the write budget, or the rule at its end, admits a head or whole object.
    fn is_let_in(&self, object: &Object, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let all = match object.is_large() {
            true => bytes + object.total_length(),
            false => bytes,
        };
        self.pays(object.hash(), all)
    }

    pub(crate) fn pays(&self, hash: foxy_base::KeyHash, bytes: u64) -> bool {
        let admitted = self.gate.admits(hash, bytes, || self.clock.mono());
        if !admitted {
            add(&self.counters.drop_budget, 1);
        }
        admitted
    }

    /// A store for the object of this length there, with room among the pending ones taken.
    fn make_room(
        &self,
        object: &Object,
        bytes: usize,
    ) -> Result<(Arc<StoreShared>, u32), DropReason> {
        let counters = &self.counters;
        let Some(store) = self.route(object.route()) else {
            add(&counters.drop_no_store, 1);
            return Err(DropReason::NoStore);
        };
        if bytes > largest_record(store.space.geometry().cluster_bytes) {
            add(&counters.drop_too_large, 1);
            return Err(DropReason::TooLarge);
        }
        if !self.budget.reserve(&store, object.memory_bytes()) {
            add(&counters.drop_pending, 1);
            store.load.dropped(&store.counters);
            return Err(DropReason::PendingFull);
        }
        Ok((store, bytes as u32))
    }

    /// Stores a new head (facts, Vary and fields) for a stored response whose body stays, as a
    /// 304 brings it. Does nothing and returns `None` if `old` is not what the key holds now.
    pub fn refresh(
        &self,
        old: &Arc<Object>,
        meta: ObjectMeta,
        vary: Bytes,
        tags: Bytes,
        fields: FieldBlock,
    ) -> Option<Put> {
        let gone = self.purges.has_removed(old);
        if old.is_fragment()
            || rule!(
                "refresh: a 304 does not bring back what is purged",
                gone,
                false
            )
            || rule!(
                "refresh: a late 304 does not put an old version over a newer one",
                !self.is_current(old),
                false
            )
        {
            return None;
        }
        let mut object = Object {
            // Fragments are found under the version, so it stays.
            meta: ObjectMeta {
                version: old.meta().version,
                ..meta
            },
            vary,
            tags,
            fields,
            mark: PurgeMark::new(meta.purge_sequence),
            read_from: 0,
            ..(**old).clone()
        };
        object.own_small_parts();
        let object = Arc::new(object);
        let admitted = self.store_object(&object);
        Some(Put { object, admitted })
    }

    /// Returns whether a lookup would give this very object, as far as memory tells.
    fn is_current(&self, object: &Object) -> bool {
        let shard = self.tables.shard(object.hash()).read();
        match shard.in_memory(object.hash()) {
            Some(present) => present.meta() == object.meta(),
            // The index may lead to a newer version, unless it names the place that this one was
            // read from.
            None => (self.tables.index().lookup(object.hash()).into_iter())
                .filter_map(|entry| {
                    let spot = Spot::of(&entry);
                    self.stores().at(spot.address)?.space.place(spot)
                })
                .any(|place| {
                    rule!(
                        "refresh: an entry of the key is not taken for the one it was read from",
                        place_mark(&place) == object.read_from,
                        true
                    )
                }),
        }
    }
}

/// Longest record that fits into a cluster beside the table.
pub(crate) const fn largest_record(cluster_bytes: u32) -> usize {
    cluster_bytes as usize - foxy_format::cluster_table_bytes(1)
}
