//! Versions of large objects that somebody is reading, whether or not their key still holds them.
//! Their fragments stay readable until the last reader is gone: reuse of a segment writes them again.
//! A hold does not make a version the present one: only the head's entry does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use foxy_base::KeyHash;
use foxy_format::fragment_hash;
use parking_lot::Mutex;

use crate::Object;
use crate::engine::{Keys, Shards};

type Table = Mutex<HashMap<(KeyHash, u64), Weak<Hold>>>;

/// All versions that are held; clones share them. Its lock is the innermost: no other lock is taken
/// under it.
#[derive(Clone, Debug, Default)]
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

    /// The head of a large object, with its version held as long as it lives.
    pub(crate) fn hold(&self, mut head: Object) -> Object {
        if head.is_large() {
            head.hold = Some(self.of(&head));
        }
        head
    }

    /// Returns whether an object is a fragment of a version that somebody reads.
    pub(crate) fn has_fragment(&self, keys: &Keys, object: &Object) -> bool {
        let head = keys.hash(object.key());
        object.is_fragment() && self.has(head, object.meta().version)
    }

    /// The fragments of versions that somebody is reading. This includes present versions: their
    /// missing bytes could be fetched again, but the origin may have another version by then, or not
    /// give ranges. Together they are no more than `room` bytes.
    pub(crate) fn fragments(&self, shards: &Shards, mut room: u64) -> HashSet<KeyHash> {
        let all = self.all().into_iter();
        let mut read: Vec<_> = all
            .filter_map(|hold| Some((hold.use_of(shards)?, hold.bytes, hold)))
            .collect();
        // Reuse must get on, so the room is limited. Versions that cannot be fetched again come
        // first, then short ones, because that serves most readers.
        read.sort_by_key(|(how, bytes, hold)| (*how, *bytes, hold.version));
        read.retain(|(_, bytes, _)| {
            let left = room.checked_sub(*bytes);
            room = left.unwrap_or(room);
            left.is_some()
        });
        let of = |hold: &Arc<Hold>| {
            let (hash, version) = (hold.hash, hold.version);
            (0..hold.fragments).map(move |n| fragment_hash(hash, version, n))
        };
        read.iter().flat_map(|(.., hold)| of(hold)).collect()
    }
}

impl Hold {
    /// Returns the use of the version; `None` if only the memory that has its head needs it.
    fn use_of(self: &Arc<Self>, shards: &Shards) -> Option<Use> {
        let shard = shards.of(self.hash).read();
        let head = shard.in_memory(self.hash);
        let Some(present) = head.filter(|head| head.meta().version == self.version) else {
            return Some(Use::Replaced);
        };
        // Counts beyond the reference in the shard, and beyond the hold in that head and `self`.
        let read = Arc::strong_count(present) > 1 || Arc::strong_count(self) > 2;
        read.then_some(Use::Present)
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

/// The readers of a version, in order of need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Requests that came before it was replaced, as far as memory tells.
    Replaced,
    /// Requests for what the key holds.
    Present,
}
