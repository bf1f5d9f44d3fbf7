//! The stores that are out of date although no disk records this.
//!
//! A store records on its disk the store sets in which it was open. A store that was missing in a run
//! cannot know what it missed. If no other store was open in that run, no disk records that the store
//! was missing. The caller that starts the engine may remember this, and then calls
//! [`crate::Fleet::begin_empty`].

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use foxy_format::StoreUuid;
use parking_lot::Mutex;

/// The stores that are out of date, and two flags: `unnoted` is set by [`Trust::lose`], and `unmarked`
/// by [`Trust::leave_unmarked`].
#[derive(Debug, Default)]
pub(crate) struct Trust {
    out_of_date: Mutex<HashSet<[u8; 16]>>,
    unnoted: AtomicBool,
    unmarked: AtomicBool,
}

impl Trust {
    /// Returns whether the store has to begin empty. A second call for the same store returns false.
    pub(crate) fn take(&self, uuid: StoreUuid) -> bool {
        self.out_of_date.lock().remove(&uuid.0)
    }

    /// Notes that these stores have to begin empty.
    pub(crate) fn distrust(&self, stores: impl IntoIterator<Item = [u8; 16]>) {
        self.out_of_date.lock().extend(stores);
    }

    /// Notes that a store is missing and that no disk records this: see [`crate::Fleet::lose_purges`].
    pub(crate) fn lose(&self) {
        self.unnoted.store(true, Ordering::Release);
    }

    /// Notes that a store left, although its own disk does not record that its contents are dead. Only the
    /// remaining stores can note that it misses removals.
    pub(crate) fn leave_unmarked(&self) {
        self.unmarked.store(true, Ordering::Release);
    }

    /// Returns whether a store left as [`Self::leave_unmarked`] describes.
    pub(crate) fn has_unmarked(&self) -> bool {
        self.unmarked.load(Ordering::Acquire)
    }

    /// Returns whether [`Self::lose`] was called.
    pub(crate) fn is_unnoted(&self) -> bool {
        self.unnoted.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_begins_empty_once() {
        let trust = Trust::default();
        trust.distrust([[1; 16], [2; 16]]);
        assert_eq!(
            [1, 1, 3].map(|n| trust.take(StoreUuid([n; 16]))),
            [true, false, false]
        );
        assert!(!trust.is_unnoted());
        trust.lose();
        assert!(trust.is_unnoted() && trust.take(StoreUuid([2; 16])));
    }
}
