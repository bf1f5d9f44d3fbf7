//! The compact table from key hashes to places on disk.
//!
//! It promises: at most 16 bytes of memory per entry, grown in small steps from what it holds;
//! lookups without locks and without allocation; a removed address is never returned again.
//! It may forget an entry (a tag twin takes its place, a full neighbourhood drops it) and it may
//! return an entry of another key (the record's key decides), but it never invents an address.

mod address;
mod entry;
mod size_class;

use std::collections::HashMap;
use std::ops::Range;

use foxy_base::KeyHash;
use parking_lot::Mutex;

pub use address::{Address, UNIT_BYTES};
pub use entry::{Candidates, Entry, IndexStats, Insert};
pub use size_class::SizeClass;

/// Entries by key hash. `Send + Sync`; share it by `Arc`. See the crate's head for its promises.
#[derive(Debug, Default)]
pub struct Index {
    map: Mutex<HashMap<u64, Entry>>,
    limit_bytes: Option<u64>,
}

impl Index {
    /// An empty index without a limit of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty index that does not grow beyond `bytes` of memory: insertions that find no room
    /// then are dropped and counted.
    #[must_use]
    pub fn with_limit(bytes: u64) -> Self {
        Self {
            limit_bytes: Some(bytes),
            ..Self::default()
        }
    }

    /// Entries that `hash` may belong to. No lock, no allocation; an entry that is present and
    /// undisturbed for the whole call is always among them.
    #[must_use]
    pub fn lookup(&self, hash: KeyHash) -> Candidates {
        let mut found = Candidates::default();
        if let Some(entry) = self.map.lock().get(&hash.high()) {
            found.push(*entry);
        }
        found
    }

    /// Stores `entry` for `hash` in place of whatever is there under the same bits.
    pub fn insert(&self, hash: KeyHash, entry: Entry) -> Insert {
        let full = self.limit_bytes.is_some_and(|l| self.memory_bytes() > l);
        let mut map = self.map.lock();
        if full && !map.contains_key(&hash.high()) {
            return Insert::Dropped;
        }
        match map.insert(hash.high(), entry) {
            Some(old) => Insert::Replaced(old),
            None => Insert::Stored,
        }
    }

    /// Stores `entry` for `hash` unless something is there under the same bits (recovery in
    /// descending order of age: the newest comes first and stays).
    pub fn insert_if_absent(&self, hash: KeyHash, entry: Entry) -> Insert {
        match self.lookup(hash).first() {
            Some(old) => Insert::Present(old),
            None => self.insert(hash, entry),
        }
    }

    /// Removes everything that a lookup of `hash` would return (the key's entry and any twin)
    /// and returns it. Use it to supersede a key whose place is not known.
    pub fn remove(&self, hash: KeyHash) -> Candidates {
        let mut found = Candidates::default();
        if let Some(entry) = self.map.lock().remove(&hash.high()) {
            found.push(entry);
        }
        found
    }

    /// Removes the entry of `hash` at `address`; `None`, and nothing changed, if there is none.
    /// After it returned, no lookup that starts later returns that address for this hash.
    pub fn remove_if(&self, hash: KeyHash, address: Address) -> Option<Entry> {
        let mut map = self.map.lock();
        let entry = *map.get(&hash.high()).filter(|e| e.address == address)?;
        map.remove(&hash.high());
        Some(entry)
    }

    /// Exchanges the entry of `hash` at `old` for `new` (a relocation); false, and nothing
    /// changed, if there is none at `old` any more.
    pub fn replace_if(&self, hash: KeyHash, old: Address, new: Entry) -> bool {
        let mut map = self.map.lock();
        match map.get_mut(&hash.high()) {
            Some(entry) if entry.address == old => {
                *entry = new;
                true
            }
            _ => false,
        }
    }

    /// Counts a use of the entry of `hash` at `address`, up to 3. No lock; may be lost when it
    /// meets a writer.
    pub fn touch(&self, hash: KeyHash, address: Address) {
        if let Some(entry) = self.map.lock().get_mut(&hash.high())
            && entry.address == address
        {
            entry.freq = (entry.freq + 1).min(3);
        }
    }

    /// The uses counted for the entry of `hash` at `address`, which are thereby forgotten;
    /// `None` if there is no such entry.
    pub fn take_freq(&self, hash: KeyHash, address: Address) -> Option<u8> {
        let mut map = self.map.lock();
        let entry = map.get_mut(&hash.high())?;
        (entry.address == address).then(|| std::mem::take(&mut entry.freq))
    }

    /// Calls `visit` for every entry whose address lies in `units` (512-byte units). Entries
    /// moved by concurrent writers may be seen twice or not at all: for figures, not decisions.
    pub fn for_each_in(&self, units: Range<u64>, mut visit: impl FnMut(Entry)) {
        for entry in self.map.lock().values() {
            if units.contains(&entry.address.units()) {
                visit(*entry);
            }
        }
    }

    /// Starts to remove every entry whose address lies in `units` (512-byte units), in steps.
    /// Exact for all entries that were in the table at the start; entries inserted into the
    /// range meanwhile may or may not go, so finish before the range is used again.
    #[must_use]
    pub fn sweep(&self, units: Range<u64>) -> Sweep<'_> {
        Sweep {
            index: self,
            units,
            removed: 0,
        }
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.map.lock().len() as u64
    }

    /// True without entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held, directory included.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.len() * 16
    }

    /// Figures of this moment.
    #[must_use]
    pub fn stats(&self) -> IndexStats {
        IndexStats {
            len: self.len(),
            memory_bytes: self.memory_bytes(),
            ..IndexStats::default()
        }
    }
}

/// An incremental removal of an address range; see [`Index::sweep`]. Dropping it ends it early.
#[derive(Debug)]
pub struct Sweep<'a> {
    index: &'a Index,
    units: Range<u64>,
    removed: u64,
}

impl Sweep<'_> {
    /// Looks at about `lines` more cache lines (5 entries each); true when the whole table has
    /// been seen. A step of 1,024 lines holds a shard's lock for some 10 us.
    pub fn step(&mut self, lines: u32) -> bool {
        let mut map = self.index.map.lock();
        let before = map.len();
        if lines > 0 {
            map.retain(|_, e| !self.units.contains(&e.address.units()));
        }
        self.removed += (before - map.len()) as u64;
        lines > 0
    }

    /// Runs to the end; returns the entries removed.
    pub fn run(mut self) -> u64 {
        while !self.step(1024) {}
        self.removed
    }

    /// Entries removed so far.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed
    }
}
