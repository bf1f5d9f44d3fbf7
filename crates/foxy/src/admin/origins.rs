//! The state of each origin of a site, and the requests of sites, for `/stats`, `/metrics` and
//! `/readyz`.

use foxy_proxy::{Ailment, CACHED, CLASSES, OriginState, SiteTotals, Standing};
use serde::{Deserialize, Serialize};

use super::State;

/// One of the origins of a site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OriginLine {
    /// The site.
    pub site: String,
    /// Its URL.
    pub origin: String,
    /// `up`, `slow-start`, `ejected` (requests failed) or `down` (checks fail).
    pub standing: String,
    /// Requests under way there.
    pub outstanding: u32,
    /// Requests sent to it.
    pub requests: u64,
    /// Those that failed, or were answered with 5xx.
    pub failures: u64,
    /// How often it was left out because requests failed.
    pub ejections: u64,
    /// `fails`, `flaps` or `slow`, if its last requests say so.
    #[serde(default)]
    pub ailment: Option<String>,
    /// The last requests (at most 32), and those of them that failed.
    #[serde(default)]
    pub recently: (u32, u32),
    /// The reason of the last failure.
    #[serde(default)]
    pub reason: String,
    /// Time to an answer, averaged over about four, in seconds.
    #[serde(default)]
    pub first_byte_seconds: f64,
    /// Time for which requests wait and none is answered, in seconds.
    #[serde(default)]
    pub waiting_seconds: f64,
}

/// The requests of a site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteLine {
    /// The site.
    pub site: String,
    /// Finished requests.
    pub requests: u64,
    /// Those that were answered from the cache.
    pub hits: u64,
    /// Those that were answered with a status of 5xx.
    pub errors: u64,
}

/// The requests of each site and each mirror, in the order of the configuration.
pub(super) fn sites(state: &State) -> impl Iterator<Item = (&str, SiteTotals)> {
    let origins = state.origins.iter();
    let sites = origins.map(|origins| (origins.site(), origins.requests()));
    sites.chain(state.proxy.mirror_requests())
}

/// The same for `/stats`.
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

/// All origins of sites, with their sites.
pub(super) fn all(state: &State) -> impl Iterator<Item = (&str, OriginState)> {
    let now = state.clock.mono();
    state.origins.iter().flat_map(move |origins| {
        let states = origins.states(now).into_iter();
        states.map(|state| (origins.site(), state))
    })
}

/// The same for `/stats`.
pub(super) fn lines(state: &State) -> Vec<OriginLine> {
    let line = |(site, of): (&str, OriginState)| OriginLine {
        site: site.to_owned(),
        origin: of.origin,
        standing: of.standing.word().to_owned(),
        outstanding: of.outstanding,
        requests: of.counts.requests,
        failures: of.counts.failures,
        ejections: of.counts.ejections,
        ailment: of.recently.ailment.map(|is| is.word().to_owned()),
        recently: (of.recently.requests, of.recently.failures),
        reason: of.recently.reason.to_owned(),
        first_byte_seconds: of.recently.first_byte.as_secs_f64(),
        waiting_seconds: of.recently.waiting.as_secs_f64(),
    };
    all(state).map(line).collect()
}

/// Returns the lines of `/readyz` about origins that are left out or sick, and whether any site can
/// still ask one: a site alone does not make Foxy unready, because the others go on.
pub(super) fn sick(state: &State) -> (String, bool) {
    let (mut text, mut left) = (String::new(), state.origins.len() < state.sites());
    // A build cache has no origin, and answers by itself.
    let now = state.clock.mono();
    left |= state
        .origins
        .iter()
        .any(|origins| origins.states(now).is_empty());
    for (site, of) in all(state) {
        left |= of.standing.is_in();
        let why = match of.standing {
            Standing::Up | Standing::SlowStart => {
                if let Some(how) = ailment(&of) {
                    text.push_str(&format!("\norigin {} of site {site} {how}", of.origin));
                }
                continue;
            }
            Standing::Ejected => "requests fail",
            Standing::Down => "checks fail",
        };
        text.push_str(&format!("\nwithout {} of site {site}: {why}", of.origin));
    }
    (text, left)
}

/// How an origin that gets requests is sick.
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
