//! The stores of an engine together: which are open, which are away, and what they say about each other
//! on their disks.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_format::Company;
use parking_lot::{Mutex, MutexGuard};

use crate::StoreId;
use crate::away::Away;
use crate::company::Circle;
use crate::registry::{Registry, Stores};
use crate::stats::Duty;
use crate::trust::Trust;

/// All that an engine knows about its stores as a group.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    registry: Registry,
    away: Away,
    trust: Trust,
    /// The company of the stores that are believed, if the stores met.
    circle: Mutex<Option<Circle>>,
    /// The epoch that every store shall record; 0: they did not meet, or not all are open.
    epoch: AtomicU64,
    membership: Mutex<()>,
}

impl Fleet {
    /// The lock that is held while a store is opened or taken out: one at a time.
    pub(crate) fn lock_membership(&self) -> MutexGuard<'_, ()> {
        self.membership.lock()
    }

    /// All open stores, in order of opening.
    pub(crate) fn stores(&self) -> Stores {
        self.registry.load()
    }

    /// The list of open stores, to change it.
    pub(crate) const fn registry(&self) -> &Registry {
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

    /// The open stores are the company from now on, and shall say so.
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
