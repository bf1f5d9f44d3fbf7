//! Versions of large objects that somebody may still be reading, although their key holds another
//! one by now. Their fragments stay readable until the last reader is gone: reuse of a segment
//! writes them again. Nothing here makes them the present version: that is the head's entry alone.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foxy_base::KeyHash;
use foxy_format::fragment_hash;
use parking_lot::Mutex;

use crate::{Engine, Object};

type Table = Mutex<HashMap<(KeyHash, u64), Weak<Hold>>>;

/// All versions that are held. Its lock is the innermost: no other is taken under it.
#[derive(Debug, Default)]
pub(crate) struct Holds(Arc<Table>);

/// Lives in the head's object as long as somebody has that.
#[derive(Debug)]
pub(crate) struct Hold {
    hash: KeyHash,
    version: u64,
    fragments: u32,
    bytes: u64,
    table: Arc<Table>,
}

impl Holds {
    /// The hold of a version, which objects of the same head share.
    fn of(&self, head: &Object) -> Arc<Hold> {
        let id = (head.hash(), head.meta().version);
        let mut table = self.0.lock();
        if let Some(hold) = table.get(&id).and_then(Weak::upgrade) {
            return hold;
        }
        let hold = Arc::new(Hold {
            hash: id.0,
            version: id.1,
            fragments: head.fragment_count(),
            bytes: head.total_length(),
            table: Arc::clone(&self.0),
        });
        table.insert(id, Arc::downgrade(&hold));
        hold
    }

    fn has(&self, hash: KeyHash, version: u64) -> bool {
        let table = self.0.lock();
        table
            .get(&(hash, version))
            .is_some_and(|h| h.strong_count() > 0)
    }

    fn all(&self) -> Vec<Arc<Hold>> {
        self.0.lock().values().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let id = (self.hash, self.version);
        let mut table = self.table.lock();
        // Somebody may have begun to hold it again meanwhile.
        if table.get(&id).is_some_and(|hold| hold.strong_count() == 0) {
            table.remove(&id);
        }
    }
}

impl Engine {
    /// The head of a large object, with its version held as long as it lives.
    pub(crate) fn held(&self, mut head: Object) -> Object {
        if head.is_large() {
            head.hold = Some(self.holds.of(&head));
        }
        head
    }

    /// The RAM tier's head is nobody's hold, so what is present there is not counted as read.
    fn is_in_memory(&self, hash: KeyHash, version: u64) -> bool {
        let shard = self.shard(hash).read();
        let head = shard.in_memory(hash);
        head.is_some_and(|present| present.meta().version == version)
    }

    /// Whether an object is a fragment of a version that is read but not the present one.
    pub(crate) fn is_only_held(&self, object: &Object) -> bool {
        let head = foxy_base::key_hash(object.key());
        let version = object.meta().version;
        object.is_fragment() && self.holds.has(head, version) && !self.is_in_memory(head, version)
    }

    /// The fragments of versions that are read but not (known to be) the present ones any more.
    /// Those of present versions go the way of all objects: what is missing of them can be fetched.
    pub(crate) fn only_held_fragments(&self) -> std::collections::HashSet<KeyHash> {
        let mut holds = self.holds.all();
        holds.retain(|hold| !self.is_in_memory(hold.hash, hold.version));
        // Together no more than one object of the greatest length: reuse must get on. The short
        // ones first, because that serves most readers.
        holds.sort_by_key(|hold| (hold.bytes, hold.version));
        let mut room = self.object_bytes_max();
        holds.retain(|hold| {
            let left = room.checked_sub(hold.bytes);
            room = left.unwrap_or(room);
            left.is_some()
        });
        let of = |hold: &Arc<Hold>| {
            let (hash, version) = (hold.hash, hold.version);
            (0..hold.fragments).map(move |n| fragment_hash(hash, version, n))
        };
        holds.iter().flat_map(of).collect()
    }
}
