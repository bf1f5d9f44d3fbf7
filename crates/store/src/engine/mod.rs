//! The engine: the state that all threads share, and the operations on keys that need no disk.
//!
//! This module uses `maintenance`, `put`, `read`, `purge`, `removal` and the modules below them. The modules
//! above it, `recovery` and `writer`, open stores and write to them.
//!
//! [`Engine`] is a facade over parts that each own their state:
//!
//! | part | state or task |
//! |---|---|
//! | [`Tables`] | the contents of memory, and the index of records on disks |
//! | [`Fleet`] | the open stores, the detached stores, and what the stores record about each other |
//! | [`Memory`] | the division of the budget |
//! | [`Catalogue`] | removes the contents of keys, and the contents of a store that leaves |
//! | [`Purges`] | purges of many objects, and soft purges |
//! | [`Keys`] | the hash function for keys |
//! | [`Reads`] | lookups and the disk reads that they request; [`Neighbours`] adds nearby records to reads |
//! | [`Puts`] | stores whole objects and fragments; an admitter applies admission |
//! | [`Mover`] | sends records to other stores for a drain |
//!
//! These parts are built from an [`EngineCore`], and no part refers to the engine. The function that opens
//! a store gets a [`StoreContext`], from which it builds the parts of the store's writer.

mod store_context;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use foxy_base::{Clock, FieldBlock, KeyHash, KeySeed};
use foxy_format::fragment_hash;
use foxy_policy::CachePolicy;

pub(crate) use self::store_context::StoreContext;
use crate::fleet::Fleet;
use crate::interface::{StoreStats, SyncTicket};
use crate::maintenance::{Drain, Mover, Walk};
use crate::memory::{EngineCore, Memory};
use crate::purge::Purges;
use crate::put::{Puts, Routes};
use crate::read::{Keys, Neighbours, Reads};
use crate::removal::Catalogue;
use crate::shared::of_store;
use crate::{
    EngineConfig, FragmentPut, LargePut, NewLarge, NewObject, Object, ObjectMeta, Put, Scrub,
};

/// The shared core of the cache. The documentation of the crate states what the core promises.
#[derive(Debug)]
pub struct Engine {
    context: StoreContext,
    reads: Arc<Reads>,
    mover: Arc<Mover>,
}

impl Engine {
    /// Makes an engine without a store: it keeps objects in RAM only, until [`Engine::open_store`] is
    /// called.
    #[must_use]
    pub fn new(mut config: EngineConfig, clock: Arc<dyn Clock>) -> Arc<Self> {
        // The memory budget limits the number of shards. If there are several shards, each of them gets at
        // least 8 MiB, because a small shard has room for only a few large objects.
        let roomy = (config.memory_bytes / (16 << 20)).max(1) as usize;
        config.shards = config
            .shards
            .clamp(1, 1024)
            .min(roomy.next_power_of_two())
            .next_power_of_two();
        let keys = Arc::new(Keys::new(KeySeed(config.key_seed)));
        let core = EngineCore::new(&config, config.shards, clock);
        let memory = Memory::new(&core);
        let catalogue = Arc::new(Catalogue::new(&core));
        let purges = Arc::new(Purges::new(&core, &catalogue));
        let neighbours = Arc::new(Neighbours::new(&core, &purges));
        let reads = Reads::new(&core, &keys, &catalogue, &purges, &neighbours);
        let routes = Arc::new(Routes::new(&core));
        let puts = Puts::new(&core, &catalogue, &purges, &routes, config.fragment_bytes);
        let mover = Mover::new(&core, &purges, &routes);
        Arc::new(Self {
            context: StoreContext {
                core,
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

    /// The parts that are needed to open a store.
    pub(crate) const fn context(&self) -> &StoreContext {
        &self.context
    }

    #[cfg(test)]
    pub(crate) const fn mover(&self) -> &Arc<Mover> {
        &self.mover
    }

    /// The parts that depend on no other part.
    pub(crate) const fn core(&self) -> &EngineCore {
        &self.context.core
    }

    /// Returns the hash function for keys; every operation expects hashes from it.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.context.keys
    }

    /// The length in bytes of the payload of a fragment. A body of at most this length is stored whole.
    #[must_use]
    pub fn fragment_bytes(&self) -> u32 {
        self.context.puts.fragment_bytes()
    }

    /// The length of the longest object that may be stored, in bytes: a quarter of the smallest store that
    /// takes writes. If no store takes writes, it is the length of the longest large object that the RAM tier
    /// keeps.
    #[must_use]
    pub fn object_bytes_max(&self) -> u64 {
        self.context.puts.object_bytes_max()
    }

    /// Stores an object in place of the present object of its key. If the new object is admitted, lookups
    /// find it immediately, and it is written to disk soon afterwards. The present object is removed even if
    /// the new object is refused. There is one exception: if a purge covers the new object, the present
    /// object stays. Bodies longer than [`Engine::fragment_bytes`] are stored as large objects. This method
    /// never blocks on a disk.
    pub fn put(&self, new: NewObject) -> Put {
        debug_assert!(
            self.context.keys.is_hash_of(new.hash, &new.key),
            "hashed with another seed"
        );
        self.context.puts.put(new)
    }

    /// Stores an object like [`Engine::put`], but not in the RAM tier: the object stays in memory only until
    /// its cluster is written. An object that does not go to a disk is not stored at all. When a caller later
    /// reads the object from a disk, it can use [`Reads::finish_read_if`] to keep the object out of the RAM
    /// tier.
    pub fn put_past_memory(&self, new: NewObject) -> Put {
        self.context.puts.put_past_memory(new)
    }

    /// Begins to store a large object. The key's present entry stays as it is until [`LargePut::finish`].
    /// To remove the present entry earlier, the caller calls [`Engine::supersede`] when the head of the
    /// response arrives.
    pub fn put_large(&self, new: NewLarge) -> LargePut {
        debug_assert!(
            self.context.keys.is_hash_of(new.hash, &new.key),
            "hashed with another seed"
        );
        self.context.puts.put_large(new)
    }

    /// Stores the head of a large object before any byte of its body is stored. The head replaces the object
    /// that the key held, and lookups return the head from now on. `length` is the length of the whole body.
    pub fn put_sparse(&self, new: &NewLarge, length: u64) -> Put {
        debug_assert!(
            self.context.keys.is_hash_of(new.hash, &new.key),
            "hashed with another seed"
        );
        self.context.puts.put_sparse(new, length)
    }

    /// Begins to store bytes of the body of a large object, from offset `start` (in bytes) on. The head of
    /// the object is stored already. If the object is superseded before all bytes are stored, storing
    /// continues: readers that already have the head still read these bytes. Readers that do not have this
    /// head do not find these bytes.
    pub fn put_fragments(&self, head: &Arc<Object>, start: u64) -> FragmentPut {
        self.context.puts.put_fragments(head, start)
    }

    /// Returns whether fragment `n` is probably stored. Checks memory only, and does not count as a
    /// use.
    #[must_use]
    pub fn has_fragment(&self, head: &Object, n: u32) -> bool {
        let hash = fragment_hash(head.hash(), head.meta().version, n);
        self.core().tables.is_known(hash)
    }

    /// Returns whether `head` is probably still the present version of its key. The check uses memory only.
    /// If the present object of the key is not in memory, the result only states whether the index has an
    /// entry for the key.
    #[must_use]
    pub fn is_current_version(&self, head: &Object) -> bool {
        self.core().tables.is_current_version(head)
    }

    /// Stores a new head (facts, Vary, tags and fields), for example from a 304, for a stored response
    /// whose body does not change. Does nothing and returns `None` if `old` is not the present object of
    /// its key.
    pub fn refresh(
        &self,
        old: &Arc<Object>,
        meta: ObjectMeta,
        vary: Bytes,
        tags: Bytes,
        fields: FieldBlock,
    ) -> Option<Put> {
        self.context.puts.refresh(old, meta, vary, tags, fields)
    }

    /// Removes the live entry of a key from RAM, from the objects that wait to be written, and from disk.
    /// Once this method has returned, a kill of the process cannot bring the entry back. Soon after that,
    /// when the removal has been flushed, a power cut cannot bring the entry back either. Call this method
    /// when the head of a response that replaces the entry arrives, before that response is stored. Call it
    /// even if that response will not be stored. Returns whether there was an entry. This method never blocks
    /// on a disk.
    pub fn supersede(&self, hash: KeyHash, _key: &[u8]) -> bool {
        self.context.catalogue.supersede(hash)
    }

    /// Removes a key like [`Engine::supersede`], whether or not the key is known. Once the ticket is
    /// done, the key stays removed across power cuts. Lookups do not reach the key's Vary variants any
    /// more, because the keys of the variants contain the nonce of the removed object.
    pub fn purge(&self, hash: KeyHash, _key: &[u8]) -> SyncTicket {
        self.context.catalogue.purge(hash)
    }

    /// Returns a ticket that is done when all earlier puts and removals are durable, including purges of
    /// many objects.
    pub fn sync(&self) -> SyncTicket {
        self.core().fleet.sync()
    }

    /// The purges of many objects (for example, of all objects with a tag), and the soft purges.
    #[must_use]
    pub const fn purges(&self) -> &Arc<Purges> {
        &self.context.purges
    }

    /// Returns whether a key is probably stored. Checks memory only, and does not count as a use.
    #[must_use]
    pub fn is_stored(&self, hash: KeyHash) -> bool {
        self.core().tables.is_known(hash)
    }

    /// Returns whether every fragment of a large object is probably stored. Checks memory only, and
    /// does not count as a use.
    #[must_use]
    pub fn has_all_fragments(&self, head: &Object) -> bool {
        (0..head.fragment_count()).all(|n| self.has_fragment(head, n))
    }

    /// The lookups, and the reads that they request.
    #[must_use]
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Begins a scrub, a pass over everything on disk. Returns `None` while a store is still being
    /// loaded.
    #[must_use]
    pub fn scrub(&self) -> Option<Scrub> {
        Scrub::begin(
            &self.core().tables,
            &self.core().fleet,
            &self.reads,
            &self.core().clock,
        )
    }

    /// Begins a drain of the stores for which [`Fleet::drain_store`] was called. Returns `None` in three
    /// cases: there is no such store, a store is still being loaded, or objects still wait to be written to a
    /// store that should be drained.
    #[must_use]
    pub fn begin_drain(&self) -> Option<Drain> {
        Drain::begin(&self.core().tables, &self.core().fleet, &self.mover)
    }

    /// Returns a walk over everything that is stored now in memory and on disks, or (without `memory`)
    /// on disks only.
    #[must_use]
    pub fn walk(&self, memory: bool) -> Walk {
        Walk::new(&self.core().tables, &self.core().fleet, memory)
    }

    /// The stores as a group: their duties, their disks, and what is known of detached stores.
    #[must_use]
    pub fn fleet(&self) -> &Fleet {
        &self.core().fleet
    }

    /// Sets a new memory budget, in bytes; [`EngineConfig::memory_bytes`] is the first budget. The RAM tier
    /// shrinks or grows immediately. If the index takes more than half of the new budget, the index keeps its
    /// size. The limit of the index does not rise above half of the first budget. Objects that already wait
    /// to be written are still written.
    pub fn set_memory(&self, bytes: u64) {
        self.context.memory.set(bytes);
    }

    /// Reduces the share of the RAM tier by `bytes` bytes from now on, because the process uses more memory
    /// than was planned. Each call replaces the value of the call before it. The RAM tier keeps at least a
    /// sixteenth of the budget.
    pub fn withhold(&self, bytes: u64) {
        self.context.memory.withhold(bytes);
    }

    /// Returns true if the objects that wait to be written take at least half of the memory for such
    /// objects. Then new objects may soon be refused. A fill should pause while this method returns true,
    /// because there may be no memory for its fragments. The other half of that memory is meant for records
    /// that are reinserted from a segment before the segment is reused.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.context.memory.budget().is_congested()
    }

    /// Returns the present figures.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let stores = self.core().fleet.stores();
        let mut stats = StoreStats {
            ram_hits: 0,
            pending_hits: 0,
            counts: self.core().counters.read(),
            ram_objects: 0,
            ram_bytes: 0,
            ram_capacity: self.context.memory.budget().ram(),
            pending_bytes: self.context.memory.budget().pending(),
            disk_objects: self.core().tables.index().len(),
            index_bytes: self.core().tables.index().memory_bytes(),
            memory: self.context.memory.shares(),
            stores: stores
                .iter()
                .map(|s| of_store(s, &*self.core().clock))
                .collect(),
        };
        for shard in self.core().tables.shards().iter() {
            let shard = shard.read();
            stats.ram_hits += shard.ram_hits.load(Ordering::Relaxed);
            stats.pending_hits += shard.pending_hits.load(Ordering::Relaxed);
            stats.ram_objects += shard.ram.len() as u64;
            stats.ram_bytes += shard.ram.used();
        }
        stats
    }
}
