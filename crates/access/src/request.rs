//! A request in the form that rules are compared with.

use std::net::IpAddr;

use crate::Judgement;
use crate::index::{Block, Class};

/// The protocol by which a request reaches its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS between Foxy and the destination.
    Https,
    /// In a tunnel (`CONNECT`). Only host and port are known.
    Connect,
}

impl Scheme {
    /// Every scheme, in the order of the index.
    pub const ALL: [Self; 3] = [Self::Http, Self::Https, Self::Connect];

    /// Returns the name of the scheme in rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Connect => "connect",
        }
    }
}

/// The user of a request.
#[derive(Clone, Copy, Debug)]
pub enum User<'a> {
    /// No user can log in here, so a rule with a condition on users never fits.
    Nobody,
    /// The request names no user, but its client may still log in.
    Unknown,
    /// The user has logged in.
    Known(&'a Principal),
}

/// A user who is logged in, and the rules that apply to that user. A principal is valid only for the rule set
/// that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub(crate) name: Box<str>,
    pub(crate) groups: Box<[Box<str>]>,
    /// The rules whose conditions on users and groups fit this user.
    pub(crate) rules: Box<[Block]>,
    pub(crate) token: u64,
}

impl Principal {
    /// Returns the same user, logged in with the login token that has this number.
    #[must_use]
    pub fn with_token(self, token: u64) -> Self {
        Self { token, ..self }
    }

    /// Returns the number of the token with which the user logged in. Returns 0 if the user logged in without
    /// a token.
    #[must_use]
    pub const fn token(&self) -> u64 {
        self.token
    }

    /// Returns the user's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the user's groups.
    #[must_use]
    pub fn groups(&self) -> &[Box<str>] {
        &self.groups
    }
}

/// The client, user, site and time of a request. They are usually the same for many successive requests.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'a> {
    /// Address of the client. `None` means that the address is unknown. Then rules that refuse some clients
    /// also apply to this client.
    pub client: Option<IpAddr>,
    /// User of the request.
    pub user: User<'a>,
    /// `forward`, or the name of the site.
    pub site: &'a str,
    /// Minute of the week, from Monday 00:00 in the time zone of the rules.
    pub minute: u16,
}

/// The rules that apply to a requester, for any destination. The value is valid only for the rule set that
/// made it, and only for this requester. It remembers the method, scheme, port and address of the last
/// request. For these four values, it also remembers the judgements about some classes of hosts (the same
/// rules fit all hosts of a class). The next request usually has the same four values, and a host of a
/// remembered class.
#[derive(Clone, Debug)]
pub struct ApplicableRules {
    pub(crate) rules: Box<[Block]>,
    /// The applicable rules that fit the method, scheme, port and address of the last request.
    pub(crate) left: Box<[Block]>,
    method: Vec<u8>,
    address: Option<IpAddr>,
    port: u16,
    scheme: Scheme,
    found: [Found; FOUND],
}

/// A number that no class has, because there are always fewer classes.
const NO_CLASS: Class = Class::MAX;

/// Number of host classes that are remembered.
const FOUND: usize = 4;

/// The remembered result for a class of hosts, for requests with the same method, scheme, port and address as
/// the last request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    class: Class,
    /// The judgement. `None` means that rules have to be compared with the request.
    pub(crate) judgement: Option<Judgement>,
}

impl Found {
    const NOTHING: Self = Self {
        class: NO_CLASS,
        judgement: None,
    };
}

impl ApplicableRules {
    pub(crate) fn new(rules: Box<[Block]>) -> Self {
        Self {
            found: [Found::NOTHING; FOUND],
            left: rules.clone(),
            rules,
            // No request has this method. So the first request always differs from this initial value.
            method: b"/".to_vec(),
            address: None,
            port: 0,
            scheme: Scheme::Http,
        }
    }

    /// Returns true if the request differs from the last request only in host and path.
    #[inline]
    pub(crate) fn goes(&self, request: &Request<'_>) -> bool {
        (self.port, self.scheme) == (request.port, request.scheme)
            && self.address == request.address
            && alike(&self.method, request.method)
    }

    /// Returns the judgement that is remembered for a class of hosts.
    #[inline]
    pub(crate) fn found(&self, class: Class) -> Option<&Found> {
        let found = &self.found[class as usize % FOUND];
        (found.class == class).then_some(found)
    }

    pub(crate) fn keep(&mut self, class: Class, judgement: Option<Judgement>) {
        self.found[class as usize % FOUND] = Found { class, judgement };
    }

    pub(crate) fn note(&mut self, request: &Request<'_>) {
        self.found = [Found::NOTHING; FOUND];
        self.method.clear();
        self.method.extend_from_slice(request.method);
        (self.port, self.scheme) = (request.port, request.scheme);
        self.address = request.address;
    }
}

/// Returns the host without the dot at its end. Few requests have such a dot. A host that is only a dot is
/// not changed.
#[cold]
fn undotted(bare: &[u8]) -> &[u8] {
    match bare {
        [] => b".",
        bare => bare,
    }
}

/// Compares byte by byte. Methods are short, and a call of a comparison function would cost more.
#[inline]
fn alike(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// A request in the form that rules are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Client, user, site and time of the request.
    pub who: Requester<'a>,
    /// Host of the destination: a name, or an address as text. Case and a dot at the end make no difference.
    pub host: &'a [u8],
    /// Address of the destination, if it is known.
    pub address: Option<IpAddr>,
    /// Port of the destination.
    pub port: u16,
    /// The protocol by which the request reaches its destination.
    pub scheme: Scheme,
    /// The method as the client wrote it.
    pub method: &'a [u8],
    /// Path without query, in the form of paths in rules. `None` for tunnels.
    pub path: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// Returns the host without a dot at its end.
    pub(crate) fn bare_host(&self) -> &'a [u8] {
        match self.host {
            [bare @ .., b'.'] => undotted(bare),
            host => host,
        }
    }
}
