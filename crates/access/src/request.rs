//! A request as rules see it.

use std::net::IpAddr;

use crate::index::Block;

/// The way of a request to its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS that Foxy speaks itself.
    Https,
    /// Through a tunnel (`CONNECT`): only host and port are known.
    Connect,
}

impl Scheme {
    /// Every scheme, in the order of the index.
    pub const ALL: [Self; 3] = [Self::Http, Self::Https, Self::Connect];

    /// The word of rules.
    #[must_use]
    pub const fn word(self) -> &'static str {
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
    /// Nobody can log in here: conditions on users fit no request.
    Nobody,
    /// The request has not said; its client may log in.
    Unknown,
    /// Logged in.
    Known(&'a Standing),
}

/// A user who is logged in, and the rules that are for that user. It belongs to the rule set that
/// made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub(crate) name: Box<str>,
    pub(crate) groups: Box<[Box<str>]>,
    /// The rules whose conditions on users and groups fit.
    pub(crate) rules: Box<[Block]>,
}

impl Standing {
    /// The user's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user's groups.
    #[must_use]
    pub fn groups(&self) -> &[Box<str>] {
        &self.groups
    }
}

/// The part of a request that stays the same for many requests.
#[derive(Clone, Copy, Debug)]
pub struct Visitor<'a> {
    /// Address of the client. `None`: it is not known, and rules that deny some clients mean this
    /// one too.
    pub client: Option<IpAddr>,
    /// Its user.
    pub user: User<'a>,
    /// `forward`, or the name of the site.
    pub site: &'a str,
    /// Minute of the week, from Monday 00:00 in the time zone of the rules.
    pub minute: u16,
}

/// The rules that are for a visitor, whatever is asked for. It belongs to the rule set that made it,
/// and holds for this visitor alone. Remembers the last destination: the next request is most often
/// for the same one.
#[derive(Clone, Debug)]
pub struct Visit {
    pub(crate) rules: Box<[Block]>,
    /// Those of them that are for the last destination.
    pub(crate) left: Box<[Block]>,
    host: Vec<u8>,
    method: Vec<u8>,
    address: Option<IpAddr>,
    port: u16,
    scheme: Scheme,
}

impl Visit {
    pub(crate) fn new(rules: Box<[Block]>) -> Self {
        Self {
            left: rules.clone(),
            rules,
            // No request has such a host.
            host: b"/".to_vec(),
            method: Vec::new(),
            address: None,
            port: 0,
            scheme: Scheme::Http,
        }
    }

    /// True if the request differs from the last one in its path alone.
    #[inline]
    pub(crate) fn is_for(&self, request: &Request<'_>) -> bool {
        self.host == request.host
            && self.method == request.method
            && (self.port, self.scheme) == (request.port, request.scheme)
            && self.address == request.address
    }

    pub(crate) fn note(&mut self, request: &Request<'_>) {
        self.host.clear();
        self.host.extend_from_slice(request.host);
        self.method.clear();
        self.method.extend_from_slice(request.method);
        (self.port, self.scheme) = (request.port, request.scheme);
        self.address = request.address;
    }
}

/// A request as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// From whom, where and when.
    pub who: Visitor<'a>,
    /// Host of the destination: a name without regard to case, or an address as text. A dot at the
    /// end makes no difference.
    pub host: &'a [u8],
    /// Address of the destination, if it is known.
    pub address: Option<IpAddr>,
    /// Port of the destination.
    pub port: u16,
    /// The way to the destination.
    pub scheme: Scheme,
    /// The method, as written.
    pub method: &'a [u8],
    /// Path without query, in the form that rules are written in; `None` for tunnels.
    pub path: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// The host without a dot at its end.
    pub(crate) fn bare_host(&self) -> &'a [u8] {
        match self.host {
            [bare @ .., b'.'] if !bare.is_empty() => bare,
            host => host,
        }
    }
}
