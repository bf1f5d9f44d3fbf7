//! The request for the origin: the client's end-to-end fields, and the fields that Foxy adds.

use std::net::IpAddr;

use foxy_base::{Fields, eq_name, rule, values};
use foxy_http_rules::rewrite::Rewriting;
use foxy_http1::{Authority, BodyFraming, Method, RequestHead, Scheme, Upgrade, Version, write};

use crate::http::client_identity::{ClientIdentity, begins};
use crate::http::rewriting::Changed;
use crate::state::local::Local;
use crate::{ForwardedMode, HeaderConfig, Proxy, Role, TOKEN_FIELD};

/// The differences between the request for the origin and the client's request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changes<'a> {
    /// True if the client's conditions are left out.
    pub(crate) drop_conditions: bool,
    /// True if Range and If-Range are left out.
    pub(crate) drop_range: bool,
    /// True if the request uses GET and has no body, whatever the client's method is.
    pub(crate) as_get: bool,
    /// Fields to add.
    pub(crate) add: &'a [(&'a str, &'a [u8])],
}

/// The treatment of the fields by which proxies tell the origin about the client and its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forwarding {
    x_forwarded_for: ForwardedMode,
    forwarded: ForwardedMode,
    /// True if other fields by which proxies describe the client's request are removed (see
    /// [`tells_of_the_client`]). A site's origin trusts these fields, so they must not come from untrusted
    /// clients.
    drop_others: bool,
    /// True if `Authorization` contains a login for Foxy itself, which the origin must not receive.
    drop_login: bool,
}

impl Forwarding {
    /// Returns the treatment for requests of a listener. `trusted` is true if the peer is a trusted proxy.
    pub(crate) fn of(config: &HeaderConfig, role: &Role, trusted: bool) -> Self {
        Self::new(config, matches!(role, Role::Site(_)) && !trusted)
    }

    /// Returns the treatment of the fields of a peer. `stranger` is true if the peer sends requests to a site
    /// that does not trust the peer.
    fn new(config: &HeaderConfig, stranger: bool) -> Self {
        let doubted = rule!(
            "via: a site does not get what a stranger says about its client",
            stranger,
            false
        );
        let (x_forwarded_for, forwarded) = match doubted {
            true => (ForwardedMode::Replace, ForwardedMode::Remove),
            false => (ForwardedMode::Append, ForwardedMode::Transparent),
        };
        Self {
            x_forwarded_for: config.x_forwarded_for.unwrap_or(x_forwarded_for),
            forwarded: config.forwarded.unwrap_or(forwarded),
            drop_others: doubted,
            drop_login: false,
        }
    }
}

/// The facts that Foxy needs as a hop (one of the proxies on the way of the request): its names, its
/// treatment of fields, and the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop<'a> {
    pub(crate) instance: &'a str,
    pub(crate) forwarding: Forwarding,
    pub(crate) identity: &'a ClientIdentity,
    /// Changes that the site makes to the fields.
    pub(crate) changed: Option<Changed<'a>>,
    /// The name by which origins may address this cache in Surrogate-Control.
    pub(crate) surrogate: Option<&'a str>,
}

impl<'a> Hop<'a> {
    /// Returns the hop for a client's request.
    pub(crate) fn of(local: &'a Local, role: &'a Role, identity: &'a ClientIdentity) -> Self {
        let proxy = &local.proxy;
        let forwarding = Forwarding {
            drop_login: identity.login_is_spent(),
            ..Forwarding::of(&proxy.config.headers, role, identity.trusted)
        };
        let changed = Changed::of(role.rewriting(), proxy, local.index, role.partition());
        Self::through(proxy, forwarding, identity, changed)
    }

    /// Returns the hop for a request to this partition that no client has sent.
    pub(crate) fn imagined(
        proxy: &'a Proxy,
        (partition, rewriting): (&'a str, Option<&'a Rewriting>),
        identity: &'a ClientIdentity,
    ) -> Self {
        let site = partition != Role::Forward.partition();
        let forwarding = Forwarding::new(&proxy.config.headers, site);
        let changed = Changed::of(rewriting, proxy, 0, partition);
        Self::through(proxy, forwarding, identity, changed)
    }

    fn through(
        proxy: &'a Proxy,
        forwarding: Forwarding,
        identity: &'a ClientIdentity,
        changed: Option<Changed<'a>>,
    ) -> Self {
        let rules = &proxy.config.rules;
        let surrogate = rules.surrogate_control;
        Self {
            instance: &proxy.instance,
            forwarding,
            identity,
            changed,
            surrogate: surrogate.then_some(&rules.surrogate_token),
        }
    }
}

/// Destination of a request: the origin's authority, the scheme, and path and query.
pub(crate) type To<'a> = (Authority<'a>, Scheme, &'a [u8]);

/// Writes the head of the request for the origin.
pub(crate) fn request(
    out: &mut Vec<u8>,
    head: &RequestHead<'_>,
    (authority, scheme, target): To<'_>,
    hop: &Hop<'_>,
    changes: &Changes<'_>,
) {
    let method = if changes.as_get {
        b"GET"
    } else {
        head.method_text()
    };
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    authority.write_normalised(scheme, out);
    out.extend_from_slice(b"\r\n");
    for (name, value) in head.forward_fields() {
        if passes(name, &hop.forwarding, changes) {
            write::field(out, name, value);
        }
    }
    for (name, value) in changes.add {
        write::field(out, name.as_bytes(), value);
    }
    own_fields(out, head, (head.method(), head.version()), hop);
    if !changes.as_get {
        body_fields(out, head);
    }
    write::end(out);
    if let Some(changed) = &hop.changed {
        changed.apply(out, hop.identity, head);
    }
}

/// Returns true if this field of the client is passed on unchanged. No other function decides this. (Fields
/// that `Connection` names are removed earlier.)
pub(crate) fn passes(name: &[u8], forwarding: &Forwarding, changes: &Changes<'_>) -> bool {
    let is = |known: &str| eq_name(name, known.as_bytes());
    match name.len() {
        6 if is("expect") => false,
        12 if is("max-forwards") => false,
        12 if is(TOKEN_FIELD) => rule!("via: the admin credential is not sent on", false, true),
        13 if is("authorization") => rule!(
            "via: a login for Foxy is not sent on",
            !forwarding.drop_login,
            true
        ),
        14 if is("content-length") => false,
        5 if is("range") => !changes.drop_range,
        8 if is("if-range") => !changes.drop_range && !changes.drop_conditions,
        9 if is("forwarded") => forwarding.forwarded == ForwardedMode::Transparent,
        15 if is("x-forwarded-for") => forwarding.x_forwarded_for == ForwardedMode::Transparent,
        _ if forwarding.drop_others && tells_of_the_client(name) => false,
        _ => !(changes.drop_conditions && foxy_http_rules::conditional::is_condition(name)),
    }
}

/// Returns true for fields by which proxies describe the client's request, and which applications trust.
fn tells_of_the_client(name: &[u8]) -> bool {
    const OTHERS: [&str; 4] = [
        "X-Real-IP",
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Original-Host",
    ];
    // The test of the first letter excludes most names.
    matches!(name.first(), Some(b'x' | b'X'))
        && (begins(name, b"x-forwarded-")
            || OTHERS.iter().any(|known| eq_name(name, known.as_bytes())))
}

/// Names of the fields that Foxy writes or may write, and of the fields that the URL determines.
const OWN: &[&str] = &[
    "forwarded",
    "host",
    "max-forwards",
    "surrogate-capability",
    "via",
    "x-forwarded-for",
];

/// True if Foxy may write fields of this name.
pub(crate) fn is_own(name: &[u8]) -> bool {
    OWN.iter().any(|own| eq_name(name, own.as_bytes()))
}

/// Writes Foxy's own fields, for a request with this method and version.
pub(crate) fn own_fields<F: Fields>(
    out: &mut Vec<u8>,
    head: &F,
    (method, version): (Method, Version),
    hop: &Hop<'_>,
) {
    if let Some(hops) = crate::http::route::max_forwards(head)
        && matches!(method, Method::Trace | Method::Options)
    {
        write::number_field(out, b"Max-Forwards", u64::from(hops.saturating_sub(1)));
    } else if let Some(value) = foxy_base::first(head, "Max-Forwards") {
        write::field(out, b"Max-Forwards", value);
    }
    via(out, version, hop.instance);
    // In the mode `Append`, Foxy adds the address of the peer at the end of the list in the client's request.
    // In the mode `Replace`, a new list names only the client.
    let ip = |mode| match mode {
        ForwardedMode::Append => hop.identity.peer.ip().to_canonical(),
        _ => hop.identity.ip(),
    };
    let Forwarding {
        x_forwarded_for,
        forwarded: standard,
        ..
    } = hop.forwarding;
    if forwarded(out, head, "X-Forwarded-For", x_forwarded_for) {
        push_address(out, ip(x_forwarded_for));
        out.extend_from_slice(b"\r\n");
    }
    if forwarded(out, head, "Forwarded", standard) {
        let ip = ip(standard);
        let [before, after] = match ip {
            IpAddr::V4(_) => ["for=", "\r\n"],
            IpAddr::V6(_) => ["for=\"[", "]\"\r\n"],
        };
        out.extend_from_slice(before.as_bytes());
        push_address(out, ip);
        out.extend_from_slice(after.as_bytes());
    }
    if let Some(token) = hop.surrogate {
        let capability = format!("{token}=\"Surrogate/1.0\"");
        write::field(out, b"Surrogate-Capability", capability.as_bytes());
    }
}

/// Writes `Via: <version> <instance>` for a message of this version.
pub(crate) fn via(out: &mut Vec<u8>, version: Version, instance: &str) {
    out.extend_from_slice(match version {
        Version::Http10 => b"Via: 1.0 ",
        Version::Http11 => b"Via: 1.1 ",
    });
    out.extend_from_slice(instance.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Writes the beginning of a forwarding field. The caller then writes the entry of this hop. Returns false,
/// and writes nothing, if Foxy adds no entry for this hop in this mode.
fn forwarded<F: Fields>(
    out: &mut Vec<u8>,
    head: &F,
    name: &'static str,
    mode: ForwardedMode,
) -> bool {
    if matches!(mode, ForwardedMode::Transparent | ForwardedMode::Remove) {
        return false;
    }
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    if mode == ForwardedMode::Append {
        for value in values(head, name).filter(|value| !value.is_empty()) {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
    true
}

fn push_address(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        // An address is written into every request. The numbers are formatted here, because the formatting
        // code of the standard library would take 1,300 instructions for each address.
        IpAddr::V4(ip) => {
            let mut number = itoa::Buffer::new();
            for (n, octet) in ip.octets().into_iter().enumerate() {
                out.extend_from_slice(&b"."[..usize::from(n > 0)]);
                out.extend_from_slice(number.format(octet).as_bytes());
            }
        }
        IpAddr::V6(ip) => out.extend_from_slice(ip.to_string().as_bytes()),
    }
}

/// Writes the fields for framing, expectation, upgrade and trailers. They are hop-by-hop fields, so Foxy
/// writes them anew.
fn body_fields(out: &mut Vec<u8>, head: &RequestHead<'_>) {
    match head.framing() {
        BodyFraming::Length(n) => write::number_field(out, b"Content-Length", n),
        BodyFraming::Chunked => write::field(out, b"Transfer-Encoding", b"chunked"),
        _ => {}
    }
    if head.expects_continue() {
        write::field(out, b"Expect", b"100-continue");
    }
    if head.upgrade() == Upgrade::WebSocket {
        write::field(out, b"Connection", b"Upgrade");
        write::field(out, b"Upgrade", b"websocket");
    } else if head.wants_trailers() {
        write::field(out, b"Connection", b"TE");
        write::field(out, b"TE", b"trailers");
    }
}

#[cfg(test)]
mod tests;
