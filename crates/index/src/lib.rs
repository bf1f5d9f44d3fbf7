//! The compact table from key hashes to positions on disk.
//!
//! The index makes these promises. It needs at most 16 bytes of memory per entry, and grows in small steps
//! with the number of entries. Lookups need no lock and no allocation. A removed address is never returned
//! again. The index may lose an entry in two cases: a key with the same stored hash bits (a *colliding key*)
//! takes its place, or all slots that the key could have are full. The index may also return an entry of
//! another key, so the caller compares the key in the record. But it never returns an address that was not
//! inserted.
//!
//! The index consists of 32 *shards*, each with its own lock for writers. A shard consists of *buckets*, and
//! a bucket has five *slots* for entries. Each entry has two possible buckets.

mod address;
mod arena;
mod bits;
mod bucket;
mod chunks;
mod entry;
mod home;
mod shard;
mod size_class;
mod sweep;
mod sync;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use foxy_base::KeyHash;

pub use address::{Address, SECTOR_BYTES};
pub use arena::{PageAdvice, Pages};
pub use entry::{Candidates, Entry, IndexStats, Insert};
pub use size_class::SizeClass;
pub use sweep::Sweep;

use arena::Arena;
use bits::{Fingerprint, SHARDS};
use chunks::Chunks;
use shard::Shard;

/// Number of groups of shards; see [`Index::lane`].
pub const LANES: usize = 2;

/// Greatest number of bytes of memory per entry. (Only a nearly empty table needs more.)
const BYTES_PER_ENTRY: u64 = 16;

/// The index entries, by hash of the key. `Send + Sync`; share it by `Arc`. See the crate's head for its
/// promises.
#[derive(Debug)]
pub struct Index {
    shards: [Shard; SHARDS],
    arena: Arc<Arena>,
    /// Number that is mixed into every hash. 0 means that hashes are used as they are.
    secret: u64,
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// Makes an empty index (about 100 KiB) whose memory has no limit.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(u64::MAX)
    }

    /// Makes an empty index that does not grow beyond `bytes` of memory. Insertions that find no free slot
    /// are then dropped and counted.
    #[must_use]
    pub fn with_limit(bytes: u64) -> Self {
        Self::with_pages(bytes, None)
    }

    /// Makes an empty index as [`Index::with_limit`] does, with memory from `pages`. With huge pages, a
    /// lookup in a large index waits much less for memory.
    #[must_use]
    pub fn with_pages(bytes: u64, pages: Option<Pages>) -> Self {
        let base = size_of::<Self>() as u64 + SHARDS as u64 * Chunks::base_bytes();
        let arena = Arc::new(Arena::new(bytes, base, pages));
        Self {
            shards: std::array::from_fn(|_| Shard::new(arena.clone())),
            arena,
            secret: 0,
        }
    }

    /// Sets another limit in bytes, at most the limit of the constructor. If the index uses more memory than
    /// the new limit, it keeps the memory and does not grow.
    pub fn set_limit(&self, bytes: u64) {
        self.arena.set_limit(bytes);
    }

    /// Makes the buckets of entries depend on the hash and `secret` (0: only on the hash). So only somebody
    /// who knows the secret can choose keys that share a bucket. Call this on an index without entries.
    #[must_use]
    pub fn with_secret(mut self, secret: u64) -> Self {
        self.secret = secret;
        self
    }

    #[inline]
    fn shard(&self, hash: KeyHash) -> (&Shard, Fingerprint) {
        let (shard, fp) = Fingerprint::of(self.mixed(hash));
        (&self.shards[shard], fp)
    }

    /// Mixes the secret into a hash. Every bit of the result's upper half depends on every bit of the hash,
    /// and only somebody who knows the secret can predict how. The upper half combines both halves of a
    /// product, as in wyhash. The index uses only the upper half.
    #[inline(always)]
    fn mixed(&self, hash: KeyHash) -> KeyHash {
        if self.secret == 0 {
            return hash;
        }
        let low = u128::from(hash.low() ^ self.secret);
        let high = u128::from(hash.high() ^ self.secret.rotate_left(32));
        let product = low * high;
        let folded = (product >> 64) as u64 ^ product as u64;
        KeyHash(u128::from(folded) << 64 | u128::from(hash.low()))
    }

    /// The entries that may belong to `hash`. No lock and no allocation is needed. An entry that is present
    /// during the whole call is always among them, even if the table grows or moves the entry meanwhile.
    #[must_use]
    #[inline(always)]
    pub fn lookup(&self, hash: KeyHash) -> Candidates {
        let (shard, fp) = self.shard(hash);
        shard.lookup(fp)
    }

    /// Stores `entry` for `hash` in place of any entry with the same stored hash bits.
    pub fn insert(&self, hash: KeyHash, entry: Entry) -> Insert {
        let (shard, fp) = self.shard(hash);
        shard.insert(fp, entry, false)
    }

    /// Stores `entry` for `hash` unless an entry with the same stored hash bits exists. Recovery (the start
    /// of a store) uses this: it inserts the newest entry of a key first, and that entry stays.
    pub fn insert_if_absent(&self, hash: KeyHash, entry: Entry) -> Insert {
        let (shard, fp) = self.shard(hash);
        shard.insert(fp, entry, true)
    }

    /// Prepares the index for `entries` further entries. Of these entries, a part is expected in `lane`. The
    /// shards of the lane grow for this part in one step, as far as the limit permits. So the later
    /// insertions neither grow the table step by step nor move entries. `entries` must be the number of
    /// entries that exist, for example the number that recovery reads from summaries. It must never be
    /// derived from the capacity of a disk, because memory would be used for entries that do not exist.
    pub fn reserve(&self, lane: usize, entries: u64) {
        let shards = self.shards.iter().enumerate();
        let own = shards.filter(|(number, _)| bits::lane(*number) == lane);
        // Gets the memory for all shards before any of it is used, so that the memory is in huge pages from
        // the beginning.
        for (number, shard) in own.clone() {
            shard.reserve(bits::share(number, entries), Shard::have_memory);
        }
        for (number, shard) in own {
            shard.reserve(bits::share(number, entries), Shard::grow_to);
        }
    }

    /// The lane (of [`LANES`]) of `hash`. Keys of different lanes share no shard. So threads do not wait for
    /// each other if each thread inserts the keys of one lane, and the result does not depend on the speed of
    /// the threads.
    #[must_use]
    pub fn lane(&self, hash: KeyHash) -> usize {
        bits::lane(Fingerprint::of(self.mixed(hash)).0)
    }

    /// Prefetches the memory that a lookup of `hash` needs. This is for callers that know the next lookup in
    /// advance.
    pub fn warm(&self, hash: KeyHash) {
        let (shard, fp) = self.shard(hash);
        shard.warm(fp);
    }

    /// Removes and returns all entries that a lookup of `hash` would return: the entry of the key, and any
    /// entry of a colliding key. Use it if the stored object of a key is out of date and you do not know its
    /// address.
    pub fn remove(&self, hash: KeyHash) -> Candidates {
        let (shard, fp) = self.shard(hash);
        shard.remove(fp, None)
    }

    /// Removes the entry of `hash` at `address`. Returns `None` and changes nothing if there is no such
    /// entry. Lookups that start after this call never return that address for this hash.
    pub fn remove_if(&self, hash: KeyHash, address: Address) -> Option<Entry> {
        let (shard, fp) = self.shard(hash);
        shard.remove(fp, Some(address)).first()
    }

    /// The entries in the slots that an entry of `hash` could use; they may belong to any keys. If no slot
    /// for `hash` is free, one of these entries can be [evicted](Self::evict).
    pub fn neighbours(&self, hash: KeyHash) -> impl Iterator<Item = Entry> + use<> {
        let (shard, fp) = self.shard(hash);
        shard.neighbours(fp).into_iter().flatten()
    }

    /// Removes this [neighbour](Self::neighbours) of `hash`, so that an insertion of `hash` finds a free
    /// slot. Returns false and changes nothing if the neighbour was removed meanwhile. If the neighbour was
    /// used since its insertion, the uses of the other neighbours are set back to 0.
    pub fn evict(&self, hash: KeyHash, neighbour: Entry) -> bool {
        let (shard, fp) = self.shard(hash);
        shard.evict(fp, neighbour)
    }

    /// Exchanges the entry of `hash` at `old` for `new` (a relocation). Returns false and changes nothing if
    /// no entry is at `old` any more.
    pub fn replace_if(&self, hash: KeyHash, old: Address, new: Entry) -> bool {
        let (shard, fp) = self.shard(hash);
        shard.replace_if(fp, old, new)
    }

    /// Counts a use of the entry of `hash` at `address`, up to 3 uses. No lock is needed. The use may be lost
    /// if a writer changes the slot at the same moment.
    pub fn touch(&self, hash: KeyHash, address: Address) {
        let (shard, fp) = self.shard(hash);
        shard.touch(fp, address);
    }

    /// Returns the uses counted for the entry of `hash` at `address`, and sets them back to 0; `None`
    /// if there is no such entry.
    pub fn take_freq(&self, hash: KeyHash, address: Address) -> Option<u8> {
        let (shard, fp) = self.shard(hash);
        shard.take_freq(fp, address)
    }

    /// Calls `visit` for every entry whose address lies in `sectors` (sectors of 512 bytes). Entries moved by
    /// concurrent writers may be seen twice or not at all. So use this only for figures, not for decisions.
    pub fn for_each_in(&self, sectors: Range<u64>, mut visit: impl FnMut(Entry)) {
        for shard in &self.shards {
            shard.for_each(&mut |entry| {
                if sectors.contains(&entry.address.sectors()) {
                    visit(entry);
                }
            });
        }
    }

    /// Starts to remove every entry whose address lies in `sectors` (sectors of 512 bytes), in steps. It
    /// removes all entries of the range that were in the table at the start. Entries of the range that are
    /// inserted meanwhile may be removed or not. So finish the sweep before the range is used again.
    #[must_use]
    pub fn sweep(&self, sectors: Range<u64>) -> Sweep<'_> {
        Sweep::new(&self.shards, sectors)
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shards.iter().map(Shard::len).sum()
    }

    /// True if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held, including the directories. This number never shrinks: insertions use the slots
    /// that removals have freed.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.arena.used()
    }

    /// Estimated number of further entries that fit into the memory below the limit; a huge number without a
    /// limit.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.arena.left() / BYTES_PER_ENTRY
    }

    /// Figures of this moment. The call takes the lock of each shard for a short time.
    #[must_use]
    pub fn stats(&self) -> IndexStats {
        let mut stats = IndexStats {
            memory_bytes: self.memory_bytes(),
            ..IndexStats::default()
        };
        for shard in &self.shards {
            shard.add_stats(&mut stats);
        }
        stats
    }
}
