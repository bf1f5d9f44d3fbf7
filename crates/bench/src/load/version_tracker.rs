//! Tracks the versions that an answer may contain when all versions of an object share one URL.
//!
//! A reload announces a new version: its request names the version to the origin. While the reload runs,
//! answers may contain the old or the new version. When the reload is finished, answers must contain the new
//! version. A reload is sent only when no other request for its object is running. Until then, the requests
//! are for the old version. So the load generator knows the order in which a cache gets the answers.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::request_spec::RequestSpec;

/// State of every requested object.
#[derive(Debug, Default)]
pub(crate) struct VersionTracker {
    objects: HashMap<(u32, u64), Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The oldest version that an answer may contain.
    oldest: u32,
    /// The newest announced version.
    newest: u32,
    /// Length of a body in the newest announced version.
    newest_size: u64,
    under_way: u32,
}

/// The next request as it must be sent, and the versions that its answer may contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) spec: RequestSpec,
    pub(crate) versions: RangeInclusive<u32>,
    pub(crate) reload: bool,
}

impl VersionTracker {
    /// Must be called before a request is sent. Returns the request as it must be sent, and the versions
    /// that the answer may contain.
    pub(crate) fn begin(&mut self, spec: RequestSpec) -> Permit {
        let entry = self.objects.entry((spec.server, spec.id)).or_insert(Entry {
            oldest: spec.version,
            newest: spec.version,
            newest_size: spec.size,
            under_way: 0,
        });
        let reload = spec.version > entry.newest && entry.under_way == 0;
        if reload {
            entry.newest = spec.version;
            entry.newest_size = spec.size;
        }
        entry.under_way += 1;
        let spec = RequestSpec {
            version: entry.newest,
            size: entry.newest_size,
            ..spec
        };
        Permit {
            spec,
            versions: entry.oldest..=entry.newest,
            reload,
        }
    }

    /// Must be called after an answer. `version` is the answer's version if the answer was correct.
    pub(crate) fn end(&mut self, spec: &RequestSpec, version: Option<u32>) {
        if let Some(entry) = self.objects.get_mut(&(spec.server, spec.id)) {
            entry.under_way = entry.under_way.saturating_sub(1);
            entry.oldest = entry.oldest.max(version.unwrap_or(0));
        }
    }

    /// Adds an object that was stored in an earlier run, with its version.
    pub(crate) fn know(&mut self, spec: &RequestSpec) {
        let fresh = Entry {
            oldest: spec.version,
            newest: spec.version,
            newest_size: spec.size,
            under_way: 0,
        };
        let entry = self.objects.entry((spec.server, spec.id)).or_insert(fresh);
        if spec.version >= entry.newest {
            *entry = fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(version: u32) -> RequestSpec {
        RequestSpec {
            id: 1,
            version,
            size: u64::from(version) * 10,
            ..RequestSpec::default()
        }
    }

    #[test]
    fn a_finished_reload_forbids_what_was_before() {
        let mut tracker = VersionTracker::default();
        let first = tracker.begin(spec(0));
        assert_eq!((first.versions, first.reload), (0..=0, false));
        // The reload for the new version must wait until the running request has ended. So the second request
        // is also for the old version.
        let waiting = tracker.begin(spec(1));
        assert_eq!((waiting.spec.version, waiting.reload), (0, false));
        tracker.end(&spec(0), Some(0));
        tracker.end(&spec(0), Some(0));
        let reload = tracker.begin(spec(1));
        assert_eq!((reload.versions.clone(), reload.reload), (0..=1, true));
        assert_eq!(tracker.begin(spec(0)).versions, 0..=1);
        tracker.end(&reload.spec, Some(1));
        assert_eq!(tracker.begin(spec(0)).versions, 1..=1);
        assert_eq!(tracker.begin(spec(0)).spec.size, 10);
    }

    #[test]
    fn a_failed_reload_leaves_both_possible() {
        let mut tracker = VersionTracker::default();
        tracker.know(&spec(3));
        let reload = tracker.begin(spec(4));
        tracker.end(&reload.spec, None);
        assert_eq!(tracker.begin(spec(4)).versions, 3..=4);
        tracker.end(&spec(4), Some(4));
        assert_eq!(tracker.begin(spec(4)).versions, 4..=4);
    }
}
