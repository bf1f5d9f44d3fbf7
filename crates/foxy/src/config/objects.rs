//! Sites of `kind = "objects"`: build caches. Clients store the objects of a build cache themselves.

use std::fmt::Write;

use foxy_proxy::{LoginsConfig, Objects, Writers};

use super::build::SiteConfig;
use super::kind::Value;
use super::origin::OriginUrl;
use super::plan::human;
use super::problem::Problem;
use super::raw::Section;
use super::values::Values;

/// The kinds of sites.
pub(super) const KINDS: [&str; 2] = ["origin", "objects"];

/// Settings that only sites with an origin have.
const OF_ORIGINS: [&str; 22] = [
    "origin",
    "balance",
    "eject_after",
    "eject_for",
    "slow_start",
    "check",
    "check_every",
    "check_status",
    "origin_ca",
    "origin_name",
    "origin_certificate",
    "origin_key",
    "request_headers",
    "rewrite",
    "redirects",
    "compress",
    "connect_timeout",
    "first_byte_timeout",
    "progress_timeout",
    "preserve_host",
    "collapse",
    "obey_request",
];

/// Settings that only build caches have.
const OF_OBJECTS: [&str; 3] = ["write", "write_ac", "object_max_size"];

/// Reads the settings of a build cache; returns `None` for a site with an origin.
pub(super) fn read(values: &mut Values<'_>, section: &Section, place: &str) -> Option<Objects> {
    let kind = values.text("kind");
    let size_max = values.size("object_max_size");
    let (wrong, mend) = match kind == "objects" {
        true => (&OF_ORIGINS[..], "which has no origin; take it out"),
        false => (
            &OF_OBJECTS[..],
            "which has an origin; add kind = \"objects\"",
        ),
    };
    for name in wrong.iter().filter(|name| section.contains_key(**name)) {
        let text = format!("site.{name} does not go with a site of kind = \"{kind}\", {mend}");
        values.problem(Problem::conflict(place, text));
    }
    if kind != "objects" {
        return None;
    }
    let objects = Objects {
        size_max,
        writers: writers(values, "write"),
        action_writers: writers(values, "write_ac"),
    };
    if !section.contains_key("name") {
        let text = "site.name is missing; a site of kind = \"objects\" has no origin that names it";
        values.problem(Problem::conflict(place, text.to_owned()));
    }
    if objects.writers.is_nobody() && objects.action_writers.is_nobody() {
        let text = "nobody may store objects; name users in site.write or site.write_ac";
        values.problem(Problem::conflict(place, text.to_owned()));
    }
    Some(objects)
}

/// Reads a list of writers: `*`, users, and groups after `@`.
fn writers(values: &Values<'_>, name: &str) -> Writers {
    let mut writers = Writers::default();
    let texts = match values.given(name) {
        Some(Value::Texts(texts)) => &texts[..],
        _ => &[],
    };
    for text in texts {
        match (text.as_str(), text.strip_prefix('@')) {
            ("*", _) => writers.all = true,
            (_, Some(group)) => writers.groups.push(group.to_owned()),
            (user, None) => writers.users.push(user.to_owned()),
        }
    }
    writers
}

/// Returns an invented origin for a build cache, which has no real origin. The keys of its objects contain
/// the host of this invented origin.
pub(super) fn own_name(name: &str) -> OriginUrl {
    OriginUrl {
        secure: false,
        host: name.to_ascii_lowercase().replace('_', "-"),
        port: 80,
    }
}

/// Finds build caches where no user can log in.
pub(super) fn check(
    logins: Option<&LoginsConfig>,
    sites: &[SiteConfig],
    problems: &mut Vec<Problem>,
) {
    for site in sites.iter().filter(|site| site.objects.is_some()) {
        let shown = site.tls.as_ref().is_some_and(|tls| tls.clients().is_some());
        let able = logins.is_some_and(|logins| shown || logins.at.contains(&site.name));
        if !able {
            let text = format!(
                "nobody can log in at the site `{0}`, so nobody could store objects there; add [login] with a token_file or password_file and at = [\"{0}\"]",
                site.name
            );
            problems.push(Problem::conflict("site.write", text));
        }
    }
}

/// Returns the line of `foxy check` about a build cache.
pub(super) fn line(objects: &Objects) -> String {
    let mut text = String::new();
    let words = |writers: &Writers| {
        let all = writers.all.then(|| "everybody who logs in".to_owned());
        let groups = writers.groups.iter().map(|group| format!("@{group}"));
        let words: Vec<_> = all
            .into_iter()
            .chain(writers.users.iter().cloned())
            .chain(groups)
            .collect();
        match words.is_empty() {
            true => "nobody".to_owned(),
            false => words.join(", "),
        }
    };
    let _ = writeln!(
        text,
        "               objects up to {}, stored by {}; results of actions (ac) by {}",
        human(objects.size_max),
        words(&objects.writers),
        words(&objects.action_writers)
    );
    text
}
