//! Storing of whole objects, of objects in fragments, and of heads of large objects whose bodies follow
//! later.
//!
//! This module uses `purge`, `removal` and the modules below them. [`Puts`] makes objects of the data
//! that the caller passes.
//!
//! | file | has |
//! |---|---|
//! | `large`, `sparse` | objects in fragments, and heads whose bytes follow later |
//! | `admit` | makes an object visible, and sends it to a disk if the object is admitted |
//! | `routes` | the choice of a store for a new object |

mod admit;
mod large;
mod routes;
mod sparse;

use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{FieldBlock, rule};
use foxy_format::{RecordKind, fragment_hash};

use self::admit::Admitter;
pub(crate) use self::admit::largest_record;
use self::large::head_of;
pub use self::large::{LargePut, NewLarge, Stored};
pub(crate) use self::routes::Routes;
pub use self::sparse::FragmentPut;
use crate::fleet::Fleet;
use crate::interface::{EngineCounters, Spot, add};
use crate::memory::{EngineCore, Holds, MemoryBudget, Numbers, PurgeMark, Tables, place_mark};
use crate::purge::Purges;
use crate::removal::Catalogue;
use crate::shared::StoreShared;
use crate::{Admission, DropReason, MAX_KEY_BYTES, NewObject, Object, ObjectMeta, Put};

/// Makes objects of the data that is to be stored, and passes them on for admission.
#[derive(Debug)]
pub(crate) struct Puts {
    admitter: Admitter,
    tables: Tables,
    fleet: Arc<Fleet>,
    catalogue: Arc<Catalogue>,
    purges: Arc<Purges>,
    routes: Arc<Routes>,
    budget: Arc<MemoryBudget>,
    holds: Holds,
    numbers: Arc<Numbers>,
    counters: Arc<EngineCounters>,
    /// The payload of a fragment in bytes, while there is no store.
    fragment_bytes: u32,
}

impl Puts {
    pub(crate) fn new(
        core: &EngineCore,
        catalogue: &Arc<Catalogue>,
        purges: &Arc<Purges>,
        routes: &Arc<Routes>,
        fragment_bytes: u32,
    ) -> Self {
        Self {
            admitter: Admitter::new(core, catalogue, purges, routes),
            tables: core.tables.clone(),
            fleet: Arc::clone(&core.fleet),
            catalogue: Arc::clone(catalogue),
            purges: Arc::clone(purges),
            routes: Arc::clone(routes),
            budget: Arc::clone(&core.budget),
            holds: core.holds.clone(),
            numbers: Arc::clone(&core.numbers),
            counters: Arc::clone(&core.counters),
            fragment_bytes,
        }
    }

    /// The length in bytes of the payload of a fragment. A body of at most this length is stored whole.
    pub(crate) fn fragment_bytes(&self) -> u32 {
        self.fleet.fragment_bytes().unwrap_or(self.fragment_bytes)
    }

    /// The length of the longest object that may be stored, in bytes: a quarter of the smallest store that
    /// takes writes. If no store takes writes, it is the length of the longest large object that the RAM tier
    /// keeps.
    pub(crate) fn object_bytes_max(&self) -> u64 {
        let room = |s: &StoreShared| {
            u64::from(s.space.geometry().segments) * u64::from(s.space.geometry().segment_bytes) / 4
        };
        let stores = self.fleet.stores();
        let able = stores.iter().filter(|s| s.takes_writes());
        let smallest = able.map(|s| room(s)).min();
        smallest.unwrap_or_else(|| self.budget.large_in_ram())
    }

    /// Stores an object in place of the present object of its key, in fragments if it is long.
    pub(crate) fn put(self: &Arc<Self>, new: NewObject) -> Put {
        if new.body.len() > self.fragment_bytes() as usize {
            return self.fragmented(&new, |put| put);
        }
        let object = Arc::new(Object::from_new(new, self.numbers.next_version()));
        let admitted = self.store(&object, false);
        Put { object, admitted }
    }

    /// Stores an object like [`Self::put`], but not in the RAM tier.
    pub(crate) fn put_past_memory(self: &Arc<Self>, new: NewObject) -> Put {
        if new.body.len() > self.fragment_bytes() as usize {
            return self.fragmented(&new, |put| put.past_memory());
        }
        let object = Arc::new(Object::from_new(new, self.numbers.next_version()));
        let admitted = self.store_in(&object, false, false);
        Put { object, admitted }
    }

    fn fragmented(
        self: &Arc<Self>,
        new: &NewObject,
        how: impl FnOnce(LargePut) -> LargePut,
    ) -> Put {
        let length = new.body.len() as u64;
        let mut large = how(self.put_large(NewLarge::of(new, Some(length))));
        large.append(&new.body);
        large.finish()
    }

    /// Stores a head or whole object and counts it. `paid` is true if the gate, which applies the write
    /// budget, has already admitted it.
    fn store(&self, object: &Arc<Object>, paid: bool) -> Admission {
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
                self.catalogue.supersede(object.hash()),
                false
            );
            add(&self.counters.drop_too_large, 1);
            return Admission::Refused(DropReason::TooLarge);
        }
        self.admitter.admit(object, ram, paid)
    }

    /// Begins to store a large object.
    pub(crate) fn put_large(self: &Arc<Self>, new: NewLarge) -> LargePut {
        LargePut::begin(
            self,
            new,
            self.numbers.next_version(),
            self.fragment_bytes(),
        )
    }

    /// Stores the head of a large object of `length` bytes, while none of the bytes is stored yet.
    pub(crate) fn put_sparse(&self, new: &NewLarge, length: u64) -> Put {
        let version = self.numbers.next_version();
        let head = head_of(new, version, self.fragment_bytes(), length);
        let head = Arc::new(self.holds.hold(head));
        let admitted = self.store(&head, false);
        Put {
            object: head,
            admitted,
        }
    }

    /// Begins to put bytes of a large object whose head is stored.
    pub(crate) fn put_fragments(self: &Arc<Self>, head: &Arc<Object>, start: u64) -> FragmentPut {
        FragmentPut::begin(self, head, start)
    }

    /// Stores fragment `n` of an object; `length` is the object's length as far as it is known. With `ram`,
    /// the RAM tier takes the fragment too if the object is short enough or there is no store.
    ///
    /// # Errors
    /// An error if the fragment does not go to a disk. If there is no store, an error if the fragment is not
    /// in RAM. The error states the reason. After an error the fragment is perhaps not readable.
    fn put_piece(
        &self,
        head: &Arc<Object>,
        n: u32,
        length: u64,
        body: Bytes,
        ram: bool,
    ) -> Result<(), DropReason> {
        let new = NewObject {
            key: head.key.clone(),
            hash: fragment_hash(head.hash(), head.meta().version, n),
            group: head.group,
            meta: head.meta,
            vary: Bytes::new(),
            tags: Bytes::new(),
            fields: FieldBlock::empty(),
            body,
        };
        let object = Object {
            kind: RecordKind::Fragment,
            total_length: length,
            fragment_size: head.fragment_size,
            fragment: n,
            ..Object::from_new(new, head.meta().version)
        };
        add(&self.counters.fragments, 1);
        add(&self.counters.put_bytes, object.body.len() as u64);
        let no_store = self.routes.route(object.route()).is_none();
        let in_ram = ram && (length <= self.budget.large_in_ram() || no_store);
        match self.admitter.admit(&Arc::new(object), in_ram, true) {
            Admission::Refused(reason) => Err(reason),
            // If the fragments were only in RAM, some of them would soon be evicted, and the object would be
            // incomplete. That is accepted only if there is no store.
            Admission::Memory(reason) if reason != DropReason::NoStore => Err(reason),
            _ => Ok(()),
        }
    }

    /// Stores a new head for a stored response whose body stays. Returns `None` if `old` is not the present
    /// object of its key.
    pub(crate) fn refresh(
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
            // Fragments are found by the version, so the version stays.
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
        let admitted = self.store(&object, false);
        Some(Put { object, admitted })
    }

    /// Returns whether a lookup would return exactly this object. The check uses memory only.
    fn is_current(&self, object: &Object) -> bool {
        let shard = self.tables.shard(object.hash()).read();
        match shard.in_memory(object.hash()) {
            Some(present) => present.meta() == object.meta(),
            // The index may lead to a newer version. It leads to this object only if it names the place from
            // which this object was read.
            None => (self.tables.index().lookup(object.hash()).into_iter())
                .filter_map(|entry| {
                    let spot = Spot::of(&entry);
                    self.fleet.stores().at(spot.address)?.space.place(spot)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::rig::{engine_core, object};

    fn puts(core: &EngineCore) -> Arc<Puts> {
        let catalogue = Arc::new(Catalogue::new(core));
        let purges = Arc::new(Purges::new(core, &catalogue));
        let routes = Arc::new(Routes::new(core));
        Arc::new(Puts::new(core, &catalogue, &purges, &routes, 1000))
    }

    #[test]
    fn a_long_object_is_stored_in_fragments_and_a_short_one_whole() {
        let core = engine_core(64 << 20);
        let puts = puts(&core);
        assert!(!puts.put(object("short", &[1; 1000])).object.is_large());
        let long = puts.put(object("long", &[1; 2001]));
        assert!(long.admitted.is_visible() && long.object.is_large());
        assert_eq!(long.object.fragment_count(), 3);
        let version = long.object.meta().version;
        let known = |n| {
            core.tables
                .is_known(fragment_hash(long.object.hash(), version, n))
        };
        assert_eq!([0, 1, 2, 3].map(known), [true, true, true, false]);
    }

    #[test]
    fn fragments_without_a_head_are_forgotten() {
        let core = engine_core(64 << 20);
        let new = object("k", b"");
        let mut put = puts(&core).put_large(NewLarge::of(&new, None));
        assert!(put.append(&[1; 1001]));
        let head = put.stored().head();
        let first = fragment_hash(head.hash(), head.meta().version, 0);
        assert!(core.tables.is_known(first));
        put.abort();
        assert!(!core.tables.is_known(first));
    }

    #[test]
    fn only_the_present_object_is_refreshed() {
        let core = engine_core(64 << 20);
        let puts = puts(&core);
        let refresh = |old: &Arc<Object>| {
            let (none, fields) = (Bytes::new(), FieldBlock::empty());
            puts.refresh(old, *old.meta(), none.clone(), none, fields)
        };
        let old = puts.put(object("k", b"one")).object;
        assert!(refresh(&old).is_some());
        let new = puts.put(object("k", b"two")).object;
        assert!(refresh(&old).is_none() && refresh(&new).is_some());
    }
}
