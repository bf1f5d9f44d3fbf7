//! The origins of a site: the settings of their use, and the lines of `foxy check` about them.

use std::fmt::Write;

use foxy_proxy::{
    Balance, Check, HealthRules, ORIGINS_MAX, Origin, OriginTimeouts, Origins, OriginsConfig,
};
use foxy_tls::OriginTls;

use super::build::Config;
use super::kind::Value;
use super::origin::OriginEntry;
use super::problem::Problem;
use super::values::Values;

/// Reads the settings of a site's origins. Requests of health checks contain the host `host`.
pub(super) fn read(
    values: &mut Values<'_>,
    (site, host): (&str, String),
    all: Vec<OriginEntry>,
    (tls, timeouts): (&Option<OriginTls>, OriginTimeouts),
    place: &str,
) -> OriginsConfig {
    let (every, status) = (
        values.duration("check_every"),
        values.usize_of("check_status"),
    );
    let health = HealthRules {
        errors: u32::try_from(values.usize_of("eject_after")).unwrap_or(u32::MAX),
        out: values.duration("eject_for"),
        slow_start: values.duration("slow_start"),
        ..HealthRules::default()
    };
    let balance = match &values.text("balance")[..] {
        "round_robin" => Balance::RoundRobin,
        "hash" => Balance::Hash,
        _ => Balance::LeastOutstanding,
    };
    let check = match values.given("check") {
        Some(Value::Text(path)) => Some(Check {
            path: path.clone(),
            host,
            every,
            status: u16::try_from(status).unwrap_or(200),
        }),
        _ => None,
    };
    if let Some(wrong) = wrong(&all) {
        values.problem(Problem::conflict(place, wrong));
    }
    let origin = |entry: OriginEntry| Origin {
        name: entry.url.to_string(),
        host: entry.url.host,
        port: entry.url.port,
        weight: entry.weight,
        connections: entry.connections,
    };
    OriginsConfig {
        site: site.to_owned(),
        origins: all.into_iter().map(origin).collect(),
        tls: tls.clone(),
        timeouts,
        balance,
        health,
        check,
    }
}

/// Returns the first mistake in the list.
fn wrong(all: &[OriginEntry]) -> Option<String> {
    if all.len() > ORIGINS_MAX {
        return Some(format!(
            "site.origin has {} entries; at most {ORIGINS_MAX} are taken",
            all.len()
        ));
    }
    let first = all.first()?;
    if all.iter().any(|entry| entry.url.secure != first.url.secure) {
        return Some("site.origin has http:// and https://; all have the same scheme".to_owned());
    }
    let mut entries = all.iter().enumerate();
    let (_, twice) = entries.find(|(i, entry)| all[..*i].iter().any(|e| e.url == entry.url))?;
    Some(format!(
        "site.origin has {} twice; give it a weight instead",
        twice.url
    ))
}

impl Config {
    /// Returns the origins of each site. At first, all origins count as working.
    pub(crate) fn origins(&self) -> Vec<Origins> {
        let sites = self.sites.iter().map(|site| site.origins.clone());
        sites
            .map(|origins| Origins::new(origins, self.workers))
            .collect()
    }

    /// Returns the origins after a reload. The origins of a site keep their state if the settings of the site
    /// are unchanged. The statistics about a site's requests continue in any case.
    pub(crate) fn origins_after(&self, old: &Self, before: &[Origins]) -> Vec<Origins> {
        let kept = |new: &OriginsConfig| {
            let known = before.iter().find(|origins| origins.site() == new.site)?;
            let mut sites = old.sites.iter().map(|site| &site.origins);
            let same = sites
                .find(|old| old.site == new.site)
                .is_some_and(|old| old.tls == new.tls && format!("{old:?}") == format!("{new:?}"));
            Some(match same {
                true => known.clone(),
                false => known.renewed(new.clone()),
            })
        };
        let sites = self.sites.iter().map(|site| &site.origins);
        sites
            .map(|new| kept(new).unwrap_or_else(|| Origins::new(new.clone(), self.workers)))
            .collect()
    }
}

/// Returns the lines about origins for `foxy check`. A single origin without a limit has no line here,
/// because the line of the site names it.
pub(super) fn lines(origins: &OriginsConfig) -> String {
    let mut text = String::new();
    let alone = matches!(&origins.origins[..], [only] if only.connections.is_none());
    for origin in origins.origins.iter().filter(|_| !alone) {
        // Writing to a string cannot fail.
        let _ = write!(text, "               origin {}", origin.name);
        if origin.weight != 1 {
            let _ = write!(text, ", weight {}", origin.weight);
        }
        if let Some(connections) = origin.connections {
            let _ = write!(text, ", {connections} connections");
        }
        text.push('\n');
    }
    if let Some(check) = &origins.check {
        let seconds = check.every.as_secs();
        let _ = writeln!(
            text,
            "               checked by {} every {seconds} s for status {}",
            check.path, check.status
        );
    }
    text
}
