//! The `[[rule]]` sections, converted from values to the rules of the proxy.

use std::time::Duration;

use foxy_http1::Escapes;
use foxy_proxy::rules::rules::{Bypass, Pattern, QueryRule, RULES_MAX, Rule, Which};
use foxy_proxy::rules::{Config, RuleSet};

use super::build::SiteConfig;
use super::kind::Value;
use super::problem::Problem;
use super::raw::Section;
use super::suggest::nearest;
use super::values::Values;

/// Settings on which the rules depend, but which are outside of the `[[rule]]` sections.
pub(super) struct Place<'a> {
    /// The settings of `[cache]`.
    pub(super) cache: &'a Config,
    pub(super) sites: &'a [SiteConfig],
    /// Names of mirrors.
    pub(super) mirrors: &'a [String],
    /// True if there is a forward proxy.
    pub(super) forward: bool,
    /// The partitions that keep paths as received, not in normal form.
    pub(super) as_received: &'a [String],
}

/// Reads all rules.
pub(super) fn rules(
    sections: &[Section],
    stand: &Place<'_>,
    problems: &mut Vec<Problem>,
) -> RuleSet {
    let mut rules: Vec<Rule> = Vec::new();
    for (i, section) in sections.iter().enumerate() {
        let place = place(section, i);
        let mut rule = rule(section, i, stand.cache, problems);
        check_sites(&rule, section, stand, problems);
        let received = |site: &String| stand.as_received.contains(site);
        if rule.sites.is_empty() || !rule.sites.iter().all(received) {
            normal_paths(&mut rule);
        }
        if rules.iter().any(|other| other.name == rule.name) {
            let text = format!(
                "the name `{}` is taken; give the rule another name",
                rule.name
            );
            problems.push(Problem::conflict(&at(section, "name", &place), text));
        }
        if let Some(first) = rules.iter().find(|other| covers(other, &rule)) {
            let text = format!(
                "rule `{}` never decides, because `{}` before it fits the same and more; put it before that one",
                rule.name, first.name
            );
            problems.push(Problem::conflict(&place, text));
        }
        rules.push(rule);
    }
    if rules.len() > RULES_MAX {
        let text = format!(
            "there are {} rules; at most {RULES_MAX} are taken",
            rules.len()
        );
        problems.push(Problem::conflict("rule", text));
    }
    RuleSet::new(rules)
}

/// Converts the paths of a rule to the normal form that paths in keys have, so that the two can be compared.
fn normal_paths(rule: &mut Rule) {
    for path in &mut rule.paths {
        let mut normal = Vec::new();
        Escapes::Normal.write(path.as_bytes(), &mut normal);
        if let Ok(normal) = String::from_utf8(normal) {
            *path = Pattern::new(&normal);
        }
    }
}

/// Returns the place where the first setting of the section was given.
fn place(section: &Section, i: usize) -> String {
    let first = section
        .values()
        .map(|setting| &setting.place)
        .min_by_key(|place| {
            let line = place
                .rsplit_once(':')
                .and_then(|(_, n)| n.parse::<u32>().ok());
            line.unwrap_or(u32::MAX)
        });
    first.map_or_else(|| format!("[[rule]] {}", i + 1), Clone::clone)
}

/// Returns the place where one setting was given. If the section does not have the setting, returns `place`.
fn at(section: &Section, name: &str, place: &str) -> String {
    let setting = section.get(name);
    setting.map_or_else(|| place.to_owned(), |setting| setting.place.clone())
}

/// True if `first` applies to every request to which `later` applies. This function recognises only simple
/// cases, and returns false in all others.
fn covers(first: &Rule, later: &Rule) -> bool {
    let within = |first: &[Pattern], later: &[Pattern]| {
        let fits = |p: &Pattern| first.iter().any(|f| f.fits(p.as_bytes()));
        first.is_empty() || !later.is_empty() && later.iter().all(fits)
    };
    let sites = first.sites.is_empty()
        || !later.sites.is_empty() && later.sites.iter().all(|s| first.sites.contains(s));
    sites && within(&first.hosts, &later.hosts) && within(&first.paths, &later.paths)
}

fn check_sites(rule: &Rule, section: &Section, stand: &Place<'_>, problems: &mut Vec<Problem>) {
    let mut known: Vec<String> = stand.sites.iter().map(|site| site.name.clone()).collect();
    known.extend_from_slice(stand.mirrors);
    known.extend(stand.forward.then(|| "forward".to_owned()));
    for site in rule.sites.iter().filter(|site| !known.contains(site)) {
        let hint = nearest(site, &known).map_or_else(
            || format!("there are: {}", known.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        let text = format!("rule.site = \"{site}\": there is no such site; {hint}");
        problems.push(Problem::conflict(&at(section, "site", "rule.site"), text));
    }
}

fn rule(section: &Section, i: usize, cache: &Config, problems: &mut Vec<Problem>) -> Rule {
    let place = place(section, i);
    let mut values = Values::read("rule", Some(section), problems);
    let both = section.contains_key("query_keep") && section.contains_key("query_ignore");
    if both {
        let text = "rule.query_keep and rule.query_ignore say two things; take one out";
        values.problem(Problem::conflict(
            &at(section, "query_keep", &place),
            text.to_owned(),
        ));
    }
    let mut config = cache.clone();
    lifetimes(&values, &mut config);
    key_and_sizes(&values, &mut config);
    if let (Some(min), Some(max)) = (config.ttl_min_s, config.ttl_max_s)
        && min > max
    {
        let text = format!(
            "rule.ttl_min ({min} s) is over ttl_max ({max} s); lower one or raise the other"
        );
        values.problem(Problem::conflict(&at(section, "ttl_min", &place), text));
    }
    if config.store_bytes_min > config.store_bytes_max {
        let text = "rule.min_size is over rule.max_size: nothing would be stored; use `bypass` if that is meant";
        values.problem(Problem::conflict(
            &at(section, "min_size", &place),
            text.to_owned(),
        ));
    }
    Rule {
        name: match values.given("name") {
            Some(Value::Text(name)) => name.clone(),
            _ => format!("rule-{}", i + 1),
        },
        sites: texts(&values, "site"),
        hosts: patterns(&values, "host"),
        paths: patterns(&values, "path"),
        query: QueryRule {
            which: match (
                patterns(&values, "query_keep"),
                patterns(&values, "query_ignore"),
            ) {
                (keep, _) if !keep.is_empty() => Which::Keep(keep),
                (_, ignore) if !ignore.is_empty() => Which::Ignore(ignore),
                _ => Which::All,
            },
            sort: values.flag_or("query_sort", false),
        },
        bypass: Bypass {
            always: values.flag_or("bypass", false),
            fields: texts(&values, "bypass_headers")
                .iter()
                .map(|text| field(text))
                .collect(),
            cookies: patterns(&values, "bypass_cookies"),
        },
        config,
    }
}

/// Reads `NAME` or `NAME: VALUE`.
fn field(text: &str) -> (String, Option<Pattern>) {
    match text.split_once(':') {
        Some((name, value)) => (name.trim().to_owned(), Some(Pattern::new(value.trim()))),
        None => (text.trim().to_owned(), None),
    }
}

fn lifetimes(values: &Values<'_>, config: &mut Config) {
    for (name, setting) in [
        ("default_ttl", &mut config.default_ttl_s),
        ("negative_ttl", &mut config.negative_ttl_s),
        ("server_error_ttl", &mut config.server_error_ttl_s),
        ("ttl_min", &mut config.ttl_min_s),
        ("ttl_max", &mut config.ttl_max_s),
        ("stale_if_error", &mut config.stale_if_error_s),
        (
            "stale_while_revalidate",
            &mut config.stale_while_revalidate_s,
        ),
    ] {
        if let Some(Value::Duration(time)) = values.given(name) {
            *setting = time.map(seconds);
        }
    }
    for (name, setting) in [
        ("heuristic_max", &mut config.heuristic_max_s),
        ("stale_on_disconnect", &mut config.stale_on_disconnect_s),
    ] {
        if let Some(Value::Duration(Some(time))) = values.given(name) {
            *setting = seconds(*time);
        }
    }
    if let Some(Value::Count(percent)) = values.given("heuristic_percent") {
        config.heuristic_percent = u8::try_from(*percent).unwrap_or(100);
    }
    for (name, setting) in [
        ("obey_request", &mut config.obey_request),
        ("store_set_cookie", &mut config.store_set_cookie),
    ] {
        *setting = values.flag_or(name, *setting);
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

fn key_and_sizes(values: &Values<'_>, config: &mut Config) {
    let headers = texts(values, "key_headers");
    let cookies = texts(values, "key_cookies");
    let headers = headers.iter().map(|name| name.to_ascii_lowercase());
    let cookies = cookies.iter().map(|name| format!("cookie:{name}"));
    config.key_parts = headers.chain(cookies).collect();
    config.strip_set_cookie = values.flag_or("strip_set_cookie", false);
    let size = |name| match values.given(name) {
        Some(Value::Size(bytes)) => Some(*bytes),
        _ => None,
    };
    config.store_bytes_min = size("min_size").unwrap_or(config.store_bytes_min);
    config.store_bytes_max = size("max_size").unwrap_or(config.store_bytes_max);
}

fn texts(values: &Values<'_>, name: &str) -> Vec<String> {
    match values.given(name) {
        Some(Value::Texts(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

fn patterns(values: &Values<'_>, name: &str) -> Vec<Pattern> {
    let texts = texts(values, name);
    texts.iter().map(|text| Pattern::new(text)).collect()
}

#[cfg(test)]
mod tests;
