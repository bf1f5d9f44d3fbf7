//! The infinite cache: the results of a cache without limits.

use std::collections::HashMap;

use super::ratio;
use crate::Request;

/// Simulates the infinite cache for a stream of requests.
#[derive(Clone, Debug, Default)]
pub struct Infinite {
    seen: HashMap<u64, Seen>,
    report: InfiniteReport,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    size: u64,
    references: u32,
}

/// Results of the infinite cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InfiniteReport {
    /// Number of requests.
    pub requests: u64,
    /// Bytes requested.
    pub bytes: u64,
    /// Number of different objects.
    pub objects: u64,
    /// Bytes of the different objects, each with its last known size.
    pub distinct_bytes: u64,
    /// Number of requests for an object that was requested before.
    pub hits: u64,
    /// Number of hits whose size is that of the object's previous request. Hits without a size (304) count
    /// too.
    pub same_size: u64,
    /// Bytes of the hits.
    pub hit_bytes: u64,
    /// Number of objects that were requested only once.
    pub one_timers: u64,
}

impl Infinite {
    /// Counts one request. Returns the size of the object. If the request has size 0, returns the last known
    /// size of the object.
    pub fn add(&mut self, request: &Request) -> u64 {
        let report = &mut self.report;
        report.requests += 1;
        let known = self.seen.entry(request.object).or_insert(Seen {
            size: 0,
            references: 0,
        });
        let size = if request.size == 0 {
            known.size
        } else {
            request.size
        };
        report.bytes += size;
        known.references = known.references.saturating_add(1);
        if known.references > 1 {
            report.hits += 1;
            report.hit_bytes += size;
            report.same_size += u64::from(size == known.size);
        }
        known.size = size;
        size
    }

    /// Number of requests for each object, in no particular order.
    #[must_use]
    pub fn references(&self) -> Vec<u32> {
        self.seen.values().map(|s| s.references).collect()
    }

    /// The last known size of each object, in no particular order.
    pub fn sizes(&self) -> impl Iterator<Item = u64> {
        self.seen.values().map(|s| s.size)
    }

    /// The results so far.
    #[must_use]
    pub fn report(&self) -> InfiniteReport {
        InfiniteReport {
            objects: self.seen.len() as u64,
            distinct_bytes: self.seen.values().map(|s| s.size).sum(),
            one_timers: self.seen.values().filter(|s| s.references == 1).count() as u64,
            ..self.report
        }
    }
}

impl InfiniteReport {
    /// Share of requests that hit.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.requests)
    }

    /// Share of requests that hit with an unchanged size.
    #[must_use]
    pub fn same_size_ratio(&self) -> f64 {
        ratio(self.same_size, self.requests)
    }

    /// Share of requested bytes that hit.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_hand() {
        let mut cache = Infinite::default();
        for (object, size) in [(1, 100), (2, 50), (1, 0), (1, 80), (3, 0)] {
            cache.add(&Request {
                object,
                size,
                ..Request::default()
            });
        }
        let r = cache.report();
        assert_eq!((r.requests, r.objects, r.hits, r.same_size), (5, 3, 2, 1));
        assert_eq!(
            (r.bytes, r.hit_bytes, r.distinct_bytes, r.one_timers),
            (330, 180, 130, 2)
        );
        assert!((r.hit_ratio() - 0.4).abs() < 1e-9);
    }
}
