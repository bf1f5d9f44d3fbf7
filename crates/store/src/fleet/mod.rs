//! The stores of an engine as a group: which stores are in use, which are detached, and what they record
//! about each other on their disks.
//!
//! This module uses `shared` and `interface`.
//!
//! | file | has |
//! |---|---|
//! | `detached`, `standing` | stores that were taken out, and the trust in a store that is opened |
//! | `membership`, `trust` | which stores are trusted when several stores are opened at a start |
//! | `duty`, `tickets` | stores in use, draining and leaving; waiting until all stores have written |

mod detached;
mod duty;
mod membership;
mod standing;
mod tickets;
mod trust;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::rule;
use foxy_disk::Disk;
use foxy_format::Membership;
use parking_lot::{Mutex, MutexGuard};

pub(crate) use self::detached::DetachedStores;
pub use self::duty::DutyError;
pub(crate) use self::membership::TrustedMembership;
pub(crate) use self::standing::Standing;
pub(crate) use self::tickets::{ticket_of, ticket_of_removed};
use self::trust::Trust;
use crate::StoreId;
use crate::interface::Duty;
use crate::shared::{Registry, StoreShared, Stores};

/// The engine's knowledge about its stores as a group.
#[derive(Debug, Default)]
pub struct Fleet {
    registry: Arc<Registry>,
    detached: DetachedStores,
    trust: Trust,
    /// The membership of the trusted stores; `None` before [`crate::Engine::compare_memberships`] is called.
    trusted_membership: Mutex<Option<TrustedMembership>>,
    /// The epoch that every store should record. It is 0 until [`crate::Engine::compare_memberships`] and
    /// then [`crate::Engine::join`] were called.
    epoch: AtomicU64,
    membership: Mutex<()>,
}

impl Fleet {
    /// Returns the disk of a store, on which read queues can be opened.
    #[must_use]
    pub fn disk(&self, store: StoreId) -> Option<Arc<dyn Disk>> {
        self.store(store).map(|s| s.disk.clone())
    }

    /// Returns the numbers of all stores.
    #[must_use]
    pub fn store_ids(&self) -> Vec<StoreId> {
        self.stores().iter().map(|s| s.id).collect()
    }

    /// Declares that these stores were missing in an earlier run. They begin empty when they are opened next:
    /// all their present contents are then dead.
    pub fn begin_empty(&self, stores: impl IntoIterator<Item = [u8; 16]>) {
        self.trust.distrust(stores);
    }

    /// Notes that a store is missing and that no other store can record this on its disk. From now on
    /// the tickets of purges end as [`crate::Durable::Failed`], because purged objects may return
    /// together with the missing store.
    pub fn lose_purges(&self) {
        self.trust.lose();
    }

    /// Returns whether a store is missing and no disk records that this store misses removals. If such a
    /// store returns, purged objects may return with it.
    pub(crate) fn is_unnoted(&self) -> bool {
        let notes = |s: &Arc<StoreShared>| s.takes_writes() && s.member.duty() != Duty::Leaving;
        let alone = self.trust.has_unmarked() && !self.stores().iter().any(notes);
        self.trust.is_unnoted()
            || rule!(
                "leave: no purge is durable while nobody notes a store that left without recording it",
                alone,
                false
            )
    }

    /// Takes the lock that is held while a store is opened or taken out. So only one store at a time is
    /// opened or taken out.
    pub(crate) fn lock_membership(&self) -> MutexGuard<'_, ()> {
        self.membership.lock()
    }

    /// Takes the lock of [`Self::lock_membership`]. Returns `None` if the lock is held, for example while
    /// a store is being opened or taken out.
    pub(crate) fn try_lock_membership(&self) -> Option<MutexGuard<'_, ()>> {
        self.membership.try_lock()
    }

    /// Returns all open stores, in order of opening.
    pub(crate) fn stores(&self) -> Stores {
        self.registry.load()
    }

    /// Returns the open store with this number.
    pub(crate) fn store(&self, id: StoreId) -> Option<Arc<StoreShared>> {
        self.registry.store(id)
    }

    /// The greatest length of a fragment's payload that every open store accepts, in bytes; `None`
    /// without a store.
    pub(crate) fn fragment_bytes(&self) -> Option<u32> {
        let stores = self.stores();
        let all = stores.iter();
        all.map(|s| fragment_bytes(s.space.geometry().cluster_bytes))
            .min()
    }

    /// Returns the list of open stores, so that it can be changed.
    pub(crate) const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the removals that detached stores have missed.
    pub(crate) const fn detached(&self) -> &DetachedStores {
        &self.detached
    }

    /// Returns the stores that are out of date although no disk records this.
    pub(crate) const fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Sets the membership that was found by comparing the superblocks of all stores of a start.
    pub(crate) fn set_trusted_membership(&self, trusted: TrustedMembership) {
        *self.trusted_membership.lock() = Some(trusted);
    }

    /// True if [`crate::Engine::compare_memberships`] was not called. Then each store is trusted, and is used
    /// without waiting for the other stores to record a membership.
    pub(crate) fn has_no_membership(&self) -> bool {
        self.trusted_membership.lock().is_none()
    }

    /// Returns whether a store that records this membership is trusted. If no store is open and no membership
    /// is known yet, the engine takes over this membership first.
    pub(crate) fn trusts(&self, membership: &Membership) -> bool {
        let mut trusted = self.trusted_membership.lock();
        if let Some(trusted) = trusted.as_mut().filter(|_| self.stores().is_empty()) {
            trusted.begin(membership);
        }
        trusted.is_none_or(|trusted| trusted.trusts(membership))
    }

    /// Returns the membership that the stores should record now; `None` if
    /// [`crate::Engine::compare_memberships`] was not called.
    pub(crate) fn membership(&self) -> Option<Membership> {
        let trusted = self.trusted_membership.lock();
        trusted.map(|trusted| *trusted.now())
    }

    /// Makes the open stores the store set. From now on, each of these stores must record the new membership
    /// on its disk.
    pub(crate) fn renew(&self) {
        let stores = self.stores();
        let mut trusted = self.trusted_membership.lock();
        if let Some(trusted) = trusted.as_mut() {
            let membership = trusted.renew(stores.iter().map(|store| store.space.uuid()));
            self.epoch.store(membership.epoch, Ordering::Release);
        }
        drop(trusted);
        stores.iter().for_each(|store| store.bell.ring());
    }

    /// Returns whether every store except `but` has recorded this epoch. Stores that have not joined the
    /// store set, that are leaving or that take no writes are left out of the check. A store that takes no
    /// writes cannot record the epoch, and the other stores note that it misses removals.
    pub(crate) fn others_have_recorded(&self, epoch: u64, but: StoreId) -> bool {
        let stores = self.stores();
        let mut others = stores.iter().filter(|s| {
            s.id != but
                && s.member.has_joined()
                && s.takes_writes()
                && s.member.duty() != Duty::Leaving
        });
        others.all(|s| s.member.has_recorded(epoch))
    }

    /// The epoch that every store should record. It is 0 until [`crate::Engine::compare_memberships`] and
    /// then [`crate::Engine::join`] were called.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

/// The length of a fragment's payload in bytes, for clusters of this length: two fragments, with their
/// record heads, fill a cluster.
pub(crate) const fn fragment_bytes(cluster_bytes: u32) -> u32 {
    cluster_bytes / 2 - 2048
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::rig::bare_store;

    #[test]
    fn a_store_is_found_by_its_number() {
        let fleet = Fleet::default();
        assert!(fleet.store_ids().is_empty() && fleet.fragment_bytes().is_none());
        let store = bare_store(3);
        fleet.registry().add(&store, None);
        assert_eq!(fleet.store_ids(), [StoreId(3)]);
        assert!(fleet.disk(StoreId(3)).is_some() && fleet.disk(StoreId(0)).is_none());
        let clusters = store.space.geometry().cluster_bytes;
        assert_eq!(fleet.fragment_bytes(), Some(clusters / 2 - 2048));
    }
}
