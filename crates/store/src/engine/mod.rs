//! The engine: what all threads share, and the operations on keys that need no disk.

mod figures;
mod ground;
mod keys;
mod numbers;
mod shards;
mod tables;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_base::{Clock, KeyHash, KeySeed, hash64};
use foxy_disk::Disk;
use foxy_policy::CachePolicy;

pub(crate) use self::ground::Ground;
pub(crate) use self::keys::Keys;
use self::numbers::Numbers;
pub(crate) use self::shards::Shards;
pub(crate) use self::tables::Tables;
use crate::around::Neighbours;
use crate::catalogue::Catalogue;
use crate::fleet::Fleet;
use crate::gate::Gate;
use crate::hold::Holds;
use crate::lookups::Lookups;
use crate::memory::{Memory, MemoryBudget};
use crate::purge::{Purges, Walk};
use crate::reads::Reads;
use crate::registry::Stores;
use crate::shared::StoreShared;
use crate::stats::{EngineCounters, StoreStats};
use crate::ticket::SyncTicket;
use crate::{EngineConfig, Lookup, Object, OpenError, Scrub, StoreOptions, Writer};

/// Where the index has its memory from.
pub const INDEX_PAGES: foxy_index::Pages = foxy_index::Pages {
    map: foxy_disk::map_zeroed,
    unmap: foxy_disk::unmap_zeroed,
    advice: foxy_disk::prefer_huge_pages,
    prefetch: foxy_disk::prefetch,
};

/// The shared heart of the cache. See the crate's head for its promises.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tables: Tables,
    pub(crate) keys: Keys,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) memory: Memory,
    pub(crate) counters: Arc<EngineCounters>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) purges: Arc<Purges>,
    lookups: Lookups,
    reads: Arc<Reads>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) holds: Holds,
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
        let ground = Ground::new(&config, config.shards, clock);
        let memory = Memory::new(&ground);
        let catalogue = Arc::new(Catalogue::new(&ground));
        let purges = Arc::new(Purges::new(&ground, &catalogue));
        let neighbours = Arc::new(Neighbours::new(&ground, &purges));
        let lookups = Lookups::new(&ground, &purges, &neighbours);
        let reads = Reads::new(&ground, &catalogue, &purges, &neighbours);
        Arc::new(Self {
            keys: Keys::new(KeySeed(config.key_seed)),
            tables: ground.tables,
            fleet: ground.fleet,
            numbers: ground.numbers,
            budget: ground.budget,
            memory,
            counters: ground.counters,
            catalogue,
            purges,
            lookups,
            reads: Arc::new(reads),
            gate: ground.gate,
            holds: ground.holds,
            config,
            clock: ground.clock,
        })
    }

    /// Adds a store: formats an empty disk, otherwise recovers what is on it. When this returns,
    /// lookups are right; older segments are loaded by the first turns of the writer. Blocks for
    /// a few reads; call it before serving, or on a thread of its own. If the engine's stores met
    /// ([`Engine::meet`]), [`Engine::join`] has to follow.
    ///
    /// # Errors
    /// Each says what to do. Nothing on the disk was changed then, unless the device failed.
    #[expect(clippy::needless_pass_by_value, reason = "options belong to the store")]
    pub fn open_store(
        self: &Arc<Self>,
        disk: Arc<dyn Disk>,
        options: StoreOptions,
    ) -> Result<Writer, OpenError> {
        let _one_at_a_time = self.fleet.lock_membership();
        Writer::open(self, disk, &options, None)
    }

    /// Hash of a full key, as every other operation wants it.
    #[must_use]
    pub fn key_hash(&self, key: &[u8]) -> KeyHash {
        self.keys.hash(key)
    }

    /// All stores, in order of opening.
    pub(crate) fn stores(&self) -> Stores {
        self.fleet.stores()
    }

    /// The store that takes objects with this [`Object::route`]: weighted rendezvous over those that
    /// take writes and have room. Lookups do not depend on it.
    pub(crate) fn route(&self, key: u64) -> Option<Arc<StoreShared>> {
        let stores = self.stores();
        let takes = |s: &&Arc<StoreShared>| s.takes_new(|| self.clock.mono());
        let able: Vec<_> = stores.iter().filter(takes).collect();
        if let [only] = able[..] {
            return Some(only.clone());
        }
        let has_room = |all: u64| {
            let stores = able.iter().copied();
            stores.filter(move |s| self.budget.has_room(s, all))
        };
        // Where no store has room by its speed, any of them takes the room that is left.
        let best = best_of(key, has_room(sum_of_speeds(&able)));
        best.or_else(|| best_of(key, has_room(0))).cloned()
    }

    /// Largest body stored whole, and payload of a fragment, in bytes.
    #[must_use]
    pub fn fragment_bytes(&self) -> u32 {
        let of_stores = self.fleet.fragment_bytes();
        of_stores.unwrap_or(self.config.fragment_bytes)
    }

    /// Removes the live entry of a key: from RAM, from what waits and from disk. When it returns
    /// a kill does not bring it back, and soon a power cut does not either. Call it at header time
    /// for a response that replaces, before and regardless of storing that. True if there was one.
    /// Never blocks on a disk.
    pub fn supersede(&self, hash: KeyHash, _key: &[u8]) -> bool {
        self.catalogue.supersede(hash)
    }

    /// Removes a key like [`Engine::supersede`], whether or not it is known, and promises that it
    /// stays removed across power cuts once the ticket is done. Variants cannot be reached any
    /// more, since their keys contain the primary's nonce.
    pub fn purge(&self, hash: KeyHash, _key: &[u8]) -> SyncTicket {
        self.catalogue.purge(hash)
    }

    /// A ticket for everything put and removed before, purges of many included.
    pub fn sync(&self) -> SyncTicket {
        self.fleet.sync()
    }

    /// Purges of many objects at once, and soft ones.
    #[must_use]
    pub const fn purges(&self) -> &Arc<Purges> {
        &self.purges
    }

    /// Looks up the object under a key. Memory only: a shared lock, no allocation.
    pub fn lookup(&self, hash: KeyHash, key: &[u8]) -> Lookup {
        debug_assert!(self.keys.is_hash_of(hash, key), "hashed with another seed");
        self.lookups.lookup(hash, key)
    }

    /// Fragment `n` (from 0) of a large object.
    pub fn fragment_lookup(&self, head: &Object, n: u32) -> Lookup {
        self.lookups.fragment(head, n, false)
    }

    /// As [`fragment_lookup`](Self::fragment_lookup), but of a slow disk too: for who cannot have
    /// these bytes from elsewhere, and would rather wait.
    pub fn fragment_lookup_patient(&self, head: &Object, n: u32) -> Lookup {
        self.lookups.fragment(head, n, true)
    }

    /// Returns whether every fragment of a large object is probably stored (memory only).
    #[must_use]
    pub fn has_all_fragments(&self, head: &Object) -> bool {
        (0..head.fragment_count()).all(|n| self.has_fragment(head, n))
    }

    /// Reads that lookups ask for.
    #[must_use]
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Begins a scrub, a pass over everything on disk; `None` while something is still being loaded.
    #[must_use]
    pub fn scrub(&self) -> Option<Scrub> {
        Scrub::begin(&self.tables, &self.fleet, &self.reads, &self.clock)
    }

    /// A walk over everything that is stored now, or on disk alone.
    #[must_use]
    pub fn walk(&self, memory: bool) -> Walk {
        Walk::new(&self.tables, &self.fleet, memory)
    }

    /// The stores together: their duties, their disks, and what is known of those that are away.
    #[must_use]
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Gives the engine another memory budget, in bytes, as [`EngineConfig::memory_bytes`] gives it the
    /// first. The RAM tier shrinks or grows at once. The index stays as it is where it has more than half of
    /// a smaller budget, and its limit does not rise above half of the first budget. What already waits to
    /// be written is written.
    pub fn set_memory(&self, bytes: u64) {
        self.memory.set(bytes);
    }

    /// The RAM tier does without `bytes` bytes of its share from now on, because the process has
    /// more memory than was planned; a sixteenth of the budget stays with it.
    pub fn withhold(&self, bytes: u64) {
        self.memory.withhold(bytes);
    }

    /// True if waiting objects take half of their room, so that objects may soon be refused. A fill that
    /// pauses until this is false finds room. Records of a segment that is about to be reused have the room
    /// between this and the limit.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.budget.is_congested()
    }

    /// Figures of this moment.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let stores = self.stores();
        let mut stats = StoreStats {
            ram_hits: 0,
            pending_hits: 0,
            counts: self.counters.read(),
            ram_objects: 0,
            ram_bytes: 0,
            ram_capacity: self.budget.ram(),
            pending_bytes: self.budget.pending(),
            disk_objects: self.tables.index().len(),
            index_bytes: self.tables.index().memory_bytes(),
            memory: self.memory.shares(),
            stores: stores
                .iter()
                .map(|s| figures::of_store(s, &*self.clock))
                .collect(),
        };
        for shard in self.tables.shards().iter() {
            let shard = shard.read();
            stats.ram_hits += shard.ram_hits.load(Ordering::Relaxed);
            stats.pending_hits += shard.pending_hits.load(Ordering::Relaxed);
            stats.ram_objects += shard.ram.len() as u64;
            stats.ram_bytes += shard.ram.used();
        }
        stats
    }
}

/// The store with the highest score for a key.
fn best_of<'a>(
    key: u64,
    stores: impl Iterator<Item = &'a Arc<StoreShared>>,
) -> Option<&'a Arc<StoreShared>> {
    let score = |s: &StoreShared| {
        let draw = hash64(key, &s.space.uuid().0) as f64 / u64::MAX as f64;
        -s.load.share() / draw.clamp(1e-18, 1.0 - 1e-15).ln()
    };
    stores.max_by(|a, b| score(a).total_cmp(&score(b)))
}

/// Bytes per second that stores write together; 0: that of one is not known.
fn sum_of_speeds(stores: &[&Arc<StoreShared>]) -> u64 {
    let speeds = stores.iter().try_fold(0_u64, |all, s| {
        let speed = s.load.write_speed();
        (speed > 0).then(|| all.saturating_add(speed))
    });
    speeds.unwrap_or(0)
}
