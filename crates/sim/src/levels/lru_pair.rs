//! Two LRU levels (memory and disk) that share one table. This form is faster than two separate caches.
//!
//! The replacement rule is the same as with two separate LRU caches. A test checks that both forms return
//! equal results, request by request. An object in memory, on disk, or in both is one node with a link for
//! each level. So a request needs only one lookup in the table, and the eviction of the tail of a list needs
//! no lookup.

use hashbrown::HashTable;

use super::Stamp;

/// Value that means "no node".
const NIL: u32 = u32::MAX;

/// A cache level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Ram,
    Disk,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
    /// The object's version in this level. The size in the stamp is 0 if the object is not in this level.
    stamp: Stamp,
}

const NOWHERE: Link = Link {
    newer: NIL,
    older: NIL,
    stamp: Stamp {
        size: 0,
        version: 0,
        server: 0,
    },
};

fn there(stamp: Stamp) -> Option<Stamp> {
    (stamp.size > 0).then_some(stamp)
}

#[derive(Debug)]
struct Node {
    object: u64,
    /// One link for each [`Level`]. The free list uses `links[0].older`.
    links: [Link; 2],
}

#[derive(Clone, Copy, Debug)]
struct List {
    newest: u32,
    oldest: u32,
    used: u64,
    capacity: u64,
    objects: usize,
}

/// The two LRU levels.
#[derive(Debug)]
pub(super) struct LruPair {
    nodes: Vec<Node>,
    table: HashTable<u32>,
    lists: [List; 2],
    free: u32,
}

const fn hash(object: u64) -> u64 {
    let mixed = object.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

impl LruPair {
    pub(super) fn new(ram: u64, disk: u64) -> Self {
        let list = |capacity| List {
            newest: NIL,
            oldest: NIL,
            used: 0,
            capacity,
            objects: 0,
        };
        Self {
            nodes: Vec::new(),
            table: HashTable::new(),
            lists: [list(ram), list(disk)],
            free: NIL,
        }
    }

    pub(super) fn find(&self, object: u64) -> Option<u32> {
        let same = |at: &u32| self.nodes[*at as usize].object == object;
        self.table.find(hash(object), same).copied()
    }

    /// Returns the node `found`, or else a new node for `object`. A new node is in no level.
    pub(super) fn node(&mut self, found: Option<u32>, object: u64) -> u32 {
        if let Some(at) = found {
            return at;
        }
        let node = Node {
            object,
            links: [NOWHERE; 2],
        };
        let at = if self.free == NIL {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = self.nodes[at as usize].links[0].older;
            self.nodes[at as usize] = node;
            at
        };
        let nodes = &self.nodes;
        self.table
            .insert_unique(hash(object), at, |at| hash(nodes[*at as usize].object));
        at
    }

    pub(super) fn stamp(&self, level: Level, at: u32) -> Option<Stamp> {
        there(self.nodes[at as usize].links[level as usize].stamp)
    }

    /// Makes the node the newest of a level.
    pub(super) fn touch(&mut self, level: Level, at: u32) {
        if self.lists[level as usize].newest != at {
            let stamp = self.unlink(level, at);
            self.link(level, at, stamp);
        }
    }

    /// Stores an object of at least one byte and replaces any older version. Evicted objects are appended to
    /// `gone`, oldest first. Returns true if the object was stored.
    pub(super) fn store(
        &mut self,
        level: Level,
        at: u32,
        stamp: Stamp,
        gone: &mut Vec<(u64, Stamp)>,
    ) -> bool {
        self.take(level, at);
        let list = self.lists[level as usize];
        if stamp.size > list.capacity {
            return false;
        }
        while self.lists[level as usize].used + stamp.size > list.capacity {
            match self.evict(level, Some(at)) {
                Some(victim) => gone.push(victim),
                None => break,
            }
        }
        self.link(level, at, stamp);
        true
    }

    /// Removes an object from a level. The node remains.
    pub(super) fn take(&mut self, level: Level, at: u32) -> Option<Stamp> {
        self.stamp(level, at)?;
        there(self.unlink(level, at))
    }

    /// Evicts the oldest object of a level. The node `keep` is not freed, even if it is
    /// in no level afterwards.
    pub(super) fn evict(&mut self, level: Level, keep: Option<u32>) -> Option<(u64, Stamp)> {
        let at = self.lists[level as usize].oldest;
        let object = self.nodes.get(at as usize)?.object;
        let stamp = self.unlink(level, at);
        if keep != Some(at) {
            self.drop_unused(at);
        }
        Some((object, stamp))
    }

    /// Frees a node that is in no level.
    pub(super) fn drop_unused(&mut self, at: u32) {
        let node = &mut self.nodes[at as usize];
        if node.links.iter().any(|link| link.stamp.size > 0) {
            return;
        }
        node.links[0].older = self.free;
        self.free = at;
        let hash = hash(node.object);
        if let Ok(found) = self.table.find_entry(hash, |other| *other == at) {
            found.remove();
        }
    }

    fn link(&mut self, level: Level, at: u32, stamp: Stamp) {
        let l = level as usize;
        let newest = self.lists[l].newest;
        self.nodes[at as usize].links[l] = Link {
            newer: NIL,
            older: newest,
            stamp,
        };
        match self.nodes.get_mut(newest as usize) {
            Some(node) => node.links[l].newer = at,
            None => self.lists[l].oldest = at,
        }
        let list = &mut self.lists[l];
        list.newest = at;
        list.used += stamp.size;
        list.objects += 1;
    }

    fn unlink(&mut self, level: Level, at: u32) -> Stamp {
        let l = level as usize;
        let link = std::mem::replace(&mut self.nodes[at as usize].links[l], NOWHERE);
        match self.nodes.get_mut(link.newer as usize) {
            Some(node) => node.links[l].older = link.older,
            None => self.lists[l].newest = link.older,
        }
        match self.nodes.get_mut(link.older as usize) {
            Some(node) => node.links[l].newer = link.newer,
            None => self.lists[l].oldest = link.newer,
        }
        let list = &mut self.lists[l];
        list.used -= link.stamp.size;
        list.objects -= 1;
        link.stamp
    }

    pub(super) const fn used(&self, level: Level) -> u64 {
        self.lists[level as usize].used
    }

    pub(super) const fn objects(&self, level: Level) -> usize {
        self.lists[level as usize].objects
    }
}
