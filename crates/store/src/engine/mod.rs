//! The engine: what all threads share, and the operations on keys that need no disk.
//!
//! Uses all rooms below it: `maintenance`, `put`, `read`, `purge`, `removal` and what these use. Stores
//! are opened and written by the rooms above, `recovery` and `writer`.
//!
//! [`Engine`] is a facade over parts that own their state:
//!
//! | part | owns |
//! |---|---|
//! | [`Tables`] | the contents of memory, and the index of records on disks |
//! | [`Fleet`] | the open stores, those that are away, what they say about each other |
//! | [`Memory`] | the division of the budget |
//! | [`Catalogue`] | how contents of keys are taken away, and those of a store that goes |
//! | [`Purges`] | purges of many objects, and soft ones |
//! | [`Keys`] | the hash of keys |
//! | [`Reads`] | lookups, and the reads that they ask for; longer ones with [`Neighbours`] |
//! | [`Puts`] | storing, whole and in fragments; an admitter lets objects in |
//! | [`Mover`] | records that a drain sends to other stores |
//!
//! These parts are built from a [`Ground`], and none of them refers to the engine. A store is opened
//! with a [`Foundation`], from which the parts of its writer take what they need.

mod foundation;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use foxy_base::{Clock, FieldBlock, KeyHash, KeySeed};
use foxy_format::fragment_hash;
use foxy_policy::CachePolicy;

pub(crate) use self::foundation::Foundation;
use crate::fleet::Fleet;
use crate::interface::{StoreStats, SyncTicket};
use crate::maintenance::{Drain, Mover, Walk};
use crate::memory::{Ground, Memory};
use crate::purge::Purges;
use crate::put::{Puts, Routes};
use crate::read::{Keys, Neighbours, Reads};
use crate::removal::Catalogue;
use crate::shared::of_store;
use crate::{
    EngineConfig, FragmentPut, LargePut, NewLarge, NewObject, Object, ObjectMeta, Put, Scrub,
};

/// The shared heart of the cache. See the crate's head for its promises.
#[derive(Debug)]
pub struct Engine {
    foundation: Foundation,
    reads: Arc<Reads>,
    mover: Arc<Mover>,
}

impl Engine {
    /// An engine without a store: RAM only, until [`Engine::open_store`].
    #[must_use]
    pub fn new(mut config: EngineConfig, clock: Arc<dyn Clock>) -> Arc<Self> {
        // A shard should be large against the largest object, or it keeps few of them.
        let roomy = (config.memory_bytes / (16 << 20)).max(1) as usize;
        config.shards = config
            .shards
            .clamp(1, 1024)
            .min(roomy.next_power_of_two())
            .next_power_of_two();
        let keys = Arc::new(Keys::new(KeySeed(config.key_seed)));
        let ground = Ground::new(&config, config.shards, clock);
        let memory = Memory::new(&ground);
        let catalogue = Arc::new(Catalogue::new(&ground));
        let purges = Arc::new(Purges::new(&ground, &catalogue));
        let neighbours = Arc::new(Neighbours::new(&ground, &purges));
        let reads = Reads::new(&ground, &keys, &catalogue, &purges, &neighbours);
        let routes = Arc::new(Routes::new(&ground));
        let puts = Puts::new(&ground, &catalogue, &purges, &routes, config.fragment_bytes);
        let mover = Mover::new(&ground, &purges, &routes);
        Arc::new(Self {
            foundation: Foundation {
                ground,
                keys,
                memory: Arc::new(memory),
                catalogue,
                purges,
                puts: Arc::new(puts),
            },
            reads: Arc::new(reads),
            mover: Arc::new(mover),
        })
    }

    /// The parts that a store is opened with.
    pub(crate) const fn foundation(&self) -> &Foundation {
        &self.foundation
    }

    #[cfg(test)]
    pub(crate) const fn mover(&self) -> &Arc<Mover> {
        &self.mover
    }

    /// The parts that stand on no other.
    pub(crate) const fn ground(&self) -> &Ground {
        &self.foundation.ground
    }

    /// The hash of keys, as every operation wants it.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.foundation.keys
    }

    /// Largest body stored whole, and payload of a fragment, in bytes.
    #[must_use]
    pub fn fragment_bytes(&self) -> u32 {
        self.foundation.puts.fragment_bytes()
    }

    /// The longest object that may be stored: a quarter of the smallest store, or without one
    /// what the RAM tier keeps of large objects.
    #[must_use]
    pub fn object_bytes_max(&self) -> u64 {
        self.foundation.puts.object_bytes_max()
    }

    /// Stores an object in place of whatever its key held: visible to lookups at once if it was
    /// admitted, on disk soon. The old one is gone even if the new one is refused. Bodies longer
    /// than [`Engine::fragment_bytes`] are stored as large objects. Never blocks on a disk.
    pub fn put(&self, new: NewObject) -> Put {
        debug_assert!(
            self.foundation.keys.is_hash_of(new.hash, &new.key),
            "hashed with another seed"
        );
        self.foundation.puts.put(new)
    }

    /// As [`Engine::put`], but the RAM tier does not keep the object: it stays in memory only until
    /// its cluster is written. An object that does not go to a disk is not stored at all. The caller
    /// keeps the object out of the RAM tier on reads, too, with [`Reads::finish_read_if`].
    pub fn put_past_memory(&self, new: NewObject) -> Put {
        self.foundation.puts.put_past_memory(new)
    }

    /// Begins to store a large object. The key's present entry stays as it is until `finish`;
    /// call [`Engine::supersede`] at header time.
    pub fn put_large(&self, new: NewLarge) -> LargePut {
        debug_assert!(
            self.foundation.keys.is_hash_of(new.hash, &new.key),
            "hashed with another seed"
        );
        self.foundation.puts.put_large(new)
    }

    /// Stores the head of a large object whose body is still missing entirely, in place of what its
    /// key held. Lookups return the head from now on. `length` is the length of the whole body.
    pub fn put_sparse(&self, new: &NewLarge, length: u64) -> Put {
        debug_assert!(
            self.foundation.keys.is_hash_of(new.hash, &new.key),
            "hashed with another seed"
        );
        self.foundation.puts.put_sparse(new, length)
    }

    /// Begins to store bytes of a large object whose head is stored, from byte `start` on. Storing
    /// goes on if the object is superseded meanwhile: readers that have the head read these bytes to
    /// the end, and nobody else finds them.
    pub fn put_fragments(&self, head: &Arc<Object>, start: u64) -> FragmentPut {
        self.foundation.puts.put_fragments(head, start)
    }

    /// Returns whether fragment `n` is probably stored (memory only, counts no use).
    #[must_use]
    pub fn has_fragment(&self, head: &Object, n: u32) -> bool {
        let hash = fragment_hash(head.hash(), head.meta().version, n);
        self.ground().tables.is_known(hash)
    }

    /// Returns whether `head` is still the version that its key holds, as far as memory tells.
    #[must_use]
    pub fn is_current_version(&self, head: &Object) -> bool {
        self.ground().tables.is_current_version(head)
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
        self.foundation.puts.refresh(old, meta, vary, tags, fields)
    }

    /// Removes the live entry of a key: from RAM, from the objects that wait and from disk. Once this
    /// has returned, a kill of the process does not bring the entry back, and soon a power cut does
    /// not either. Call it at header time of a response that replaces the entry, before storing that
    /// response and whether or not it is stored. Returns whether there was an entry. Never blocks on
    /// a disk.
    pub fn supersede(&self, hash: KeyHash, _key: &[u8]) -> bool {
        self.foundation.catalogue.supersede(hash)
    }

    /// Removes a key like [`Engine::supersede`], whether or not it is known, and promises that it
    /// stays removed across power cuts once the ticket is done. Variants cannot be reached any
    /// more, since their keys contain the primary's nonce.
    pub fn purge(&self, hash: KeyHash, _key: &[u8]) -> SyncTicket {
        self.foundation.catalogue.purge(hash)
    }

    /// A ticket for everything put and removed before, purges of many included.
    pub fn sync(&self) -> SyncTicket {
        self.ground().fleet.sync()
    }

    /// Purges of many objects at once, and soft ones.
    #[must_use]
    pub const fn purges(&self) -> &Arc<Purges> {
        &self.foundation.purges
    }

    /// Returns whether a key is probably stored (memory only, counts no use).
    #[must_use]
    pub fn is_stored(&self, hash: KeyHash) -> bool {
        self.ground().tables.is_known(hash)
    }

    /// Returns whether every fragment of a large object is probably stored (memory only).
    #[must_use]
    pub fn has_all_fragments(&self, head: &Object) -> bool {
        (0..head.fragment_count()).all(|n| self.has_fragment(head, n))
    }

    /// Lookups, and the reads that they ask for.
    #[must_use]
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Begins a scrub, a pass over everything on disk; `None` while something is still being loaded.
    #[must_use]
    pub fn scrub(&self) -> Option<Scrub> {
        Scrub::begin(
            &self.ground().tables,
            &self.ground().fleet,
            &self.reads,
            &self.ground().clock,
        )
    }

    /// Begins to drain, if a store waits for it and everything is loaded.
    #[must_use]
    pub fn begin_drain(&self) -> Option<Drain> {
        Drain::begin(&self.ground().tables, &self.ground().fleet, &self.mover)
    }

    /// A walk over everything that is stored now, or on disk alone.
    #[must_use]
    pub fn walk(&self, memory: bool) -> Walk {
        Walk::new(&self.ground().tables, &self.ground().fleet, memory)
    }

    /// The stores together: their duties, their disks, and what is known of those that are away.
    #[must_use]
    pub fn fleet(&self) -> &Fleet {
        &self.ground().fleet
    }

    /// Gives the engine another memory budget, in bytes, as [`EngineConfig::memory_bytes`] gives it the
    /// first. The RAM tier shrinks or grows at once. The index stays as it is where it has more than half of
    /// a smaller budget, and its limit does not rise above half of the first budget. What already waits to
    /// be written is written.
    pub fn set_memory(&self, bytes: u64) {
        self.foundation.memory.set(bytes);
    }

    /// The RAM tier does without `bytes` bytes of its share from now on, because the process has
    /// more memory than was planned; a sixteenth of the budget stays with it.
    pub fn withhold(&self, bytes: u64) {
        self.foundation.memory.withhold(bytes);
    }

    /// True if waiting objects take half of their room, so that objects may soon be refused. A fill
    /// that pauses until this is false finds room. The room between this threshold and the limit is
    /// for records of a segment that is about to be reused.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.foundation.memory.budget().is_congested()
    }

    /// Figures of this moment.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let stores = self.ground().fleet.stores();
        let mut stats = StoreStats {
            ram_hits: 0,
            pending_hits: 0,
            counts: self.ground().counters.read(),
            ram_objects: 0,
            ram_bytes: 0,
            ram_capacity: self.foundation.memory.budget().ram(),
            pending_bytes: self.foundation.memory.budget().pending(),
            disk_objects: self.ground().tables.index().len(),
            index_bytes: self.ground().tables.index().memory_bytes(),
            memory: self.foundation.memory.shares(),
            stores: stores
                .iter()
                .map(|s| of_store(s, &*self.ground().clock))
                .collect(),
        };
        for shard in self.ground().tables.shards().iter() {
            let shard = shard.read();
            stats.ram_hits += shard.ram_hits.load(Ordering::Relaxed);
            stats.pending_hits += shard.pending_hits.load(Ordering::Relaxed);
            stats.ram_objects += shard.ram.len() as u64;
            stats.ram_bytes += shard.ram.used();
        }
        stats
    }
}
