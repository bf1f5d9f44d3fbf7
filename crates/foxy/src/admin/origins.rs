//! The state of each origin of a site, and the requests of sites, for `/stats`, `/metrics` and
//! `/readyz`.

use foxy_proxy::{Ailment, CACHED, CLASSES, HealthState, OriginState, SiteTotals};
use serde::{Deserialize, Serialize};

use super::State;

/// The state of one origin of a site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OriginLine {
    /// The name of the site.
    pub site: String,
    /// The URL of the origin.
    pub origin: String,
    /// `up`, `slow-start`, `ejected` (requests failed) or `down` (checks fail).
    pub standing: String,
    /// Number of requests under way at the origin.
    pub outstanding: u32,
    /// Number of requests that were sent to the origin.
    pub requests: u64,
    /// Number of requests that failed, or that the origin answered with a status of 5xx.
    pub failures: u64,
    /// Number of times that the origin was left out of the choice for a while, because requests had failed.
    pub ejections: u64,
    /// `fails`, `flaps` or `slow`, if the last requests show one of these faults.
    #[serde(default)]
    pub ailment: Option<String>,
    /// The last requests (at most 32): their number, and the number of those that failed.
    #[serde(default)]
    pub recently: (u32, u32),
    /// The reason for the last failure.
    #[serde(default)]
    pub reason: String,
    /// Time from a request to the head of its answer, averaged over about four requests, in seconds.
    #[serde(default)]
    pub first_byte_seconds: f64,
    /// Time for which requests have waited without any answer, in seconds.
    #[serde(default)]
    pub waiting_seconds: f64,
}

/// The requests of a site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteLine {
    /// The name of the site.
    pub site: String,
    /// Number of finished requests.
    pub requests: u64,
    /// Number of requests that were answered from the cache.
    pub hits: u64,
    /// Number of requests that were answered with a status of 5xx.
    pub errors: u64,
}

/// Returns the requests of each site and each mirror, in the order of the configuration.
pub(super) fn sites(state: &State) -> impl Iterator<Item = (&str, SiteTotals)> {
    let origins = state.origins.iter();
    let sites = origins.map(|origins| (origins.site(), origins.requests()));
    sites.chain(state.proxy.mirror_requests())
}

/// Returns the requests of each site and each mirror as lines for `/stats`.
pub(super) fn site_lines(state: &State) -> Vec<SiteLine> {
    let errors = CLASSES.iter().position(|class| *class == "5xx");
    let hits = CACHED.iter().position(|cached| *cached == "hit");
    let line = |(site, totals): (&str, SiteTotals)| SiteLine {
        site: site.to_owned(),
        requests: totals.iter().flatten().sum(),
        hits: hits.map_or(0, |hits| totals[hits].iter().sum()),
        errors: errors.map_or(0, |class| totals.iter().map(|of| of[class]).sum()),
    };
    sites(state).map(line).collect()
}

/// Returns all origins, each with its site.
pub(super) fn all(state: &State) -> impl Iterator<Item = (&str, OriginState)> {
    let now = state.clock.mono();
    state.origins.iter().flat_map(move |origins| {
        let states = origins.states(now).into_iter();
        states.map(|state| (origins.site(), state))
    })
}

/// Returns the states of all origins as lines for `/stats`.
pub(super) fn lines(state: &State) -> Vec<OriginLine> {
    let line = |(site, of): (&str, OriginState)| OriginLine {
        site: site.to_owned(),
        origin: of.origin,
        standing: of.health_state.as_str().to_owned(),
        outstanding: of.outstanding,
        requests: of.counts.requests,
        failures: of.counts.failures,
        ejections: of.counts.ejections,
        ailment: of.recently.ailment.map(|is| is.as_str().to_owned()),
        recently: (of.recently.requests, of.recently.failures),
        reason: of.recently.reason.to_owned(),
        first_byte_seconds: of.recently.first_byte.as_secs_f64(),
        waiting_seconds: of.recently.waiting.as_secs_f64(),
    };
    all(state).map(line).collect()
}

/// Returns the lines of `/readyz` about origins that get no requests or have a fault, and true if Foxy can
/// still answer. Foxy can answer if it has a forward proxy or a build cache, or if at least one site has an
/// origin that gets requests. The failure of one site does not make Foxy unready, because the other sites
/// continue.
pub(super) fn sick(state: &State) -> (String, bool) {
    let (mut text, mut left) = (String::new(), state.origins.len() < state.sites());
    // A build cache has no origins, so its list of states is empty. It answers without an origin.
    let now = state.clock.mono();
    left |= state
        .origins
        .iter()
        .any(|origins| origins.states(now).is_empty());
    for (site, of) in all(state) {
        left |= of.health_state.is_in();
        let why = match of.health_state {
            HealthState::Up | HealthState::SlowStart => {
                if let Some(how) = ailment(&of) {
                    text.push_str(&format!("\norigin {} of site {site} {how}", of.origin));
                }
                continue;
            }
            HealthState::Ejected => "requests fail",
            HealthState::Down => "checks fail",
        };
        text.push_str(&format!("\nwithout {} of site {site}: {why}", of.origin));
    }
    (text, left)
}

/// Returns the fault of an origin that still gets requests.
fn ailment(of: &OriginState) -> Option<String> {
    let recently = &of.recently;
    Some(match recently.ailment? {
        Ailment::Fails => format!("fails: {}", recently.reason),
        Ailment::Flaps => format!(
            "flaps: {} of the last {} requests failed, the last one by {}",
            recently.failures, recently.requests, recently.reason
        ),
        Ailment::Slow => {
            let time = recently.first_byte.max(recently.waiting);
            format!("is slow: answers begin after {:.1} s", time.as_secs_f64())
        }
    })
}
