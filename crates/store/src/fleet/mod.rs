//! The stores of an engine as a group: which serve, which are away, and what they say about each other
//! on their disks.
//!
//! Uses `shared` and `interface`.
//!
//! | file | has |
//! |---|---|
//! | `away`, `standing` | stores that were taken out, and the trust in one that is opened |
//! | `company`, `trust` | which stores are believed when they meet at a start |
//! | `duty`, `tickets` | stores that serve, drain and leave; waiting until all stores have written |

mod away;
mod company;
mod duty;
mod standing;
mod tickets;
mod trust;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::rule;
use foxy_disk::Disk;
use foxy_format::Company;
use parking_lot::{Mutex, MutexGuard};

pub(crate) use self::away::Away;
pub(crate) use self::company::Circle;
pub use self::duty::DutyError;
pub(crate) use self::standing::Standing;
pub(crate) use self::tickets::{ticket_of, ticket_of_removed};
use self::trust::Trust;
use crate::StoreId;
use crate::interface::Duty;
use crate::shared::{Registry, StoreShared, Stores};

/// All that an engine knows about its stores as a group.
#[derive(Debug, Default)]
pub struct Fleet {
    registry: Arc<Registry>,
    away: Away,
    trust: Trust,
    /// The company of the stores that are believed, if the stores met.
    circle: Mutex<Option<Circle>>,
    /// The epoch that every store shall record; 0: they did not meet, or not all are open.
    epoch: AtomicU64,
    membership: Mutex<()>,
}

impl Fleet {
    /// The disk of a store, to open read queues on.
    #[must_use]
    pub fn disk(&self, store: StoreId) -> Option<Arc<dyn Disk>> {
        self.store(store).map(|s| s.disk.clone())
    }

    /// Numbers of all stores.
    #[must_use]
    pub fn store_ids(&self) -> Vec<StoreId> {
        self.stores().iter().map(|s| s.id).collect()
    }

    /// Stores that were missing in an earlier run: they begin empty when they are opened next.
    pub fn begin_empty(&self, stores: impl IntoIterator<Item = [u8; 16]>) {
        self.trust.distrust(stores);
    }

    /// A store is missing, and nothing can note that: from now on the tickets of purges end as
    /// [`crate::Durable::Failed`], since a purged object may be there again when the store is.
    pub fn lose_purges(&self) {
        self.trust.lose();
    }

    /// Returns whether a store is missing and nothing notes what is removed meanwhile, so that it may come
    /// back with what was purged.
    pub(crate) fn is_unnoted(&self) -> bool {
        let notes = |s: &Arc<StoreShared>| s.takes_writes() && s.role.duty() != Duty::Leaving;
        let alone = self.trust.has_unmarked() && !self.stores().iter().any(notes);
        self.trust.is_unnoted()
            || rule!(
                "leave: no purge is durable while nobody notes a store whose disk does not say so",
                alone,
                false
            )
    }

    /// The lock that is held while a store is opened or taken out: one at a time.
    pub(crate) fn lock_membership(&self) -> MutexGuard<'_, ()> {
        self.membership.lock()
    }

    /// The same lock, unless a store is being opened or taken out now.
    pub(crate) fn try_lock_membership(&self) -> Option<MutexGuard<'_, ()>> {
        self.membership.try_lock()
    }

    /// All open stores, in order of opening.
    pub(crate) fn stores(&self) -> Stores {
        self.registry.load()
    }

    /// The open store of this number.
    pub(crate) fn store(&self, id: StoreId) -> Option<Arc<StoreShared>> {
        self.registry.store(id)
    }

    /// Payload of a fragment that every store takes; `None` without a store.
    pub(crate) fn fragment_bytes(&self) -> Option<u32> {
        let stores = self.stores();
        let all = stores.iter();
        all.map(|s| fragment_bytes(s.space.geometry().cluster_bytes))
            .min()
    }

    /// The list of open stores, to change it.
    pub(crate) const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Removals that absent stores have missed.
    pub(crate) const fn away(&self) -> &Away {
        &self.away
    }

    /// Knowledge about stores that is not on their own disks.
    pub(crate) const fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Notes what the stores of a start say about each other.
    pub(crate) fn meet(&self, circle: Circle) {
        *self.circle.lock() = Some(circle);
    }

    /// True if the stores did not meet: each is believed, and joins alone.
    pub(crate) fn is_unmet(&self) -> bool {
        self.circle.lock().is_none()
    }

    /// Returns whether a store that records this company is believed. The first one that is opened
    /// begins the circle.
    pub(crate) fn believes(&self, company: &Company) -> bool {
        let mut circle = self.circle.lock();
        if let Some(circle) = circle.as_mut().filter(|_| self.stores().is_empty()) {
            circle.begin(company);
        }
        circle.is_none_or(|circle| circle.believes(company))
    }

    /// The company that the stores record now, if they met.
    pub(crate) fn company(&self) -> Option<Company> {
        let circle = self.circle.lock();
        circle.map(|circle| *circle.now())
    }

    /// The open stores are the company from now on, and have to record it on their disks.
    pub(crate) fn renew(&self) {
        let stores = self.stores();
        let mut circle = self.circle.lock();
        if let Some(circle) = circle.as_mut() {
            let company = circle.renew(stores.iter().map(|store| store.space.uuid()));
            self.epoch.store(company.epoch, Ordering::Release);
        }
        drop(circle);
        stores.iter().for_each(|store| store.bell.ring());
    }

    /// Returns whether every store that belongs to the company has recorded this epoch. A store
    /// that takes no writes cannot: the others note that it misses everything.
    pub(crate) fn others_say(&self, epoch: u64, but: StoreId) -> bool {
        let stores = self.stores();
        let mut others = stores.iter().filter(|s| {
            s.id != but && s.role.has_joined() && s.takes_writes() && s.role.duty() != Duty::Leaving
        });
        others.all(|s| s.role.says(epoch))
    }

    /// The epoch that every store shall record; 0: none.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

/// Payload of a fragment: two of them, with their heads, fill a cluster.
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
