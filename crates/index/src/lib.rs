//! The compact table from key hashes to places on disk.
//!
//! It promises: at most 16 bytes of memory per entry, grown in small steps from what it holds;
//! lookups without locks and without allocation; a removed address is never returned again.
//! It may forget an entry (a tag twin takes its place, a full neighbourhood drops it) and it may
//! return an entry of another key (the record's key decides), but it never invents an address.

mod address;
mod arena;
mod bits;
mod chunks;
mod entry;
mod home;
mod line;
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

pub use address::{Address, UNIT_BYTES};
pub use arena::{PageAdvice, Pages};
pub use entry::{Candidates, Entry, IndexStats, Insert};
pub use size_class::SizeClass;
pub use sweep::Sweep;

use arena::Arena;
use bits::{Fingerprint, SHARDS};
use chunks::Chunks;
use shard::Shard;

/// Groups of shards; see [`Index::lane`].
pub const LANES: usize = 2;

/// Memory of an entry in bytes, at most, in a table that is not nearly empty.
const BYTES_PER_ENTRY: u64 = 16;

/// Entries by key hash. `Send + Sync`; share it by `Arc`. See the crate's head for its promises.
#[derive(Debug)]
pub struct Index {
    shards: [Shard; SHARDS],
    arena: Arc<Arena>,
    /// Mixed into every hash; 0: hashes are used as they are.
    secret: u64,
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An empty index (some 100 KiB) without a limit of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(u64::MAX)
    }

    /// An empty index that does not grow beyond `bytes` of memory: insertions that find no room
    /// then are dropped and counted.
    #[must_use]
    pub fn with_limit(bytes: u64) -> Self {
        Self::with_pages(bytes, None)
    }

    /// As [`Index::with_limit`], with memory from `pages`: with huge pages, a lookup in a large index
    /// waits much less for memory.
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

    /// Sets another limit, in bytes, at most that of the constructor. An index that holds more memory
    /// keeps it and does not grow.
    pub fn set_limit(&self, bytes: u64) {
        self.arena.set_limit(bytes);
    }

    /// The same index, with places that follow from hash and `secret` (0: from the hash alone). So
    /// nobody can choose keys that share a line without knowing the secret. Call this on an index
    /// without entries.
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

    /// Every bit of the result depends on every bit of the hash, in a way that only the secret
    /// reveals: both halves of a product, as in wyhash.
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

    /// Entries that `hash` may belong to. No lock, no allocation; an entry that is present for
    /// the whole call is always among them, also while the table grows or moves it.
    #[must_use]
    #[inline(always)]
    pub fn lookup(&self, hash: KeyHash) -> Candidates {
        let (shard, fp) = self.shard(hash);
        shard.lookup(fp)
    }

    /// Stores `entry` for `hash` in place of whatever is there under the same bits.
    pub fn insert(&self, hash: KeyHash, entry: Entry) -> Insert {
        let (shard, fp) = self.shard(hash);
        shard.insert(fp, entry, false)
    }

    /// Stores `entry` for `hash` unless something is there under the same bits (for recovery, which
    /// inserts the newest entry first: that one stays).
    pub fn insert_if_absent(&self, hash: KeyHash, entry: Entry) -> Insert {
        let (shard, fp) = self.shard(hash);
        shard.insert(fp, entry, true)
    }

    /// Makes room at once (as far as the limit goes) for the share of `lane` in `entries` further
    /// entries. Loading a known number of entries then neither grows the table step by step nor moves
    /// entries. `entries` must be a count of contents, such as recovery reads from summaries, never
    /// the capacity of a disk.
    pub fn reserve(&self, lane: usize, entries: u64) {
        let shards = self.shards.iter().enumerate();
        let own = shards.filter(|(number, _)| bits::lane(*number) == lane);
        // Gets the memory for all shards before any of it is used, so that it is in huge pages from
        // the beginning.
        for (number, shard) in own.clone() {
            shard.reserve(bits::share(number, entries), Shard::have_memory);
        }
        for (number, shard) in own {
            shard.reserve(bits::share(number, entries), Shard::grow_to);
        }
    }

    /// The lane (of [`LANES`]) of `hash`. Keys of different lanes share no shard, so threads that
    /// insert one lane each do not wait for each other, and the result does not depend on their
    /// speed.
    #[must_use]
    pub fn lane(&self, hash: KeyHash) -> usize {
        bits::lane(Fingerprint::of(self.mixed(hash)).0)
    }

    /// Prefetches the memory that a lookup of `hash` needs. For callers that know the next lookup.
    pub fn warm(&self, hash: KeyHash) {
        let (shard, fp) = self.shard(hash);
        shard.warm(fp);
    }

    /// Removes everything that a lookup of `hash` would return (the key's entry and any twin)
    /// and returns it. Use it to supersede a key whose place is not known.
    pub fn remove(&self, hash: KeyHash) -> Candidates {
        let (shard, fp) = self.shard(hash);
        shard.remove(fp, None)
    }

    /// Removes the entry of `hash` at `address`; `None`, and nothing changed, if there is none.
    /// After it returned, no lookup that starts later returns that address for this hash.
    pub fn remove_if(&self, hash: KeyHash, address: Address) -> Option<Entry> {
        let (shard, fp) = self.shard(hash);
        shard.remove(fp, Some(address)).first()
    }

    /// Entries, of any keys, in the slots that `hash` could have. Where there is no room for `hash`, one of them
    /// can be [evicted](Self::evict).
    pub fn neighbours(&self, hash: KeyHash) -> impl Iterator<Item = Entry> + use<> {
        let (shard, fp) = self.shard(hash);
        shard.neighbours(fp).into_iter().flatten()
    }

    /// Removes this [neighbour](Self::neighbours) of `hash`, so that an insertion of `hash` finds room; false,
    /// and nothing changed, if it is not there any more. If it was used since its insertion, the uses of the
    /// other neighbours are set back to 0.
    pub fn evict(&self, hash: KeyHash, neighbour: Entry) -> bool {
        let (shard, fp) = self.shard(hash);
        shard.evict(fp, neighbour)
    }

    /// Exchanges the entry of `hash` at `old` for `new` (a relocation); false, and nothing
    /// changed, if there is none at `old` any more.
    pub fn replace_if(&self, hash: KeyHash, old: Address, new: Entry) -> bool {
        let (shard, fp) = self.shard(hash);
        shard.replace_if(fp, old, new)
    }

    /// Counts a use of the entry of `hash` at `address`, up to 3. No lock; may be lost when it
    /// meets a writer.
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

    /// Calls `visit` for every entry whose address lies in `units` (512-byte units). Entries
    /// moved by concurrent writers may be seen twice or not at all: for figures, not decisions.
    pub fn for_each_in(&self, units: Range<u64>, mut visit: impl FnMut(Entry)) {
        for shard in &self.shards {
            shard.for_each(&mut |entry| {
                if units.contains(&entry.address.units()) {
                    visit(entry);
                }
            });
        }
    }

    /// Starts to remove every entry whose address lies in `units` (512-byte units), in steps.
    /// Exact for all entries that were in the table at the start; entries inserted into the
    /// range meanwhile may or may not go, so finish before the range is used again.
    #[must_use]
    pub fn sweep(&self, units: Range<u64>) -> Sweep<'_> {
        Sweep::new(&self.shards, units)
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shards.iter().map(Shard::len).sum()
    }

    /// True without entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held, directory included. Never shrinks: what was freed by removals is
    /// filled again by insertions.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.arena.used()
    }

    /// Estimated number of entries that fit into the memory below the limit; huge without a limit.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.arena.left() / BYTES_PER_ENTRY
    }

    /// Figures of this moment; takes every shard's lock for a moment.
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
