//! The name cache that all workers share. It obeys the time to live, is bounded, and also caches failures.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use foxy_base::MonoTime;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::{ResolveError, Resolved};

/// Longest time for which an answer is kept. It limits the time to live.
const MAX_TTL: Duration = Duration::from_secs(3600);
/// Shortest time for which an answer is kept, even if its time to live is shorter. The reason is that one
/// page often needs the same name several times.
const MIN_TTL: Duration = Duration::from_secs(1);
/// Longest time for which the answer "no such name" is kept.
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(60);
/// Time for which a name is not looked up again if no name server has answered its last lookup.
const UNAVAILABLE_TTL: Duration = Duration::from_secs(1);

/// The addresses of a name. A failure is also cached as an answer.
pub(crate) type Answer = Result<Arc<[IpAddr]>, ResolveError>;

/// A bounded cache of answers.
#[derive(Debug)]
pub(crate) struct DnsCache {
    names: Mutex<HashMap<Box<str>, (MonoTime, Answer)>>,
    max: AtomicUsize,
}

impl DnsCache {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            names: Mutex::new(HashMap::new()),
            max: max.max(1).into(),
        }
    }

    /// Sets a new limit. If the cache has more names than the limit, names are removed when the next name is
    /// added.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max.max(1), Ordering::Relaxed);
    }

    /// Returns the cached answer for `name`, unless it is too old.
    pub(crate) fn get(&self, name: &str, now: MonoTime) -> Option<Answer> {
        let names = self.names.lock();
        let (until, answer) = names.get(name)?;
        (now < *until).then(|| answer.clone())
    }

    /// Stores the answer of a resolver, and returns it as an [`Answer`].
    pub(crate) fn put(
        &self,
        name: &str,
        answer: Result<Resolved, ResolveError>,
        now: MonoTime,
    ) -> Answer {
        let (answer, ttl): (Answer, _) = match answer {
            Ok(r) => (Ok(r.addresses.into()), r.ttl.clamp(MIN_TTL, MAX_TTL)),
            Err(ResolveError::NoSuchName(ttl)) => (
                Err(ResolveError::NoSuchName(ttl)),
                ttl.clamp(MIN_TTL, MAX_NEGATIVE_TTL),
            ),
            Err(ResolveError::Unavailable) => (Err(ResolveError::Unavailable), UNAVAILABLE_TTL),
        };
        let max = self.max.load(Ordering::Relaxed);
        let mut names = self.names.lock();
        if names.len() >= max {
            names.retain(|_, (until, _)| now < *until);
        }
        while names.len() >= max
            && let Some(victim) = names.keys().next().cloned()
        {
            // No answer has expired, so an arbitrary name is removed. This case is rare, so a better choice
            // is not needed.
            names.remove(&victim);
        }
        names.insert(name.into(), (now + ttl, answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> MonoTime {
        MonoTime(secs * 1_000_000_000)
    }

    fn good(ttl: u64) -> Result<Resolved, ResolveError> {
        Ok(Resolved {
            addresses: vec![IpAddr::from([192, 0, 2, 1])],
            ttl: Duration::from_secs(ttl),
        })
    }

    #[test]
    fn answers_live_as_long_as_they_say_within_bounds() {
        let cache = DnsCache::new(10);
        let _ = cache.put("a", good(5), at(0));
        let _ = cache.put("zero", good(0), at(0));
        let _ = cache.put("ages", good(1_000_000), at(0));
        assert!(cache.get("a", at(4)).is_some());
        assert!(cache.get("a", at(5)).is_none());
        assert!(cache.get("zero", at(0)).is_some());
        assert!(cache.get("zero", at(1)).is_none());
        assert!(cache.get("ages", at(3599)).is_some());
        assert!(cache.get("ages", at(3600)).is_none());
    }

    #[test]
    fn failures_are_remembered_for_a_short_time() {
        let cache = DnsCache::new(10);
        let gone = ResolveError::NoSuchName(Duration::from_secs(9999));
        let _ = cache.put("gone", Err(gone), at(0));
        let _ = cache.put("down", Err(ResolveError::Unavailable), at(0));
        assert_eq!(cache.get("gone", at(59)), Some(Err(gone)));
        assert_eq!(cache.get("gone", at(60)), None);
        assert_eq!(cache.get("down", at(1)), None);
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let cache = DnsCache::new(4);
        for n in 0..100 {
            let _ = cache.put(&n.to_string(), good(100), at(0));
        }
        assert_eq!(cache.names.lock().len(), 4);
        assert!(cache.get("99", at(0)).is_some());
    }
}
