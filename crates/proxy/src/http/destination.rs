//! The server that a request is sent to, and how it may be reached.

use foxy_http1::{Authority, Scheme, Url};
use foxy_tls::OriginTls;

use crate::access::gatekeeper::Reachable;
use crate::access::parents::Through;
use crate::{OriginTimeouts, Role};

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    /// A name in lower case, or an address without brackets.
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    /// A site's own origin: the guard does not apply.
    pub(crate) exempt: bool,
    /// How TLS is spoken to it; `None`: it is not. Connections under other settings are never used.
    pub(crate) tls: Option<OriginTls>,
    /// How long Foxy waits for it.
    pub(crate) timeouts: OriginTimeouts,
    /// The addresses that the request may reach.
    pub(crate) reach: Reachable,
    /// The parent that it is asked through.
    pub(crate) parent: Option<Through>,
}

/// For tests: port 80 of a host, without TLS, limits or parents.
#[cfg(test)]
pub(crate) fn to(host: &str) -> Destination {
    Destination {
        host: host.into(),
        port: 80,
        exempt: false,
        tls: None,
        timeouts: OriginTimeouts::default(),
        reach: Reachable::default(),
        parent: None,
    }
}

/// Where the bytes of `url` come from under this role. `tls` is how the forward proxy speaks TLS.
pub(crate) fn destination(role: &Role, url: &Url<'_>, tls: &OriginTls) -> Destination {
    match role {
        Role::Forward | Role::Undecided => Destination {
            host: host_text(&url.authority),
            port: url.authority.port_or_default(url.scheme),
            exempt: false,
            tls: (url.scheme == Scheme::Https).then(|| tls.clone()),
            timeouts: OriginTimeouts::default(),
            reach: Reachable::default(),
            parent: None,
        },
        Role::Site(site) => Destination {
            host: site.host.to_ascii_lowercase().into(),
            port: site.port,
            exempt: site.mirror.as_ref().is_none_or(|part| part.is_exempt()),
            tls: site.tls.clone(),
            timeouts: site.timeouts,
            reach: Reachable::default(),
            parent: None,
        },
    }
}

/// The host as a resolver takes it.
pub(crate) fn host_text(authority: &Authority<'_>) -> Box<str> {
    let mut host = Vec::new();
    authority.write_host(&mut host);
    String::from_utf8(host).unwrap_or_default().into()
}
