//! The state of each origin of sites with several, for `/stats`, `/metrics` and `/readyz`.

use foxy_proxy::{OriginState, Standing};
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
}

/// All origins of sites that have several, with their sites.
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
    };
    all(state).map(line).collect()
}

/// Returns the lines of `/readyz` about origins that are left out, and whether any site can still
/// ask one: a site alone does not make Foxy unready, because the others go on.
pub(super) fn sick(state: &State) -> (String, bool) {
    let (mut text, mut left) = (String::new(), state.origins.len() < state.sites());
    for (site, of) in all(state) {
        left |= of.standing.is_in();
        let why = match of.standing {
            Standing::Up | Standing::SlowStart => continue,
            Standing::Ejected => "requests fail",
            Standing::Down => "checks fail",
        };
        text.push_str(&format!("\nwithout {} of site {site}: {why}", of.origin));
    }
    (text, left)
}
