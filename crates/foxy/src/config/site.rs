//! The `[[site]]` sections.

use std::sync::Arc;

use foxy_proxy::rules::rules::Pattern;
use foxy_proxy::{Collapse, SiteNames};
use foxy_tls::ServerTls;

use super::build::SiteConfig;
use super::kind::Value;
use super::origin::{OriginEntry, OriginUrl};
use super::problem::Problem;
use super::raw::Section;
use super::values::Values;
use super::{certificates, local_responses, objects, origin_tls, origins, rewriting};

/// Reads one site; returns `None` if essential settings are missing or cannot be read.
pub(super) fn read(
    section: &Section,
    shared: Option<&ServerTls>,
    problems: &mut Vec<Problem>,
) -> Option<SiteConfig> {
    let place = section
        .values()
        .next()
        .map_or("[[site]]", |setting| &setting.place)
        .to_owned();
    let mut values = Values::read("site", Some(section), problems);
    let preserve_host = values.flag("preserve_host");
    let proxy_protocol = values.flag("proxy_protocol");
    let collapse = collapse(&mut values);
    let obey_request = values.given_flag("obey_request");
    let normalise = values.given_flag("normalise");
    let objects = objects::read(&mut values, section, &place);
    let all = values.origins("origin");
    let listen_tls = values.given_addresses("listen_tls");
    let tls = certificates::read(&values).unwrap_or_else(|text| {
        values.problem(Problem::conflict(&place, format!("site: {text}")));
        None
    });
    let listen = [values.given_addresses("listen"), listen_tls.clone()].concat();
    if listen.is_empty() && !section.contains_key("listen") {
        let text = "site.listen is missing; say where to listen, such as [\"*:8080\"]";
        values.problem(Problem::conflict(&place, text.to_owned()));
    }
    let names = names(&values);
    let given = given_name(&values);
    let origin = origin(
        &mut values,
        section,
        objects.is_some(),
        (&all, given.as_ref()),
        &place,
    )?;
    let origin_tls = origin_tls::read(&mut values, origin.secure, &place);
    let of_origin = || format!("{}:{}", origin.host.replace(':', "-"), origin.port);
    let name = given.unwrap_or_else(of_origin);
    let host = check_host(&names, preserve_host, &origin);
    let timeouts = local_responses::timeouts(&values);
    let tls_to = (&origin_tls, timeouts);
    let origins = origins::read(&mut values, (&name, host), all, tls_to, &place);
    let plain = section.contains_key("listen");
    let local_responses = local_responses::read(&mut values, (plain, &listen_tls), &place);
    let rewriting = rewriting::read(&values);
    let compress = rewriting::compress(&mut values);
    let allow_clients = match values.given("allow_clients") {
        Some(Value::Networks(networks)) => Some(networks.clone()),
        _ => None,
    };
    let allow_client_names = client_names(&values);
    Some(SiteConfig {
        name,
        listen,
        listen_tls,
        tls: tls.or_else(|| shared.cloned()),
        proxy_protocol,
        names,
        origin,
        origins,
        timeouts,
        local_responses,
        rewriting,
        compress,
        origin_tls,
        preserve_host,
        collapse,
        obey_request,
        normalise,
        allow_clients,
        allow_client_names,
        objects: objects.map(Arc::new),
    })
}

fn collapse(values: &mut Values<'_>) -> Collapse {
    match values.text("collapse").as_str() {
        "arrived" => Collapse::Arrived,
        _ => Collapse::Fresh,
    }
}

fn given_name(values: &Values<'_>) -> Option<String> {
    match values.given("name") {
        Some(Value::Text(name)) => Some(name.clone()),
        _ => None,
    }
}

/// Returns the first origin. For a build cache, returns its invented origin ([`objects::own_name`]). `None`:
/// the origin is missing or cannot be read.
fn origin(
    values: &mut Values<'_>,
    section: &Section,
    of_objects: bool,
    (all, name): (&[OriginEntry], Option<&String>),
    place: &str,
) -> Option<OriginUrl> {
    if of_objects {
        return Some(objects::own_name(name?));
    }
    if all.is_empty() && !section.contains_key("origin") {
        let text = "site.origin is missing; name the server, such as \"http://127.0.0.1:8080\"";
        values.problem(Problem::conflict(place, text.to_owned()));
    }
    Some(all.first()?.url.clone())
}

/// Returns the names in the certificates of clients that may use the site.
fn client_names(values: &Values<'_>) -> Option<Vec<Pattern>> {
    match values.given("allow_client_names") {
        Some(Value::Texts(names)) => Some(names.iter().map(|name| Pattern::new(name)).collect()),
        _ => None,
    }
}

/// Returns the hosts and paths of the site.
fn names(values: &Values<'_>) -> SiteNames {
    let texts = |name: &str| match values.given(name) {
        Some(Value::Texts(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    SiteNames {
        hosts: texts("hosts"),
        paths: texts("paths"),
    }
}

/// Returns the host for requests of health checks. Without `preserve_host`, the requests of clients have this
/// host too when they are forwarded.
fn check_host(names: &SiteNames, preserve_host: bool, origin: &OriginUrl) -> String {
    let mut hosts = names.hosts.iter();
    let named = hosts.find(|host| preserve_host && !host.starts_with('*'));
    named.map_or_else(|| origin.authority(), Clone::clone)
}
