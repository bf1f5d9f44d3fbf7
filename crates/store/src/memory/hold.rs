//! Versions of large objects that somebody is reading, whether or not their key still holds them.
//! Their fragments stay readable until the last reader is gone: reuse of a segment writes them again.
//! A hold does not make a version the present one: only the head's entry does.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foxy_base::KeyHash;
use parking_lot::Mutex;

use crate::Object;

type Table = Mutex<HashMap<(KeyHash, u64), Weak<Hold>>>;

/// All versions that are held; clones share them. Its lock is the innermost: no other lock is taken
/// under it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds(Arc<Table>);

/// Lives in the head's object as long as somebody has that.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) hash: KeyHash,
    pub(crate) version: u64,
    pub(crate) fragments: u32,
    pub(crate) bytes: u64,
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

    /// The versions that are held now.
    pub(crate) fn all(&self) -> Vec<Arc<Hold>> {
        self.0.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// The head of a large object, with its version held as long as it lives.
    pub(crate) fn hold(&self, mut head: Object) -> Object {
        if head.is_large() {
            head.hold = Some(self.of(&head));
        }
        head
    }

    /// Returns whether an object is a fragment of a version that somebody reads. `head` is the hash of
    /// its key.
    pub(crate) fn has_fragment(&self, head: KeyHash, object: &Object) -> bool {
        object.is_fragment() && self.has(head, object.meta().version)
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
