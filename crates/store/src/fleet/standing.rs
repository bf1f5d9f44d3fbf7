//! The stores that leave and return while the engine runs.
//!
//! **Leaving.** No new objects are sent to the store, waiting objects are written, and the open segment
//! is sealed. From then on the engine remembers removals ([`super::detached`]). The store records on its disk
//! that its contents are dead. Then it is removed from the list of open stores, and its entries are
//! removed from the index.
//!
//! **Coming back.** The store keeps its contents under three conditions: this engine took the store out
//! without a failure, no engine has opened the store since then, and the engine could remember all removals
//! that the store missed. Only the records of keys that were removed meanwhile are dead. Tombstones for these
//! records are written to the store's log. When these tombstones are durable, the store records that its
//! contents are live. Any other store with contents begins empty if the engine has already stored, replaced
//! or removed anything. A store that was missing in a run of the other stores also begins empty
//! ([`super::membership`]).

use foxy_base::rule;
use foxy_format::{LogPosition, Superblock};

use super::Fleet;

/// The trust in a store's contents when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The whole log of the store is live.
    Known,
    /// The records from this position of the log on are live, except the records of keys that were removed
    /// while the store was detached.
    Back(LogPosition),
    /// The store grows: the engine itself knows which contents are live.
    Grows,
    /// All contents are dead: it is not known what was removed or replaced while this store was missing.
    Untrusted,
}

impl Fleet {
    /// Returns the trust in the contents of a store with this superblock. `has_changed` states whether
    /// anything was stored, replaced or removed since the engine was made.
    pub(crate) fn standing(&self, superblock: &Superblock, has_changed: bool) -> Standing {
        if let Some(floor) = self
            .detached()
            .floor_of(superblock.uuid, superblock.generation)
        {
            return Standing::Back(floor);
        }
        self.detached().take(superblock.uuid);
        if rule!(
            "start: a store that is not in the list of the last run begins empty",
            self.trust().take(superblock.uuid),
            false
        ) {
            return Standing::Untrusted;
        }
        let trusted = self.trusts(&superblock.membership);
        let changed = rule!(
            "add: a store with contents that comes while something was missed begins empty",
            has_changed,
            false
        );
        match trusted && !changed {
            true => Standing::Known,
            false => Standing::Untrusted,
        }
    }
}
