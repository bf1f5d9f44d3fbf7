//! What every byte-weighted cache policy promises, whatever its rule.

use std::hash::Hash;

/// Keys are small and copied: a 64- or 128-bit hash.
pub trait Key: Copy + Eq + Hash {}
impl<K: Copy + Eq + Hash> Key for K {}

/// An object that a policy let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted<K, V> {
    /// Its key.
    pub key: K,
    /// What was stored with it.
    pub value: V,
    /// Its weight in bytes.
    pub size: u64,
}

/// What became of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Inserted<V> {
    /// False if the object was refused: larger than the cache or than the policy's limit.
    pub stored: bool,
    /// The former value of this key. It is gone even if the new one was refused, because a
    /// cache must not keep what was replaced.
    pub replaced: Option<V>,
}

/// A byte-weighted cache of values `V` under one replacement rule.
///
/// `used() <= capacity()` holds after every call. Inserting a key that is present removes the
/// old object first, then inserts the new one as a new object (a modified object is another
/// object). An object larger than `capacity()` is refused and evicts nothing.
pub trait CachePolicy<K: Key, V> {
    /// The rule's name in reports, such as `s3-fifo`.
    fn name(&self) -> &'static str;

    /// The value of `key`, and the rule's bookkeeping of a use.
    fn get(&mut self, key: &K) -> Option<&V>;

    /// The value of `key` without counting a use.
    fn peek(&self, key: &K) -> Option<&V>;

    /// Inserts an object of `size` bytes (0 counts as 1, so that objects stay bounded in number);
    /// what has to go for it is appended to `evicted` in order.
    fn insert(
        &mut self,
        key: K,
        value: V,
        size: u64,
        evicted: &mut Vec<Evicted<K, V>>,
    ) -> Inserted<V>;

    /// Deletes `key`: no eviction, and no memory of it in ghosts.
    fn remove(&mut self, key: &K) -> Option<V>;

    /// Evicts the object whose turn it is (for a watermark daemon); `None` if empty.
    fn evict(&mut self) -> Option<Evicted<K, V>>;

    /// Sets the capacity in bytes; what no longer fits is appended to `evicted`.
    fn set_capacity(&mut self, bytes: u64, evicted: &mut Vec<Evicted<K, V>>);

    /// Bytes that fit.
    fn capacity(&self) -> u64;

    /// Bytes held.
    fn used(&self) -> u64;

    /// Objects held.
    fn len(&self) -> usize;

    /// True without objects.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
