//! Versions of an object that may still be answered when all versions share one URL.
//!
//! A new version is announced by a reload that names it to the origin. While it runs, old and
//! new may come; once it is done, only the new one may. A reload waits until no other request
//! for its object is under way, so that the order in which a cache sees answers is known.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::work::Work;

/// Knowledge about every requested object.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    objects: HashMap<(u32, u64), Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// No earlier version may come.
    floor: u32,
    /// The newest announced version and its size.
    top: u32,
    top_size: u64,
    under_way: u32,
}

/// Permission for the next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) work: Work,
    pub(crate) versions: RangeInclusive<u32>,
    pub(crate) reload: bool,
}

impl Ledger {
    /// Before sending: the work as it must be asked, and which versions may come.
    pub(crate) fn begin(&mut self, work: Work) -> Permit {
        let entry = self.objects.entry((work.server, work.id)).or_insert(Entry {
            floor: work.version,
            top: work.version,
            top_size: work.size,
            under_way: 0,
        });
        let reload = work.version > entry.top && entry.under_way == 0;
        if reload {
            entry.top = work.version;
            entry.top_size = work.size;
        }
        entry.under_way += 1;
        let work = Work {
            version: entry.top,
            size: entry.top_size,
            ..work
        };
        Permit {
            work,
            versions: entry.floor..=entry.top,
            reload,
        }
    }

    /// After the answer: `version` if it was right.
    pub(crate) fn end(&mut self, work: &Work, version: Option<u32>) {
        if let Some(entry) = self.objects.get_mut(&(work.server, work.id)) {
            entry.under_way = entry.under_way.saturating_sub(1);
            entry.floor = entry.floor.max(version.unwrap_or(0));
        }
    }

    /// An object known from an earlier run: this version was stored.
    pub(crate) fn know(&mut self, work: &Work) {
        let fresh = Entry {
            floor: work.version,
            top: work.version,
            top_size: work.size,
            under_way: 0,
        };
        let entry = self.objects.entry((work.server, work.id)).or_insert(fresh);
        if work.version >= entry.top {
            *entry = fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(version: u32) -> Work {
        Work {
            id: 1,
            version,
            size: u64::from(version) * 10,
            ..Work::default()
        }
    }

    #[test]
    fn a_finished_reload_forbids_what_was_before() {
        let mut ledger = Ledger::default();
        let first = ledger.begin(work(0));
        assert_eq!((first.versions, first.reload), (0..=0, false));
        // A new version must wait: the old one is still asked for instead.
        let waiting = ledger.begin(work(1));
        assert_eq!((waiting.work.version, waiting.reload), (0, false));
        ledger.end(&work(0), Some(0));
        ledger.end(&work(0), Some(0));
        let reload = ledger.begin(work(1));
        assert_eq!((reload.versions.clone(), reload.reload), (0..=1, true));
        assert_eq!(ledger.begin(work(0)).versions, 0..=1);
        ledger.end(&reload.work, Some(1));
        assert_eq!(ledger.begin(work(0)).versions, 1..=1);
        assert_eq!(ledger.begin(work(0)).work.size, 10);
    }

    #[test]
    fn a_failed_reload_leaves_both_possible() {
        let mut ledger = Ledger::default();
        ledger.know(&work(3));
        let reload = ledger.begin(work(4));
        ledger.end(&reload.work, None);
        assert_eq!(ledger.begin(work(4)).versions, 3..=4);
        ledger.end(&work(4), Some(4));
        assert_eq!(ledger.begin(work(4)).versions, 4..=4);
    }
}
