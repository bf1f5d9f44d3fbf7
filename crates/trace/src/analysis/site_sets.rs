//! Locality sets as the author of UCFS defines them: a page and the objects that the same user requests from
//! the same site in the minutes after the page (the window). The set of a page is fixed when any user visits
//! the page for the first time. If later visitors request a large share of the set, it is useful to store the
//! objects of the set together. The publication's length of the window is not known, so the caller chooses
//! the length.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::{Class, Request};

/// Maximum number of open visits of a client. If there are more, the oldest visit ends early.
const OPEN_MAX: usize = 64;

/// Collects sets for one length of the window.
#[derive(Clone, Debug, Default)]
pub struct SiteSets {
    window_ms: i64,
    first: HashMap<u64, HashSet<u64>>,
    open: HashMap<u32, VecDeque<Visit>>,
    revisits: u64,
    again: f64,
}

#[derive(Clone, Debug)]
struct Visit {
    page: u64,
    site: u32,
    begun_ms: i64,
    objects: HashSet<u64>,
}

/// Statistics of the sets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteSetsReport {
    /// Length of the window in minutes.
    pub minutes: f64,
    /// Number of pages.
    pub sets: u64,
    /// Mean number of objects in a set, including the page.
    pub mean: f64,
    /// Number of visits to pages that were visited before.
    pub revisits: u64,
    /// Mean share of a page's set that a later visit to the page requests.
    pub again: f64,
}

impl SiteSets {
    /// Creates an analysis with a window of `minutes` minutes.
    #[must_use]
    pub fn new(minutes: f64) -> Self {
        Self {
            window_ms: (minutes * 60e3) as i64,
            ..Self::default()
        }
    }

    /// Counts one request. The request needs a client, a time and a class. If the log has several sites, the
    /// request also needs a site.
    pub fn add(&mut self, request: &Request) {
        let mut visits = self.open.remove(&request.client).unwrap_or_default();
        let window_ms = self.window_ms;
        let over = |v: &Visit| request.time_ms.saturating_sub(v.begun_ms) > window_ms;
        while visits.front().is_some_and(over) || visits.len() > OPEN_MAX {
            if let Some(visit) = visits.pop_front() {
                self.close(visit);
            }
        }
        for visit in visits.iter_mut().filter(|v| v.site == request.server) {
            visit.objects.insert(request.object);
        }
        if request.class == Class::Html {
            visits.push_back(Visit {
                page: request.object,
                site: request.server,
                begun_ms: request.time_ms,
                objects: HashSet::from([request.object]),
            });
        }
        if !visits.is_empty() {
            self.open.insert(request.client, visits);
        }
    }

    fn close(&mut self, visit: Visit) {
        if let Some(first) = self.first.get(&visit.page) {
            let common = first.intersection(&visit.objects).count();
            self.again += common as f64 / first.len().max(1) as f64;
            self.revisits += 1;
        } else {
            self.first.insert(visit.page, visit.objects);
        }
    }

    /// Closes open visits in the order in which they began, and returns the statistics.
    #[must_use]
    pub fn report(mut self) -> SiteSetsReport {
        let mut left: Vec<Visit> = std::mem::take(&mut self.open)
            .into_values()
            .flatten()
            .collect();
        left.sort_by_key(|visit| (visit.begun_ms, visit.page));
        left.into_iter().for_each(|visit| self.close(visit));
        let objects: usize = self.first.values().map(HashSet::len).sum();
        SiteSetsReport {
            minutes: self.window_ms as f64 / 60e3,
            sets: self.first.len() as u64,
            mean: objects as f64 / self.first.len().max(1) as f64,
            revisits: self.revisits,
            again: self.again / self.revisits.max(1) as f64,
        }
    }
}

impl std::fmt::Display for SiteSetsReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "sets of a site within {} min: {} pages, objects mean {:.2}, asked again {:.2} in {} \
             later visits",
            self.minutes, self.sets, self.mean, self.again, self.revisits
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests are `(second, client, site, object)`; objects from 100 on are pages.
    fn report(minutes: f64, asked: &[(i64, u32, u32, u64)]) -> SiteSetsReport {
        let mut sets = SiteSets::new(minutes);
        for &(second, client, server, object) in asked {
            sets.add(&Request {
                time_ms: second * 1_000,
                client,
                server,
                object,
                class: if object >= 100 {
                    Class::Html
                } else {
                    Class::Image
                },
                ..Request::default()
            });
        }
        sets.report()
    }

    #[test]
    fn a_set_is_of_one_user_and_one_site_within_the_window_and_holds_for_all_users() {
        let asked = [
            (0, 1, 7, 100),
            (10, 1, 7, 1),
            (20, 1, 8, 2), // another site
            (30, 2, 7, 3), // another user
            (50, 1, 7, 4),
            (61, 1, 7, 5), // too late
            (900, 2, 7, 100),
            (910, 2, 7, 4),
        ];
        let got = report(1.0, &asked);
        assert_eq!((got.sets, got.revisits), (1, 1));
        assert!((got.mean - 3.0).abs() < 1e-9, "{got}");
        assert!((got.again - 2.0 / 3.0).abs() < 1e-9, "page and one of two");
        let longer = report(2.0, &asked);
        assert!((longer.mean - 4.0).abs() < 1e-9 && (longer.again - 0.5).abs() < 1e-9);
    }

    #[test]
    fn another_page_of_the_site_belongs_to_the_set_and_begins_its_own() {
        let got = report(1.0, &[(0, 1, 7, 100), (5, 1, 7, 101), (9, 1, 7, 1)]);
        assert_eq!((got.sets, got.revisits), (2, 0));
        assert!((got.mean - 2.5).abs() < 1e-9);
    }
}
