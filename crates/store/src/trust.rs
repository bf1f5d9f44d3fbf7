//! Knowledge about stores that is not on their own disks.
//!
//! A store says on its disk what it was there for. One that was missing cannot know what it missed,
//! and if no other store was open in that run, none can tell. Whoever starts the engine may
//! remember it: see [`crate::Engine::begin_empty`].

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use foxy_format::StoreUuid;
use parking_lot::Mutex;

use crate::Engine;

/// Stores that are out of date, and whether nothing notes the removals that a missing one misses.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    out_of_date: Mutex<HashSet<[u8; 16]>>,
    unnoted: AtomicBool,
}

impl Trust {
    /// Returns whether the store has to begin empty, and forgets that it has.
    pub(crate) fn take(&self, uuid: StoreUuid) -> bool {
        self.out_of_date.lock().remove(&uuid.0)
    }

    /// Nothing remembers a removal that a missing store misses.
    pub(crate) fn is_unnoted(&self) -> bool {
        self.unnoted.load(Ordering::Acquire)
    }
}

impl Engine {
    /// Stores that were missing in an earlier run: they begin empty when they are opened next.
    pub fn begin_empty(&self, stores: impl IntoIterator<Item = [u8; 16]>) {
        self.fleet.trust().out_of_date.lock().extend(stores);
    }

    /// A store is missing, and nothing can note that: from now on the tickets of purges end as
    /// [`crate::Durable::Failed`], since a purged object may be there again when the store is.
    pub fn lose_purges(&self) {
        self.fleet.trust().unnoted.store(true, Ordering::Release);
    }
}
