//! The list of open stores. Lookups read the list without a lock; the whole list is replaced when a
//! store is added or removed.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use foxy_index::Address;

use super::StoreShared;
use crate::StoreId;

/// The maximum number of stores that may be open at once.
const MAX_STORES: usize = 16;

type List = Vec<Arc<StoreShared>>;

/// All open stores, in order of opening.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    list: ArcSwap<List>,
    /// The number of stores that were opened so far. It is also the number of the next store, so no number is
    /// used twice.
    opened: AtomicU64,
    /// The number of stores that left.
    left: AtomicU64,
}

/// The stores that are open at one moment. As long as this value exists, the stores cannot be closed,
/// so drop it soon.
pub(crate) struct Stores(Guard<Arc<List>>);

impl Deref for Stores {
    type Target = [Arc<StoreShared>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Stores {
    /// Returns the store with this number, if it is open.
    pub(crate) fn by_id(&self, id: StoreId) -> Option<&Arc<StoreShared>> {
        self.iter().find(|s| s.id == id)
    }

    /// Returns the store that contains this address.
    pub(crate) fn at(&self, address: Address) -> Option<&Arc<StoreShared>> {
        self.iter().find(|s| s.space.holds(address))
    }
}

impl Registry {
    pub(crate) fn load(&self) -> Stores {
        Stores(self.list.load())
    }

    /// Returns the open store with this number.
    pub(crate) fn store(&self, id: StoreId) -> Option<Arc<StoreShared>> {
        self.load().by_id(id).cloned()
    }

    /// Returns the number and the first address for the next store, which has `sectors` sectors. The
    /// address is the beginning of the first gap that is long enough. Returns `None` if there are too
    /// many stores, or if no gap is long enough.
    pub(crate) fn next(&self, sectors: u64) -> Option<(StoreId, u64)> {
        let stores = self.load();
        let id = u16::try_from(self.opened.load(Ordering::Acquire)).ok()?;
        let mut taken: Vec<_> = stores
            .iter()
            .map(|s| (s.space.sectors().start, s.space.sectors().end))
            .collect();
        taken.sort_unstable();
        let mut base = 0;
        for (begin, end) in taken {
            if base + sectors <= begin {
                break;
            }
            base = end;
        }
        Address::from_sectors(base + sectors)?;
        (stores.len() < MAX_STORES).then_some((StoreId(id), base))
    }

    /// Adds a store. If `old` is set, the new store replaces the store with that number.
    pub(crate) fn add(&self, store: &Arc<StoreShared>, old: Option<StoreId>) {
        self.opened.fetch_add(1, Ordering::AcqRel);
        self.list.rcu(|list| {
            let mut list: List = list.iter().filter(|s| Some(s.id) != old).cloned().collect();
            list.push(Arc::clone(store));
            list
        });
    }

    pub(crate) fn remove(&self, id: StoreId) {
        self.list.rcu(|list| {
            let others = list.iter().filter(|s| s.id != id);
            others.cloned().collect::<List>()
        });
    }

    /// The number of stores that were opened so far.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Acquire)
    }

    /// Informs walks that a store from their list may have left.
    pub(crate) fn count_departure(&self) {
        self.left.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn departures(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }
}
