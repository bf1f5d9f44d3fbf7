//! The rules by which a mirror changes the fields and paths of requests to its upstream, and the fields of
//! answers to clients.

use foxy_base::rule;
use foxy_http_rules::rewrite::{Direction, FieldRules, PathRules, Rewriting};
use foxy_mirror::{Class, Kind, Mirror, MirrorTarget};

use super::Login;

/// Fields of a client's request that are sent to the upstream, in addition to the fields that Foxy itself
/// sets. All other fields are left out, because the answers are for all clients. If other fields were sent,
/// registries could identify users. And registries could write text from these fields into documents, which
/// other users get.
const FROM_CLIENTS: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-type",
    "pragma",
    "user-agent",
];

/// Returns the rules for requests to one server of a mirror and for its answers. The client's fields that
/// name a user or select a different form of the answer are not sent. The only exception is the client's
/// credential, which is sent if `own` is true. If `own` is false, the mirror's credential is sent.
/// Credentials are sent only to the upstream's own scheme, host and port. For container images, the rules
/// send no credential of the client.
pub(super) fn rewriting(
    mirror: &Mirror,
    target: MirrorTarget,
    (class, form): (&Class, Option<usize>),
    (login, own): (Option<&Login>, bool),
) -> Option<Rewriting> {
    let mut changes = Vec::new();
    let servers = mirror.servers();
    let server = servers.get(target.server)?;
    let trusted = server.is_server_of(&servers[0]);
    if !(own && trusted) || mirror.images {
        changes.push("remove Authorization".to_owned());
        if let Some(login) = login.filter(|_| trusted) {
            changes.push(format!("set Authorization: {}", login.header()));
        }
    }
    if class.kind != Kind::Pass {
        changes.push("remove Accept-Language".to_owned());
        let coding = if class.rewrite.is_some() || mirror.screens(target.class).is_some() {
            "gzip"
        } else {
            "identity"
        };
        changes.push(format!("set Accept-Encoding: {coding}"));
    }
    let accept = form.and_then(|form| class.accept.get(form));
    let accept = accept.map(|(_, accept)| &accept[..]);
    let screens = mirror.screens(target.class);
    // Rules about the age of versions need dates, and only one form of a document contains them.
    let dated = screens.filter(|rules| rules.min_age.is_some());
    let accept = dated.and_then(|rules| rules.listing.dated()).or(accept);
    changes.extend(accept.map(|accept| format!("set Accept: {accept}")));
    let (from, to) = mirror.path_prefixes(target.server);
    let path = match mirror.images {
        true => None,
        false => Some(format!("prefix {from} {to}/")),
    };
    let requests = FieldRules::parse(&changes, Direction::Request).ok()?;
    Some(Rewriting {
        requests: rule!(
            "mirror: a registry gets no field by which it could know a user",
            requests.after_only(FROM_CLIENTS),
            requests
        ),
        answers: answers(class, own)?,
        paths: PathRules::parse(path.as_slice()).ok()?,
        ..Rewriting::default()
    })
}

/// Returns the rules for the answers to clients. Caches between Foxy and the client must not share answers
/// that were fetched with a credential of the client.
fn answers(class: &Class, own: bool) -> Option<FieldRules> {
    let changes = match (own, class.kind) {
        (false, _) => return Some(FieldRules::default()),
        // This change adds a directive and keeps the upstream's own directives, because they may be stricter.
        (true, Kind::Pass) => "add Cache-Control: private".to_owned(),
        (true, _) => "set Cache-Control: private".to_owned(),
    };
    FieldRules::parse(&[changes], Direction::Answer).ok()
}
