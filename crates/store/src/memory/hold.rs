//! Versions of large objects that requests are reading, both present and replaced versions. The fragments
//! of such a version stay readable until its last reader has ended: when a segment is reused, the fragments
//! in it are written again. A hold does not affect which version lookups find: only the entry of the head
//! determines that.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foxy_base::KeyHash;
use parking_lot::Mutex;

use crate::Object;

type Table = Mutex<HashMap<(KeyHash, u64), Weak<Hold>>>;

/// All versions that are held; clones share the same table. The lock of the table is the innermost lock: a
/// thread that holds it takes no other lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds(Arc<Table>);

/// The hold of one version. Every [`Object`] of the version's head owns the hold, so the hold lives until the
/// last of these objects is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) hash: KeyHash,
    pub(crate) version: u64,
    pub(crate) fragments: u32,
    pub(crate) bytes: u64,
    table: Arc<Table>,
}

impl Holds {
    /// Returns the hold of the version of `head`. All objects of the same head share this hold.
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

    /// Returns the versions that are held now.
    pub(crate) fn all(&self) -> Vec<Arc<Hold>> {
        self.0.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Returns `head`. If it is the head of a large object, its version is held as long as the returned
    /// object lives.
    pub(crate) fn hold(&self, mut head: Object) -> Object {
        if head.is_large() {
            head.hold = Some(self.of(&head));
        }
        head
    }

    /// Returns whether an object is a fragment of a version that is held. `head` is the hash of the key
    /// of the fragment's head.
    pub(crate) fn has_fragment(&self, head: KeyHash, object: &Object) -> bool {
        object.is_fragment() && self.has(head, object.meta().version)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let id = (self.hash, self.version);
        let mut table = self.table.lock();
        // Another thread may have put a new hold of the version into the table meanwhile.
        if table.get(&id).is_some_and(|hold| hold.strong_count() == 0) {
            table.remove(&id);
        }
    }
}
