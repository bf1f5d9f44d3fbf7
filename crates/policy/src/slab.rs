//! Objects in one growing array. A hash table of slot numbers finds them by key; doubly linked lists of slot
//! numbers put them in order. There is no allocation per object and no unsafe code.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU8, Ordering};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::cache::{Evicted, Key};

/// Value that means "no slot".
pub(crate) const NIL: u32 = u32::MAX;

#[derive(Debug)]
struct Node<K, V> {
    key: K,
    value: Option<V>,
    size: u64,
    prev: u32,
    next: u32,
    freq: AtomicU8,
    list: u8,
}

/// The objects of a cache. A rule, not the slab, decides which object is evicted next.
#[derive(Debug)]
pub struct Slab<K, V> {
    nodes: Vec<Node<K, V>>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    free: u32,
    used: u64,
}

impl<K: Key, V> Slab<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            free: NIL,
            used: 0,
        }
    }

    pub(crate) fn find(&self, key: &K) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let same = |at: &u32| self.nodes[*at as usize].key == *key;
        self.table.find(hash, same).copied()
    }

    /// Adds an object whose key is absent; `None` beyond 2^32 - 1 objects.
    pub(crate) fn add(&mut self, key: K, value: V, size: u64) -> Option<u32> {
        let node = Node {
            key,
            value: Some(value),
            size,
            prev: NIL,
            next: NIL,
            freq: AtomicU8::new(0),
            list: 0,
        };
        let at = self.slot(node)?;
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let hash = hasher.hash_one(key);
        self.table
            .insert_unique(hash, at, |at| hasher.hash_one(nodes[*at as usize].key));
        self.used += size;
        Some(at)
    }

    fn slot(&mut self, node: Node<K, V>) -> Option<u32> {
        let at = self.free;
        if let Some(free) = self.nodes.get_mut(at as usize) {
            self.free = free.next;
            *free = node;
            return Some(at);
        }
        let at = u32::try_from(self.nodes.len())
            .ok()
            .filter(|at| *at != NIL)?;
        self.nodes.push(node);
        Some(at)
    }

    /// Removes an object that its rule has already unlinked.
    pub(crate) fn take(&mut self, at: u32) -> Option<Evicted<K, V>> {
        let node = self.nodes.get_mut(at as usize)?;
        let value = node.value.take()?;
        let (key, size) = (node.key, node.size);
        node.next = self.free;
        self.free = at;
        self.used -= size;
        let hash = self.hasher.hash_one(key);
        if let Ok(found) = self.table.find_entry(hash, |other| *other == at) {
            found.remove();
        }
        Some(Evicted { key, value, size })
    }

    /// Keys and values in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|node| Some((node.key, node.value.as_ref()?)))
    }

    pub(crate) fn value(&self, at: u32) -> Option<&V> {
        self.nodes.get(at as usize)?.value.as_ref()
    }

    pub(crate) fn value_mut(&mut self, at: u32) -> Option<&mut V> {
        self.nodes.get_mut(at as usize)?.value.as_mut()
    }

    pub(crate) fn key(&self, at: u32) -> K {
        self.nodes[at as usize].key
    }

    pub(crate) fn size(&self, at: u32) -> u64 {
        self.nodes[at as usize].size
    }

    /// A counter for the rule's own use.
    pub(crate) fn freq(&self, at: u32) -> u8 {
        self.nodes[at as usize].freq.load(Ordering::Relaxed)
    }

    pub(crate) fn freq_cell(&self, at: u32) -> &AtomicU8 {
        &self.nodes[at as usize].freq
    }

    pub(crate) fn set_freq(&mut self, at: u32, freq: u8) {
        *self.nodes[at as usize].freq.get_mut() = freq;
    }

    /// Number of the list that contains the object. The rule assigns these numbers.
    pub(crate) fn list(&self, at: u32) -> u8 {
        self.nodes[at as usize].list
    }

    pub(crate) fn set_list(&mut self, at: u32, list: u8) {
        self.nodes[at as usize].list = list;
    }

    /// The neighbour of an object in its list, in the direction of the head.
    pub(crate) fn newer(&self, at: u32) -> u32 {
        self.nodes[at as usize].prev
    }

    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

/// A queue of slots: new objects are at the head, old objects at the tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    bytes: u64,
}

impl Default for List {
    fn default() -> Self {
        Self {
            head: NIL,
            tail: NIL,
            bytes: 0,
        }
    }
}

impl List {
    pub(crate) const fn tail(&self) -> Option<u32> {
        if self.tail == NIL {
            None
        } else {
            Some(self.tail)
        }
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn push_head<K, V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        let node = &mut slab.nodes[at as usize];
        (node.prev, node.next) = (NIL, self.head);
        self.bytes += node.size;
        match slab.nodes.get_mut(self.head as usize) {
            Some(head) => head.prev = at,
            None => self.tail = at,
        }
        self.head = at;
    }

    pub(crate) fn unlink<K, V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        let node = &slab.nodes[at as usize];
        let (prev, next) = (node.prev, node.next);
        self.bytes -= node.size;
        match slab.nodes.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None => self.head = next,
        }
        match slab.nodes.get_mut(next as usize) {
            Some(next) => next.prev = prev,
            None => self.tail = prev,
        }
    }

    pub(crate) fn move_to_head<K, V>(&mut self, slab: &mut Slab<K, V>, at: u32) {
        if self.head != at {
            self.unlink(slab, at);
            self.push_head(slab, at);
        }
    }
}
