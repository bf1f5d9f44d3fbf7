//! Interface of every byte-weighted cache policy.

use std::hash::Hash;
use std::sync::atomic::AtomicU8;

use crate::slab::Slab;

/// A small key that is copied: a 64- or 128-bit hash.
pub trait Key: Copy + Eq + Hash {}
impl<K: Copy + Eq + Hash> Key for K {}

/// An object that a policy evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted<K, V> {
    /// Key of the object.
    pub key: K,
    /// The value stored with the key.
    pub value: V,
    /// The object's weight in bytes.
    pub size: u64,
}

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Inserted<V> {
    /// False if the object was refused because it is larger than the cache or than the policy's limit. (Under
    /// a rule whose [`Rule::EVICT_FIRST`] is false, it is possible that the same call stores the new object
    /// and evicts it. Then this flag is true, and the object is in the list of evicted objects.)
    pub stored: bool,
    /// The former value of this key. It is removed even if the new value is refused, because a cache must not
    /// keep a replaced value.
    pub replaced: Option<V>,
}

/// A byte-weighted cache of values `V` under one replacement rule.
///
/// `used() <= capacity()` holds after every call. If a key is present when it is inserted, its old object is
/// removed. Then the new object is inserted as if the key were new. (A modified object counts as a new
/// object. A ghost, which remembers keys of evicted objects, keeps its entry for the key.) An object larger
/// than `capacity()` is refused and evicts nothing.
pub trait CachePolicy<K: Key, V> {
    /// The rule's name in reports, such as `s3-fifo`.
    fn name(&self) -> &'static str;

    /// Returns the value of `key`, and counts a use.
    fn get(&mut self, key: &K) -> Option<&V>;

    /// Returns the value of `key` without counting a use.
    fn peek(&self, key: &K) -> Option<&V>;

    /// Inserts an object of `size` bytes (0 counts as 1, so that objects stay bounded in number).
    /// Objects that are evicted to make room are appended to `evicted` in order.
    fn insert(
        &mut self,
        key: K,
        value: V,
        size: u64,
        evicted: &mut Vec<Evicted<K, V>>,
    ) -> Inserted<V>;

    /// Deletes `key`. This is not an eviction: ghosts do not remember the key.
    fn remove(&mut self, key: &K) -> Option<V>;

    /// Evicts the next object by the rule's order (for callers that free space in advance); `None` if the
    /// cache is empty.
    fn evict(&mut self) -> Option<Evicted<K, V>>;

    /// Sets the capacity in bytes. Objects that no longer fit are appended to `evicted`.
    fn set_capacity(&mut self, bytes: u64, evicted: &mut Vec<Evicted<K, V>>);

    /// The capacity in bytes.
    fn capacity(&self) -> u64;

    /// Bytes of the stored objects.
    fn used(&self) -> u64;

    /// Number of stored objects.
    fn len(&self) -> usize;

    /// True if no object is stored.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A replacement rule: the order of a cache's objects. Each object has a slot in a `Slab`, and the rule links
/// and unlinks these slots. The [`Cache`] around it handles keys, values and bytes.
pub trait Rule<K: Key> {
    /// The rule's name in reports.
    const NAME: &'static str;
    /// True if old objects are evicted before a new object is inserted. False if the new object is inserted
    /// first, and may itself be evicted.
    const EVICT_FIRST: bool = true;

    /// Tells the rule the capacity in bytes.
    fn set_capacity(&mut self, _bytes: u64) {}
    /// Called when an object of `key` is about to be inserted, before anything is evicted for it.
    fn arrives(&mut self, _key: &K) {}
    /// Called when a lookup did not find `key`.
    fn missed(&mut self, _key: &K) {}
    /// Links slot `at`, which contains a new object.
    fn insert<V>(&mut self, slab: &mut Slab<K, V>, at: u32);
    /// Counts a use of the object in slot `at`.
    fn hit<V>(&mut self, slab: &mut Slab<K, V>, at: u32);
    /// Unlinks slot `at`, whose key is being deleted.
    fn remove<V>(&mut self, slab: &mut Slab<K, V>, at: u32);
    /// Forgets `key`, which is being deleted: the rule's memory of evicted keys (its ghost) must not contain
    /// it. The key may be absent from the cache.
    fn forget(&mut self, _key: &K) {}
    /// Chooses the object to evict, unlinks it and returns its slot; `None` if there is no object.
    fn victim<V>(&mut self, slab: &mut Slab<K, V>) -> Option<u32>;
}

/// A rule whose hits change only the object's own counter.
pub trait SharedRule<K: Key>: Rule<K> {
    /// Counts a use of the object with this counter.
    fn hit_shared(&self, freq: &AtomicU8);
}

/// A cache under rule `R`. [`CachePolicy`] states its guarantees.
#[derive(Debug)]
pub struct Cache<K, V, R> {
    slab: Slab<K, V>,
    capacity: u64,
    rule: R,
}

impl<K: Key, V, R: Rule<K>> Cache<K, V, R> {
    /// Creates an empty cache of `capacity` bytes under `rule`.
    #[must_use]
    pub fn with_rule(capacity: u64, mut rule: R) -> Self {
        rule.set_capacity(capacity);
        Self {
            slab: Slab::new(),
            capacity,
            rule,
        }
    }

    /// Creates an empty cache of `capacity` bytes with the rule's usual parameters.
    #[must_use]
    pub fn new(capacity: u64) -> Self
    where
        R: Default,
    {
        Self::with_rule(capacity, R::default())
    }

    /// Returns the value of `key`, so that the caller can change it. The size of the object stays the same,
    /// and no use is counted.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.slab.find(key)?;
        self.slab.value_mut(at)
    }

    /// The size of the object of `key` in bytes.
    #[must_use]
    pub fn size_of(&self, key: &K) -> Option<u64> {
        self.slab.find(key).map(|at| self.slab.size(at))
    }

    /// Keys and values in no particular order, without counting uses.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.slab.iter()
    }

    fn make_room(&mut self, size: u64, evicted: &mut Vec<Evicted<K, V>>) {
        while self.slab.used() + size > self.capacity {
            match self.evict() {
                Some(object) => evicted.push(object),
                None => return,
            }
        }
    }

    fn add(&mut self, key: K, value: V, size: u64) -> bool {
        match self.slab.add(key, value, size) {
            Some(at) => {
                self.rule.insert(&mut self.slab, at);
                true
            }
            None => false,
        }
    }
}

impl<K: Key, V, R: SharedRule<K>> Cache<K, V, R> {
    /// Returns the value of `key` and counts a use. The call needs only shared access, makes one hash probe
    /// and at most one relaxed store, and allocates nothing. Concurrent uses of one object may count as one
    /// use.
    #[must_use]
    pub fn get_shared(&self, key: &K) -> Option<&V> {
        let at = self.slab.find(key)?;
        self.rule.hit_shared(self.slab.freq_cell(at));
        self.slab.value(at)
    }
}

impl<K: Key, V, R: Rule<K>> CachePolicy<K, V> for Cache<K, V, R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn get(&mut self, key: &K) -> Option<&V> {
        let Some(at) = self.slab.find(key) else {
            self.rule.missed(key);
            return None;
        };
        self.rule.hit(&mut self.slab, at);
        self.slab.value(at)
    }

    fn peek(&self, key: &K) -> Option<&V> {
        self.slab.find(key).and_then(|at| self.slab.value(at))
    }

    fn insert(
        &mut self,
        key: K,
        value: V,
        size: u64,
        evicted: &mut Vec<Evicted<K, V>>,
    ) -> Inserted<V> {
        let replaced = self.slab.find(&key).and_then(|at| {
            self.rule.remove(&mut self.slab, at);
            self.slab.take(at).map(|old| old.value)
        });
        let size = size.max(1);
        let stored = size <= self.capacity && {
            self.rule.arrives(&key);
            if R::EVICT_FIRST {
                self.make_room(size, evicted);
            }
            self.add(key, value, size)
        };
        self.make_room(0, evicted);
        Inserted { stored, replaced }
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        self.rule.forget(key);
        let at = self.slab.find(key)?;
        self.rule.remove(&mut self.slab, at);
        self.slab.take(at).map(|old| old.value)
    }

    fn evict(&mut self) -> Option<Evicted<K, V>> {
        let at = self.rule.victim(&mut self.slab)?;
        self.slab.take(at)
    }

    fn set_capacity(&mut self, bytes: u64, evicted: &mut Vec<Evicted<K, V>>) {
        self.capacity = bytes;
        self.rule.set_capacity(bytes);
        self.make_room(0, evicted);
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn used(&self) -> u64 {
        self.slab.used()
    }

    fn len(&self) -> usize {
        self.slab.len()
    }
}
