//! Locality sets as the authors of Hummingbird define them: a page and the objects that the same client
//! requests until its next page. The set of a page is fixed at the first visit to the page.

use std::collections::{HashMap, HashSet};

use crate::{Class, Request};

use super::{SizeCounts, ratio};

/// Collects locality sets.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// The set of each page at its first visit by any client, and the bytes of the set.
    first: HashMap<u64, (HashSet<u64>, u64)>,
    open: HashMap<u32, Visit>,
    counts: SizeCounts,
    bytes: SizeCounts,
    visits: [u64; 3],
    revisits: u64,
    again: f64,
}

#[derive(Clone, Debug)]
struct Visit {
    page: u64,
    objects: HashSet<u64>,
    bytes: u64,
}

/// Statistics of the sets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PagesReport {
    /// Number of different pages.
    pub sets: u64,
    /// Mean number of objects per visit, including the page.
    pub mean: f64,
    /// 85th percentile of the objects per visit.
    pub p85: u64,
    /// 95th percentile of the objects per visit.
    pub p95: u64,
    /// Share of visits to pages whose first set has fewer than 20 objects.
    pub under_20: f64,
    /// Share of visits to pages whose first set has fewer than 40 objects.
    pub under_40: f64,
    /// Share of visits to pages whose first set has at most 32 KiB.
    pub kib_32: f64,
    /// Share of visits to pages whose first set has at most 64 KiB.
    pub kib_64: f64,
    /// Share of visits to pages whose first set has at most 128 KiB.
    pub kib_128: f64,
    /// Mean share of a page's first set that a later visit requests again.
    pub again: f64,
}

impl Pages {
    /// Counts one request. The request must have a client and a class.
    pub fn add(&mut self, request: &Request, size: u64) {
        if request.class == Class::Html {
            let page = request.object;
            let visit = Visit {
                page,
                objects: HashSet::new(),
                bytes: 0,
            };
            if let Some(old) = self.open.insert(request.client, visit) {
                self.close(old);
            }
        }
        if let Some(visit) = self.open.get_mut(&request.client)
            && visit.objects.insert(request.object)
        {
            visit.bytes += size;
        }
    }

    fn close(&mut self, visit: Visit) {
        self.counts.add(visit.objects.len() as u64);
        let (n, bytes) = if let Some((first, bytes)) = self.first.get(&visit.page) {
            let common = first.intersection(&visit.objects).count();
            self.again += common as f64 / first.len().max(1) as f64;
            self.revisits += 1;
            (first.len(), *bytes)
        } else {
            let size = (visit.objects.len(), visit.bytes);
            self.first.insert(visit.page, (visit.objects, visit.bytes));
            size
        };
        self.bytes.add(bytes);
        for (sum, limit) in self.visits.iter_mut().zip([usize::MAX, 20, 40]) {
            *sum += u64::from(n < limit);
        }
    }

    /// Closes open visits and returns the statistics.
    #[must_use]
    pub fn report(mut self) -> PagesReport {
        // The first visit to a page decides its set. The open visits are closed in the order of the clients,
        // so that the same requests always give the same result.
        let mut left: Vec<(u32, Visit)> = std::mem::take(&mut self.open).into_iter().collect();
        left.sort_unstable_by_key(|(client, _)| *client);
        left.into_iter().for_each(|(_, visit)| self.close(visit));
        let [all, under_20, under_40] = self.visits;
        let within = |kib: u64| self.bytes.below((kib << 10) + 1);
        PagesReport {
            sets: self.first.len() as u64,
            mean: self.counts.mean(),
            p85: self.counts.quantile(0.85),
            p95: self.counts.quantile(0.95),
            under_20: ratio(under_20, all),
            under_40: ratio(under_40, all),
            kib_32: within(32),
            kib_64: within(64),
            kib_128: within(128),
            again: self.again / self.revisits.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_that_are_open_at_the_end_are_closed_in_one_order() {
        let report = || {
            let mut pages = Pages::default();
            for client in 1..=200 {
                let page = Request {
                    client,
                    object: 9_999,
                    class: Class::Html,
                    ..Request::default()
                };
                pages.add(&page, 10);
                for object in 0..u64::from(client % 7) {
                    let image = Request {
                        object,
                        class: Class::Image,
                        ..page
                    };
                    pages.add(&image, 10);
                }
            }
            pages.report()
        };
        // A map iterates in a different order each time. If the result depended on that order, the
        // probability that ten runs agree by chance would be less than one in a million.
        let first = report();
        assert!((0..10).all(|_| report() == first));
    }

    #[test]
    fn sets_are_frozen_at_first_sight() {
        let mut pages = Pages::default();
        let mut ask = |client, object, class| {
            pages.add(
                &Request {
                    client,
                    object,
                    class,
                    ..Request::default()
                },
                10,
            );
        };
        for (client, object) in [
            (1, 100),
            (1, 1),
            (2, 200),
            (1, 2),
            (2, 3),
            (1, 100),
            (1, 2),
            (1, 9),
        ] {
            ask(
                client,
                object,
                if object >= 100 {
                    Class::Html
                } else {
                    Class::Image
                },
            );
        }
        let r = pages.report();
        assert_eq!((r.sets, r.p95), (2, 3));
        assert!((r.mean - 8.0 / 3.0).abs() < 1e-9);
        assert!(
            (r.again - 2.0 / 3.0).abs() < 1e-9,
            "page and one of two images"
        );
    }
}
