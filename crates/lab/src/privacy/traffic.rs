//! Ordinary traffic: users visit pages that the origin makes for each user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;

use super::cell::{Exchange, RunState, Shows};
use super::judge::judge;
use super::site::{Hold, Page};
use super::table::{Set, Timing};

/// The names of the header sets in `table.txt` with which the pages are sent.
pub const PAGES: [&str; 6] = [
    "etag-alone",
    "no-cache-etag",
    "max-age-0-etag",
    "expires-past-etag",
    "set-cookie-etag",
    "set-cookie-max-age",
];
const USERS: u64 = 30;
/// Number of visits to each page.
pub const VISITS: u64 = 300;
const VISITS_PER_SECOND: f64 = 42.0;
/// Latency of the origin.
const LATENCY: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(20);

/// Number of foreign and missing answers in the visits to one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// Number of visits whose answer contained another user's parts.
    pub foreign: u64,
    /// Number of visits without an answer of the origin.
    pub missing: u64,
}

/// Visits all pages in parallel. Returns the counts for each header set.
pub(super) async fn run(
    sets: &[Arc<Set>],
    state: &Arc<RunState>,
    rng: &Rng,
) -> BTreeMap<String, Visits> {
    let mut pages = Vec::new();
    for set in sets.iter().filter(|set| PAGES.contains(&set.name.as_str())) {
        let (set, state) = (Arc::clone(set), Arc::clone(state));
        let rng = rng.fork(&set.name);
        pages.push(tokio::spawn(async move {
            let visits = page(&set, &state, rng).await;
            (set.name.clone(), visits)
        }));
    }
    let mut counts = BTreeMap::new();
    for page in pages {
        counts.extend(page.await);
    }
    counts
}

async fn page(set: &Arc<Set>, state: &Arc<RunState>, mut rng: Rng) -> Visits {
    let path = format!("/traffic/{}", set.name);
    let page = Page::new(Arc::clone(set), None, Hold::Nothing, LATENCY);
    state.site.add(&path, page);
    let mut at = tokio::time::Instant::now();
    let mut running = Vec::new();
    for _ in 0..VISITS {
        let gap = -(1.0 - rng.unit()).ln() / VISITS_PER_SECOND;
        at += Duration::from_secs_f64(gap);
        tokio::time::sleep_until(at).await;
        let person = state.person(Shows::Cookie, rng.below(USERS) as usize);
        let request = person.request("GET", &path);
        let target = state.target.clone();
        running.push(tokio::spawn(async move {
            let answer = request.send(&target, TIMEOUT, None).await;
            Exchange { person, answer }
        }));
    }
    let mut exchanges = Vec::new();
    for visit in running {
        exchanges.extend(visit.await);
    }
    let mut counts = Visits::default();
    for exchange in &exchanges {
        let verdict = judge(
            set,
            Timing::Concurrent,
            &path,
            exchange,
            &exchanges,
            &state.site,
        );
        counts.foreign += u64::from(!verdict.foreign.is_empty());
        counts.missing += u64::from(verdict.missing.is_some());
    }
    counts
}
