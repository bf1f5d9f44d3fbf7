//! One rule: its conditions and its decision.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use foxy_base::Pattern;
use ipnet::IpNet;

use crate::{HostPattern, Principal, Request, Scheme, Span, User};

/// The decision of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// The request is permitted.
    #[default]
    Allow,
    /// The request is refused.
    Deny,
    /// A tunnel is permitted. Any other request is refused.
    Tunnel,
    /// The request bypasses the cache.
    Bypass,
    /// The request goes through this parent, or this group of parents.
    Parent(String),
}

impl Action {
    /// Returns the name of the action in rules.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Tunnel => "tunnel",
            Self::Bypass => "bypass",
            Self::Parent(_) => "parent",
        }
    }

    /// Returns true if a request with this scheme is refused.
    #[must_use]
    pub fn refuses(&self, scheme: Scheme) -> bool {
        match self {
            Self::Deny => true,
            Self::Tunnel => scheme != Scheme::Connect,
            _ => false,
        }
    }
}

/// A rule. It fits a request if all its conditions fit. An empty list means that the rule has no such
/// condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The name of the rule in answers, logs and explanations.
    pub name: String,
    /// Networks of clients.
    pub clients: Vec<IpNet>,
    /// Names of users. `*` stands for all users who are logged in.
    pub users: Vec<String>,
    /// Groups of users.
    pub groups: Vec<String>,
    /// Hosts of destinations.
    pub hosts: Vec<HostPattern>,
    /// Networks of destinations' addresses.
    pub addresses: Vec<IpNet>,
    /// Ports of destinations.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Protocols by which requests reach their destinations.
    pub schemes: Vec<Scheme>,
    /// Methods.
    pub methods: Vec<String>,
    /// Paths.
    pub paths: Vec<Pattern>,
    /// `forward`, and names of sites.
    pub sites: Vec<String>,
    /// Times of the week.
    pub times: Vec<Span>,
    /// The decision of the rule.
    pub action: Action,
    /// Text for people whose requests the rule refuses.
    pub text: String,
}

/// The result of checking a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// The result depends on the user, who is unknown.
    User,
    /// The result depends on the address, which is unknown.
    Address,
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Self {
        match fits {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

impl Rule {
    /// Returns true if the rule has a condition on users.
    pub(crate) fn names_users(&self) -> bool {
        !self.users.is_empty() || !self.groups.is_empty()
    }

    /// Returns true if the rule's condition on clients fits a client whose address is unknown. Rules that
    /// refuse requests fit such a client.
    pub(crate) fn means_unknown(&self) -> bool {
        self.clients.is_empty() || matches!(self.action, Action::Deny | Action::Tunnel)
    }

    pub(crate) fn client(&self, request: &Request<'_>) -> Fit {
        match request.who.client {
            Some(client) => within(&self.clients, client),
            None => self.means_unknown().into(),
        }
    }

    pub(crate) fn user(&self, request: &Request<'_>) -> Fit {
        if !self.names_users() {
            return Fit::Yes;
        }
        match request.who.user {
            User::Nobody => Fit::No,
            User::Unknown => Fit::User,
            User::Known(principal) => self.is_for(principal).into(),
        }
    }

    pub(crate) fn is_for(&self, user: &Principal) -> bool {
        let named = |name: &String| name == "*" || **name == *user.name;
        let in_group = |group: &String| user.groups.iter().any(|own| **own == **group);
        let users = self.users.is_empty() || self.users.iter().any(named);
        users && (self.groups.is_empty() || self.groups.iter().any(in_group))
    }

    pub(crate) fn host(&self, request: &Request<'_>) -> Fit {
        let host = request.bare_host();
        (self.hosts.is_empty() || self.hosts.iter().any(|pattern| pattern.fits(host))).into()
    }

    pub(crate) fn address(&self, request: &Request<'_>) -> Fit {
        match (self.addresses.is_empty(), request.address) {
            (true, _) => Fit::Yes,
            (false, Some(address)) => within(&self.addresses, address),
            (false, None) => Fit::Address,
        }
    }

    pub(crate) fn port(&self, request: &Request<'_>) -> Fit {
        let mut ports = self.ports.iter();
        (self.ports.is_empty() || ports.any(|ports| ports.contains(&request.port))).into()
    }

    pub(crate) fn scheme(&self, request: &Request<'_>) -> Fit {
        (self.schemes.is_empty() || self.schemes.contains(&request.scheme)).into()
    }

    pub(crate) fn method(&self, request: &Request<'_>) -> Fit {
        let mut methods = self.methods.iter();
        let is = |method: &String| method.as_bytes() == request.method;
        (self.methods.is_empty() || methods.any(is)).into()
    }

    pub(crate) fn path(&self, request: &Request<'_>) -> Fit {
        let fits = |path: &[u8]| self.paths.iter().any(|pattern| pattern.fits(path));
        (self.paths.is_empty() || request.path.is_some_and(fits)).into()
    }

    pub(crate) fn site(&self, request: &Request<'_>) -> Fit {
        (self.sites.is_empty() || self.sites.iter().any(|site| site == request.who.site)).into()
    }

    pub(crate) fn time(&self, request: &Request<'_>) -> Fit {
        let mut times = self.times.iter();
        (self.times.is_empty() || times.any(|span| span.contains(request.who.minute))).into()
    }
}

/// Checks whether an address is in one of the networks. IPv4-mapped addresses count as IPv4 addresses.
fn within(networks: &[IpNet], address: IpAddr) -> Fit {
    let address = address.to_canonical();
    let mut all = networks.iter();
    (networks.is_empty() || all.any(|network| network.contains(&address))).into()
}
