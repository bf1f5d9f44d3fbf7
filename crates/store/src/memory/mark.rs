//! The newest purge that an object was compared with, kept with the object in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::rule;

/// Set when a soft purge covers the object.
const STALE: u64 = 1 << 63;

/// The number of the newest purge that the object was compared with (those up to the number it
/// was fetched under do not concern it), and whether a soft one covers it.
#[derive(Debug, Default)]
pub(crate) struct PurgeMark(AtomicU64);

impl Clone for PurgeMark {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl PurgeMark {
    /// For an object fetched when `sequence` was the newest purge.
    pub(crate) const fn new(sequence: u64) -> Self {
        Self(AtomicU64::new(sequence & !STALE))
    }

    /// The object is known not to be removed by purges up to this number.
    pub(crate) fn checked(&self) -> u64 {
        self.0.load(Ordering::Acquire) & !STALE
    }

    /// The object was compared with every purge up to `latest`.
    #[inline]
    pub(crate) fn has_passed(&self, latest: u64) -> bool {
        self.checked() >= latest
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STALE != 0
    }

    /// The object was compared with all purges up to `sequence`, and none removes it.
    pub(crate) fn clean_up_to(&self, sequence: u64, stale: bool) {
        // Staleness stays: another thread may have compared with newer purges, and its result is
        // kept.
        let _ = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |old| {
                let newest = (old & !STALE).max(sequence);
                let before = rule!("purge: stale is for good", old & STALE, 0);
                Some(newest | before | if stale { STALE } else { 0 })
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_is_for_good() {
        let mark = PurgeMark::new(3);
        mark.clean_up_to(5, true);
        mark.clean_up_to(6, false);
        mark.clean_up_to(4, false);
        assert!(mark.is_stale());
        assert_eq!(mark.checked(), 6);
    }
}
