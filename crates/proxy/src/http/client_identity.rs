//! The client of a request. It is the peer of the connection, or the client that a trusted proxy names.

use std::net::{IpAddr, SocketAddr};

use std::sync::Arc;

use foxy_base::{Fields, FieldsIter, eq_name, first, rule, tokens};
use foxy_http_rules::rules::Pattern;
use foxy_tls::ClientCertificate;
use ipnet::IpNet;

use crate::access::gatekeeper::{Pass, Reachable};
use crate::access::settings::{Access, contains};
use crate::{RequestId, Role, Site};

/// The client of a request: its addresses, and what Foxy has decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientIdentity {
    /// Address of the connection's peer.
    pub(crate) peer: SocketAddr,
    /// Address of the client. `None` if a trusted proxy names the client in an unreadable form.
    pub(crate) client: Option<IpAddr>,
    /// True if the peer is a trusted proxy.
    pub(crate) trusted: bool,
    /// True if the client may use the listener.
    pub(crate) allowed: bool,
    pub(crate) arrival: Arrival,
    /// The decision of the access rules (see [`Pass`]) about the present request.
    pub(crate) pass: Option<Arc<Pass>>,
}

/// The way by which a request has reached Foxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// True if the client speaks TLS.
    pub(crate) secure: bool,
    /// Number of the connection on its worker.
    pub(crate) connection: u64,
    /// Number of the request on its connection.
    pub(crate) request: u64,
    /// The verified certificate of the client.
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
}

impl ClientIdentity {
    /// Returns true if an access rule lets the present request bypass the cache.
    pub(crate) fn bypasses_cache(&self) -> bool {
        self.pass.as_ref().is_some_and(|pass| pass.bypasses_cache())
    }

    /// Returns the client of a connection, before its first request.
    pub(crate) fn new(access: &Access, role: &Role, peer: SocketAddr) -> Self {
        let client = Some(peer.ip().to_canonical());
        Self {
            peer,
            client,
            trusted: rule!(
                "client: only a trusted proxy names the client",
                contains(&access.trusted_proxies, peer.ip()),
                true
            ),
            allowed: allowed(access, role, client, None),
            arrival: Arrival::default(),
            pass: None,
        }
    }

    /// Returns an imagined client, for a request that no client has sent. The client connects directly and
    /// may use the listener.
    pub(crate) fn imagined(client: IpAddr) -> Self {
        Self {
            peer: SocketAddr::new(client, 0),
            client: Some(client.to_canonical()),
            trusted: false,
            allowed: true,
            arrival: Arrival::default(),
            pass: None,
        }
    }

    /// Returns the client of this request. If the peer is a trusted proxy, this is the client that the proxy
    /// names.
    pub(crate) fn of<F: Fields + ?Sized>(self, access: &Access, role: &Role, head: &F) -> Self {
        if !self.trusted {
            return self;
        }
        let client = match named(head, &access.trusted_proxies) {
            Some(named) => named,
            None => Some(self.peer.ip().to_canonical()),
        };
        Self {
            client,
            allowed: allowed(access, role, client, self.arrival.certificate.as_deref()),
            ..self
        }
    }

    /// Returns the same client for a request to another site of the listener. The other site decides whether
    /// it serves this client.
    pub(crate) fn at(self, access: &Access, role: &Role) -> Self {
        let certificate = self.arrival.certificate.as_deref();
        Self {
            allowed: rule!(
                "client: each site judges its clients itself",
                allowed(access, role, self.client, certificate),
                self.allowed
            ),
            ..self
        }
    }

    /// Returns the addresses that the present request may reach.
    pub(crate) fn reach(&self) -> Reachable {
        let pass = self.pass.as_ref();
        pass.map_or_else(Reachable::default, |pass| pass.reach())
    }

    /// Returns true if the request's `Authorization` contains a login for Foxy itself. The origin then does
    /// not receive this field.
    #[inline]
    pub(crate) fn login_is_spent(&self) -> bool {
        self.pass.as_ref().is_some_and(|pass| pass.spent)
    }

    /// Returns true if the access rules may permit answers from an origin at this address to some clients,
    /// and forbid them to other clients.
    pub(crate) fn keeps_apart(&self, address: IpAddr) -> bool {
        let pass = self.pass.as_ref();
        pass.is_some_and(|pass| pass.keeps_apart(address))
    }

    /// Returns the id of the request. An id in the request is used only if a trusted proxy has sent it.
    /// Otherwise the id is made from `seed`, the number of the worker, and the numbers of connection and
    /// request.
    pub(crate) fn request_id<'a, F: Fields + ?Sized>(
        &self,
        head: Option<&'a F>,
        seed: u64,
        worker: usize,
    ) -> RequestId<'a> {
        let arrival = &self.arrival;
        let numbers = [worker as u64, arrival.connection, arrival.request];
        RequestId::of(head.filter(|_| self.trusted), seed, numbers)
    }

    /// Returns the client's address, or the peer's address if the client is unknown.
    pub(crate) fn ip(&self) -> IpAddr {
        self.client.unwrap_or(self.peer.ip().to_canonical())
    }

    /// Returns the address for the log. The port of a client behind a proxy is unknown, and is 0 here.
    pub(crate) fn shown(&self) -> SocketAddr {
        match self.client {
            Some(client) if client != self.peer.ip().to_canonical() => SocketAddr::new(client, 0),
            _ => self.peer,
        }
    }
}

/// Returns true if this client may use a listener. A client whose address is unknown may use only a listener
/// without a list of clients.
fn allowed(
    access: &Access,
    role: &Role,
    client: Option<IpAddr>,
    certificate: Option<&ClientCertificate>,
) -> bool {
    if let Role::Site(site) = role
        && let Some(names) = &site.allow_client_names
        && rule!(
            "client: a site of named certificates serves no others",
            !certificate.is_some_and(|certificate| is_named(certificate, names)),
            false
        )
    {
        return false;
    }
    let list = match role {
        Role::Forward => &access.allow_clients,
        Role::Site(Site {
            allow_clients: Some(list),
            ..
        }) => list,
        Role::Site(_) | Role::Undecided => return true,
    };
    rule!(
        "client: only clients in the list are served",
        client.is_some_and(|client| contains(list, client)),
        true
    )
}

/// Returns true if the subject or an alternative name of the certificate matches one of these names.
fn is_named(certificate: &ClientCertificate, names: &[Pattern]) -> bool {
    let mut own = certificate.names.iter().chain([&certificate.subject]);
    own.any(|own| names.iter().any(|name| name.fits(own.as_bytes())))
}

/// Returns the client that the forwarding fields name, if there are such fields. The client is the last
/// address that is not a trusted proxy, because all earlier addresses may be invented by that client. If all
/// addresses are trusted proxies, the client is the first address.
fn named<F: Fields + ?Sized>(head: &F, trusted: &[IpNet]) -> Option<Option<IpAddr>> {
    if first(head, "X-Forwarded-For").is_some() {
        let hops = tokens(head, "X-Forwarded-For").map(address);
        return last_stranger(hops, trusted);
    }
    last_stranger(tokens(head, "Forwarded").map(forwarded_for), trusted)
}

fn last_stranger(
    hops: impl Iterator<Item = Option<IpAddr>>,
    trusted: &[IpNet],
) -> Option<Option<IpAddr>> {
    let (mut first, mut stranger) = (None, None);
    for hop in hops {
        first = first.or(Some(hop));
        let strange = hop.is_none_or(|hop| !contains(trusted, hop));
        if rule!(
            "client: what a client says of itself in a forwarding field does not count",
            strange,
            false
        ) {
            stranger = Some(hop);
        }
    }
    stranger.or(first)
}

/// Parses an address. A port may follow the address, and an IPv6 address may be in brackets.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let ip = match text.parse::<IpAddr>() {
        Ok(ip) => ip,
        Err(_) => match text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            Some(inner) => inner.parse().ok()?,
            None => text.parse::<SocketAddr>().ok()?.ip(),
        },
    };
    Some(ip.to_canonical())
}

/// Returns the address in the `for=` of one element of Forwarded (RFC 7239 section 4).
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    element.split(|b| *b == b';').find_map(|pair| {
        let (name, value) = pair.trim_ascii().split_at_checked(4)?;
        let quoted = value
            .strip_prefix(b"\"")
            .and_then(|v| v.strip_suffix(b"\""));
        name.eq_ignore_ascii_case(b"for=")
            .then(|| address(quoted.unwrap_or(value)))?
    })
}

/// A sign that a request did not originate on the peer's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// The fields contain no such sign.
    No,
    /// A proxy has forwarded the request.
    Forwarded,
    /// A web page in a browser has made the request.
    Page,
}

/// Fields that proxies add.
const FORWARDING: [&str; 6] = [
    "Via",
    "Forwarded",
    "X-Real-IP",
    "X-Client-IP",
    "True-Client-IP",
    "CF-Connecting-IP",
];
/// Fields that browsers add to requests of a page. The page cannot remove them.
const BROWSER: [&str; 2] = ["Origin", "Referer"];

/// Searches the fields of a request for a sign that the request did not originate on the peer's machine. The
/// address of the peer does not matter.
pub(crate) fn foreign<F: Fields + ?Sized>(head: &F) -> Foreign {
    let mut found = Foreign::No;
    for (name, _) in FieldsIter::new(head) {
        let is = |known: &&str| eq_name(name, known.as_bytes());
        if BROWSER.iter().any(is) || begins(name, b"sec-fetch-") {
            return Foreign::Page;
        }
        if FORWARDING.iter().any(is) || begins(name, b"x-forwarded-") {
            found = Foreign::Forwarded;
        }
    }
    found
}

/// Returns true if the name begins with this prefix. Case is ignored.
pub(crate) fn begins(name: &[u8], start: &[u8]) -> bool {
    name.get(..start.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let nets = |list: &[&str]| list.iter().map(|n| n.parse().unwrap()).collect();
        Access {
            trusted_proxies: nets(&["192.0.2.0/28", "2001:db8::/32"]),
            ..Access::default()
        }
    }

    fn client(peer: &str, fields: &[(&str, &str)]) -> (String, bool) {
        let (access, peer) = (access(), SocketAddr::new(peer.parse().unwrap(), 5));
        let identity = ClientIdentity::new(&access, &Role::Forward, peer);
        let identity = identity.of(&access, &Role::Forward, fields);
        let text = identity.client.map_or("?".to_owned(), |ip| ip.to_string());
        (text, identity.allowed)
    }

    const XFF: &str = "X-Forwarded-For";
    const FWD: &str = "Forwarded";

    /// A test case: peer, fields, expected client, and whether the client may use the forward proxy.
    type Case = (
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static str,
        bool,
    );

    const CASES: &[Case] = &[
        // Forwarding fields from a peer that is not trusted have no effect.
        ("203.0.113.9", &[(XFF, "127.0.0.1")], "203.0.113.9", false),
        ("10.0.0.9", &[(XFF, "203.0.113.1")], "10.0.0.9", true),
        ("10.0.0.9", &[(FWD, "for=203.0.113.1")], "10.0.0.9", true),
        // A trusted proxy names the client. Earlier entries may be invented by the client and are ignored.
        ("192.0.2.1", &[(XFF, "203.0.113.1")], "203.0.113.1", false),
        ("192.0.2.1", &[(XFF, "10.0.0.1")], "10.0.0.1", true),
        (
            "192.0.2.1",
            &[(XFF, "127.0.0.1, 203.0.113.1")],
            "203.0.113.1",
            false,
        ),
        (
            "192.0.2.1",
            &[(XFF, "127.0.0.1"), (XFF, "203.0.113.1")],
            "203.0.113.1",
            false,
        ),
        (
            "192.0.2.1",
            &[(XFF, "203.0.113.1, 192.0.2.2")],
            "203.0.113.1",
            false,
        ),
        (
            "192.0.2.1",
            &[(XFF, "192.0.2.3, 192.0.2.2")],
            "192.0.2.3",
            false,
        ),
        ("192.0.2.1", &[(XFF, "10.0.0.1:4711")], "10.0.0.1", true),
        ("192.0.2.1", &[(XFF, "[fd00::1]:4711")], "fd00::1", true),
        ("192.0.2.1", &[(XFF, "::ffff:10.0.0.1")], "10.0.0.1", true),
        // A client whose address is unreadable is unknown.
        ("192.0.2.1", &[(XFF, "10.0.0.1, unknown")], "?", false),
        ("192.0.2.1", &[(XFF, "10.0.0.1, 203.0.113.1 x")], "?", false),
        ("192.0.2.1", &[(FWD, "for=_hidden")], "?", false),
        ("192.0.2.1", &[(FWD, "proto=https")], "?", false),
        // Without forwarding fields, the proxy itself is the client.
        ("192.0.2.1", &[], "192.0.2.1", false),
        (
            "2001:db8::1",
            &[(FWD, "for=10.0.0.1;proto=http")],
            "10.0.0.1",
            true,
        ),
        (
            "2001:db8::1",
            &[(FWD, "by=x; For=\"[fd00::1]:80\"")],
            "fd00::1",
            true,
        ),
        (
            "192.0.2.1",
            &[(FWD, "for=\"x, for=203.0.113.1")],
            "203.0.113.1",
            false,
        ),
    ];

    #[test]
    fn forwarding_fields_count_from_trusted_proxies_alone() {
        for (peer, fields, expected, allowed) in CASES {
            let expected = ((*expected).to_owned(), *allowed);
            assert_eq!(client(peer, fields), expected, "{peer} {fields:?}");
        }
    }

    #[test]
    fn sites_are_for_everybody_unless_they_have_a_list() {
        let site = |allow_clients: Option<Vec<IpNet>>| {
            Role::Site(Site {
                allow_clients,
                ..Site::default()
            })
        };
        let list = Some(vec!["198.51.100.0/24".parse().unwrap()]);
        for (role, client, expected) in [
            (site(None), "203.0.113.1", true),
            (site(list.clone()), "198.51.100.7", true),
            (site(list.clone()), "203.0.113.1", false),
            (site(list), "127.0.0.1", false),
            (Role::Forward, "203.0.113.1", false),
            (Role::Forward, "127.0.0.1", true),
        ] {
            let peer = SocketAddr::new(client.parse().unwrap(), 1);
            let identity = ClientIdentity::new(&Access::default(), &role, peer);
            assert_eq!(identity.allowed, expected, "{role:?} {client}");
        }
    }

    #[test]
    fn pages_and_proxies_are_seen() {
        for (name, expected) in [
            ("Host", Foreign::No),
            ("User-Agent", Foreign::No),
            ("via", Foreign::Forwarded),
            ("X-Forwarded-For", Foreign::Forwarded),
            ("x-forwarded-proto", Foreign::Forwarded),
            ("Forwarded", Foreign::Forwarded),
            ("X-Real-IP", Foreign::Forwarded),
            ("origin", Foreign::Page),
            ("Referer", Foreign::Page),
            ("Sec-Fetch-Site", Foreign::Page),
            ("sec-fetch-whatever", Foreign::Page),
        ] {
            let fields: &[(&str, &str)] = &[("Via", ""), (name, "x")];
            assert_eq!(foreign(&fields[1..]), expected, "{name}");
        }
        let both: &[(&str, &str)] = &[("Via", "1.1 a"), ("Origin", "null")];
        assert_eq!(foreign(both), Foreign::Page);
    }
}
