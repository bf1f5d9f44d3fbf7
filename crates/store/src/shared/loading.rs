//! The loading of a store (after it was opened, its records are entered into the index), and the keys that
//! were removed since loading began.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::removed_keys::RemovedKeys;

/// States whether a store is loaded, and which keys must not be loaded any more.
#[derive(Debug)]
pub(crate) struct Loading {
    /// `Some` while recovery is loading.
    removed_keys: RwLock<Option<RemovedKeys>>,
    is_loading: AtomicBool,
}

impl Loading {
    /// Begins loading. At most `removed_keys_max` removed keys are remembered.
    pub(super) fn new(removed_keys_max: usize) -> Self {
        Self {
            removed_keys: RwLock::new(Some(RemovedKeys::new(removed_keys_max))),
            is_loading: AtomicBool::new(true),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_loading.load(Ordering::Acquire)
    }

    /// The same as [`Self::is_on`], for figures only: the relaxed atomic read does not order any other
    /// access.
    pub(crate) fn seems_on(&self) -> bool {
        self.is_loading.load(Ordering::Relaxed)
    }

    /// The keys that were removed since loading began; `None` once it has ended.
    pub(crate) fn removed_keys(&self) -> RwLockReadGuard<'_, Option<RemovedKeys>> {
        self.removed_keys.read()
    }

    /// The same keys as [`Self::removed_keys`], with write access to add more.
    pub(crate) fn removed_keys_mut(&self) -> RwLockWriteGuard<'_, Option<RemovedKeys>> {
        self.removed_keys.write()
    }

    /// Ends loading: everything is loaded.
    pub(crate) fn end(&self) {
        *self.removed_keys.write() = None;
        self.is_loading.store(false, Ordering::Release);
    }

    /// The memory of the set of removed keys, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.removed_keys
            .read()
            .as_ref()
            .map_or(0, RemovedKeys::memory_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_remembered_once_everything_is_loaded() {
        let loading = Loading::new(8);
        assert!(loading.is_on() && loading.removed_keys().is_some());
        loading.end();
        assert!(!loading.is_on() && !loading.seems_on());
        assert!(loading.removed_keys_mut().is_none());
        assert_eq!(loading.memory_bytes(), 0);
    }
}
