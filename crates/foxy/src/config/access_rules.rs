//! The `[[access_rule]]` sections, and the gatekeeper, which checks each request against access rules, users
//! and limits, and chooses its parents. The gatekeeper is made from these sections, from `[login]`, and from
//! the sections `[[rate]]` and `[[parent]]`.

use std::sync::Arc;

use foxy_proxy::Gatekeeper;
use foxy_proxy::access_rules::{Action, HostPattern, RULES_MAX, Rule, RuleSet, Scheme, Span};
use foxy_proxy::rules::rules::Pattern;

use super::build::SiteConfig;
use super::kind::Value;
use super::problem::Problem;
use super::rates;
use super::raw::{RawConfig, Section};
use super::values::Values;
use super::{logins, objects, parents};

/// Returns the gatekeeper; `None` if there are no rules, no users, no limits and no parents. `names` contains
/// the names of sites and mirrors. It also contains `forward` if there is a forward proxy.
pub(super) fn read(
    raw: &RawConfig,
    (sites, names): (&[SiteConfig], &[String]),
    problems: &mut Vec<Problem>,
) -> Option<Arc<Gatekeeper>> {
    let sections = raw
        .repeated
        .get("access_rule")
        .map_or(&[][..], Vec::as_slice);
    let mut rules: Vec<Rule> = Vec::new();
    for (i, section) in sections.iter().enumerate() {
        let rule = rule(section, i, problems);
        if let Some(unknown) = rule.sites.iter().find(|name| !names.contains(name)) {
            let text = format!("access_rule.site = \"{unknown}\": there is no such site");
            problems.push(Problem::conflict(&place(section, "site", i), text));
        }
        if rules.iter().any(|other| other.name == rule.name) {
            let text = format!(
                "the name `{}` is taken; give the rule another name",
                rule.name
            );
            problems.push(Problem::conflict(&place(section, "name", i), text));
        }
        rules.push(rule);
    }
    if rules.len() > RULES_MAX {
        let text = format!(
            "there are {} access rules; at most {RULES_MAX} are taken",
            rules.len()
        );
        problems.push(Problem::conflict("access_rule", text));
    }
    let logins = logins::read(raw.single.get("login"), names, problems);
    objects::check(logins.as_ref(), sites, problems);
    let certificates = sites.iter().any(|site| site.tls.is_some());
    let named = |rule: &&Rule| !rule.users.is_empty() || !rule.groups.is_empty();
    if logins.is_none()
        && !certificates
        && let Some(rule) = rules.iter().find(named)
    {
        let text = format!(
            "access_rule `{}` is for users, and nobody can log in; add [login] with a password_file, token_file or helper",
            rule.name
        );
        problems.push(Problem::conflict("access_rule.user", text));
    }
    let zone = zone(raw.single.get("access"), problems);
    let parents = parents::read(raw, problems);
    for rule in &rules {
        if let Action::Parent(name) = &rule.action
            && !parents.iter().any(|group| group.name == *name)
        {
            let text = format!("access_rule.parent = \"{name}\": there is no such [[parent]]");
            problems.push(Problem::conflict("access_rule.parent", text));
        }
    }
    let rates = raw.repeated.get("rate").map_or(&[][..], Vec::as_slice);
    let limits = rates::read(rates, names, problems);
    let nothing = rules.is_empty() && logins.is_none();
    if nothing && limits.is_empty() && parents.is_empty() {
        return None;
    }
    let gate = Gatekeeper::new(RuleSet::new(rules), zone);
    let gate = gate.with_logins(logins).with_limits(limits);
    let gate = gate.with_parents(parents);
    Some(Arc::new(gate))
}

fn place(section: &Section, name: &str, i: usize) -> String {
    let setting = section.get(name);
    setting.map_or_else(
        || format!("[[access_rule]] {}", i + 1),
        |setting| setting.place.clone(),
    )
}

fn zone(access: Option<&Section>, problems: &mut Vec<Problem>) -> jiff::tz::TimeZone {
    let values = Values::read("access", access, &mut Vec::new())
        .given("time_zone")
        .cloned();
    let Some(Value::Text(name)) = values else {
        return jiff::tz::TimeZone::system();
    };
    jiff::tz::TimeZone::get(&name).unwrap_or_else(|_| {
        let text = format!("access.time_zone = \"{name}\": this machine knows no such time zone");
        problems.push(Problem::conflict("access.time_zone", text));
        jiff::tz::TimeZone::UTC
    })
}

/// Returns the hosts that `/proxy.pac` excludes from the proxy. Browsers connect to these hosts directly.
/// Returns `None` if Foxy does not serve that file.
pub(super) fn pac(access: Option<&Section>) -> Option<Vec<HostPattern>> {
    let mut problems = Vec::new();
    let mut values = Values::read("access", access, &mut problems);
    let wanted = values.flag("pac");
    let direct = values.texts("pac_direct");
    wanted.then(|| direct.iter().map(|host| HostPattern::new(host)).collect())
}

fn rule(section: &Section, i: usize, problems: &mut Vec<Problem>) -> Rule {
    let values = Values::read("access_rule", Some(section), problems);
    let texts = |name: &str| match values.given(name) {
        Some(Value::Texts(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let text = |name: &str| match values.given(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let networks = |name: &str| match values.given(name) {
        Some(Value::Networks(networks)) => networks.clone(),
        _ => Vec::new(),
    };
    let scheme = |word: &String| {
        Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.as_str() == word)
    };
    Rule {
        name: text("name").unwrap_or_else(|| format!("access-{}", i + 1)),
        clients: networks("client"),
        users: texts("user"),
        groups: texts("group"),
        hosts: texts("host")
            .iter()
            .map(|host| HostPattern::new(host))
            .collect(),
        addresses: networks("address"),
        ports: match values.given("port") {
            Some(Value::PortRanges(ports)) => ports.clone(),
            _ => Vec::new(),
        },
        schemes: texts("scheme").iter().filter_map(scheme).collect(),
        methods: texts("method"),
        paths: texts("path")
            .iter()
            .map(|path| Pattern::new(path))
            .collect(),
        sites: texts("site"),
        times: texts("time")
            .iter()
            .filter_map(|time| Span::parse(time).ok())
            .collect(),
        action: match text("action").as_deref() {
            Some("deny") => Action::Deny,
            Some("tunnel") => Action::Tunnel,
            Some("bypass") => Action::Bypass,
            Some("parent") => Action::Parent(text("parent").unwrap_or_default()),
            _ => Action::Allow,
        },
        text: text("text").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
