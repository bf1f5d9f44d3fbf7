//! The newest purge with which an object was compared, kept with the object in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::rule;

/// This bit is set when a soft purge covers the object.
const STALE: u64 = 1 << 63;

/// The number of the newest purge with which the object was compared, and whether a soft purge covers
/// the object. At first it is the number of the newest purge before the object was fetched, because purges
/// up to that number do not concern the object.
#[derive(Debug, Default)]
pub(crate) struct PurgeMark(AtomicU64);

impl Clone for PurgeMark {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl PurgeMark {
    /// Makes the mark of an object that was fetched when `sequence` was the number of the newest purge.
    pub(crate) const fn new(sequence: u64) -> Self {
        Self(AtomicU64::new(sequence & !STALE))
    }

    /// The number of the newest purge with which the object was compared. No purge up to this number removes
    /// the object.
    pub(crate) fn checked(&self) -> u64 {
        self.0.load(Ordering::Acquire) & !STALE
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STALE != 0
    }

    /// Notes that the object was compared with all purges up to `sequence`, and that none of them
    /// removes it. `stale` states whether a soft purge among them covers the object.
    pub(crate) fn clean_up_to(&self, sequence: u64, stale: bool) {
        // The bit for staleness is never cleared. Another thread may have compared the object with
        // newer purges, and its result is kept.
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
