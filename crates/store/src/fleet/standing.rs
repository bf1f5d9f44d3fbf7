//! Stores that come and go while the engine runs.
//!
//! **Leaving.** The store gets nothing new, waiting objects are written, and the open segment is
//! sealed. From then on the engine remembers what is removed ([`super::away`]). The store writes to
//! its disk that its contents do not count, and leaves the list; its entries leave the index.
//!
//! **Coming back.** A store that left this engine in order, and was not opened by anybody since,
//! keeps its contents except what was removed meanwhile. The missed removals are made void in its own
//! log; only when they are durable does the store write that its contents count. Any other store with
//! contents begins empty if it comes after something has changed. So does a store that was missing in
//! a run of the others ([`super::company`]).

use foxy_base::rule;
use foxy_format::{LogPosition, Superblock};

use super::Fleet;

/// The trust in a store's contents when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All that its log says.
    Known,
    /// The records of its log from this floor on, except those removed while it was away.
    Back(LogPosition),
    /// It grows: the engine has everything in hand.
    Grows,
    /// Nothing: nobody knows what was removed or replaced without it.
    Stranger,
}

impl Fleet {
    /// Returns the trust in the contents of a store that is found with this superblock, by an engine in
    /// which something `has_changed` since it was made.
    pub(crate) fn standing(&self, superblock: &Superblock, has_changed: bool) -> Standing {
        if let Some(floor) = self.away().floor_of(superblock.uuid, superblock.generation) {
            return Standing::Back(floor);
        }
        self.away().take(superblock.uuid);
        if rule!(
            "start: a store that is not in the list of the last run begins empty",
            self.trust().take(superblock.uuid),
            false
        ) {
            return Standing::Stranger;
        }
        let believed = self.believes(&superblock.company);
        let changed = rule!(
            "add: a store with contents that comes while something was missed begins empty",
            has_changed,
            false
        );
        match believed && !changed {
            true => Standing::Known,
            false => Standing::Stranger,
        }
    }
}
