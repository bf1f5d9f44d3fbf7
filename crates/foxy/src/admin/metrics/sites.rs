//! Metrics about requests of sites, and about their origins.

use foxy_proxy::{Ailment, CACHED, CLASSES, HealthState, OriginState, SiteTotals};

use super::Page;
use crate::admin::{State, origins};

/// Largest number of sites that have separate labels. Further sites share one label.
const SITES_MAX: usize = 200;
/// The label for all further sites. No site has such a name.
const OTHERS: &str = "_others";

pub(super) fn write(state: &State, page: &mut Page) {
    requests(origins::sites(state), page);
    of_origins(state, page);
}

fn requests<'s>(sites: impl Iterator<Item = (&'s str, SiteTotals)>, page: &mut Page) {
    let mut sites = sites.peekable();
    if sites.peek().is_none() {
        return;
    }
    let name = "foxy_site_requests_total";
    let help = "Finished requests of a site or mirror, by the action of the cache (none: the cache was not asked) and by class of the status that was sent. Sites after the first 200 are counted together as _others.";
    page.family(name, "counter", help);
    let mut sample = |site: &str, totals: &SiteTotals| {
        for (cached, of) in CACHED.iter().zip(totals) {
            for (class, count) in CLASSES.iter().zip(of) {
                let labels = format!("site=\"{site}\",cache=\"{cached}\",class=\"{class}\"");
                page.sample(name, &labels, count);
            }
        }
    };
    for (site, totals) in sites.by_ref().take(SITES_MAX) {
        sample(site, &totals);
    }
    let together = |mut all: SiteTotals, (_, more): (&str, SiteTotals)| {
        let counts = all.iter_mut().flatten().zip(more.iter().flatten());
        counts.for_each(|(to, more)| *to += more);
        all
    };
    if sites.peek().is_some() {
        sample(OTHERS, &sites.fold(SiteTotals::default(), together));
    }
}

/// Name, kind, help and value of a metric of one origin.
type OriginMetric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&OriginState) -> f64,
);

const ORIGIN_METRICS: [OriginMetric; 8] = [
    (
        "foxy_origin_up",
        "gauge",
        "1 if the origin gets requests, 0.5 in its slow start, 0 if the origin is left out or if its last three requests failed.",
        |of| match of.health_state {
            _ if of.recently.ailment == Some(Ailment::Fails) => 0.0,
            HealthState::Up => 1.0,
            HealthState::SlowStart => 0.5,
            HealthState::Ejected | HealthState::Down => 0.0,
        },
    ),
    (
        "foxy_origin_outstanding",
        "gauge",
        "Requests under way at the origin.",
        |of| f64::from(of.outstanding),
    ),
    (
        "foxy_origin_requests_total",
        "counter",
        "Requests sent to the origin.",
        |of| of.counts.requests as f64,
    ),
    (
        "foxy_origin_failures_total",
        "counter",
        "Requests to the origin that got no answer, or an answer with status 5xx.",
        |of| of.counts.failures as f64,
    ),
    (
        "foxy_origin_ejections_total",
        "counter",
        "Times that the origin was left out because requests failed.",
        |of| of.counts.ejections as f64,
    ),
    (
        "foxy_origin_recent_failures",
        "gauge",
        "Failed requests among the last 32 requests to the origin.",
        |of| f64::from(of.recently.failures),
    ),
    (
        "foxy_origin_recent_first_byte_seconds",
        "gauge",
        "Time from a request to the head of its answer, averaged over about four requests.",
        |of| of.recently.first_byte.as_secs_f64(),
    ),
    (
        "foxy_origin_waiting_seconds",
        "gauge",
        "Time for which requests have waited for the origin without any answer; 0 if no request waits.",
        |of| of.recently.waiting.as_secs_f64(),
    ),
];

fn of_origins(state: &State, page: &mut Page) {
    let all: Vec<_> = origins::all(state).collect();
    if all.is_empty() {
        return;
    }
    for (name, kind, help, value) in ORIGIN_METRICS {
        page.family(name, kind, help);
        for (site, of) in &all {
            let labels = format!("site=\"{site}\",origin=\"{}\"", of.origin);
            page.sample(name, &labels, value(of));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_beyond_the_bound_are_counted_together() {
        let names: Vec<String> = (0..SITES_MAX + 3).map(|n| format!("s{n}")).collect();
        let mut totals = SiteTotals::default();
        totals[1][5] = 2;
        let mut page = Page::default();
        requests(names.iter().map(|name| (&name[..], totals)), &mut page);
        let samples = |start: &str| {
            page.0
                .lines()
                .filter(|line| line.starts_with(start))
                .count()
        };
        let each = CACHED.len() * CLASSES.len();
        assert_eq!(samples("foxy_site_requests_total"), (SITES_MAX + 1) * each);
        let others = "site=\"_others\",cache=\"miss\",class=\"5xx\"} 6\n";
        assert!(page.0.contains(others), "{}", page.0);
        let mut none = Page::default();
        requests([].into_iter(), &mut none);
        assert!(none.0.is_empty());
    }
}
