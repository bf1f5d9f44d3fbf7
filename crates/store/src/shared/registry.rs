//! The stores that are open. Lookups read the list without a lock; it is exchanged as a whole when
//! a store comes or goes.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use foxy_index::Address;

use super::StoreShared;
use crate::StoreId;

/// Stores that may be open at once.
const MAX_STORES: usize = 16;

type List = Vec<Arc<StoreShared>>;

/// All open stores, in order of opening.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    list: ArcSwap<List>,
    /// Stores opened so far: numbers are never given twice.
    opened: AtomicU64,
    /// Stores that went.
    left: AtomicU64,
}

/// The stores open at one moment. Holding this keeps the stores from being closed, so do not keep it.
pub(crate) struct Stores(Guard<Arc<List>>);

impl Deref for Stores {
    type Target = [Arc<StoreShared>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Stores {
    /// The store of this number, if it is open.
    pub(crate) fn by_id(&self, id: StoreId) -> Option<&Arc<StoreShared>> {
        self.iter().find(|s| s.id == id)
    }

    /// The store that holds this address.
    pub(crate) fn at(&self, address: Address) -> Option<&Arc<StoreShared>> {
        self.iter().find(|s| s.space.holds(address))
    }
}

impl Registry {
    pub(crate) fn load(&self) -> Stores {
        Stores(self.list.load())
    }

    /// The open store of this number.
    pub(crate) fn store(&self, id: StoreId) -> Option<Arc<StoreShared>> {
        self.load().by_id(id).cloned()
    }

    /// Number and first address for the next store, of `units` units: the address is the beginning of
    /// the first gap that is long enough. `None` if there are too many stores, or no such gap.
    pub(crate) fn next(&self, units: u64) -> Option<(StoreId, u64)> {
        let stores = self.load();
        let id = u16::try_from(self.opened.load(Ordering::Acquire)).ok()?;
        let mut taken: Vec<_> = stores
            .iter()
            .map(|s| (s.space.sectors().start, s.space.sectors().end))
            .collect();
        taken.sort_unstable();
        let mut base = 0;
        for (begin, end) in taken {
            if base + units <= begin {
                break;
            }
            base = end;
        }
        Address::from_units(base + units)?;
        (stores.len() < MAX_STORES).then_some((StoreId(id), base))
    }

    /// Adds a store, in the place of `old` if that is given.
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

    /// Stores that were opened so far.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Acquire)
    }

    /// Tells walks that what they still want to look through may be gone.
    pub(crate) fn count_departure(&self) {
        self.left.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn departures(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }
}
