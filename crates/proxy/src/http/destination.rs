//! The server that a request is sent to, and the way to reach this server.

use foxy_http1::{Authority, Scheme, Url};
use foxy_tls::OriginTls;

use crate::access::gatekeeper::Reachable;
use crate::access::parents::Through;
use crate::{OriginTimeouts, Role};

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    /// A name in lower case, or an address without brackets.
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    /// True if the server is a site's own origin, or a server of a mirror that the operator has named in the
    /// settings. The guard, which decides which addresses the proxy may reach, does not apply to this server.
    pub(crate) exempt: bool,
    /// TLS settings for the connection to the server. `None` means a plain connection. A pooled connection
    /// that was made with different TLS settings is never used.
    pub(crate) tls: Option<OriginTls>,
    /// Longest times for which Foxy waits for the server.
    pub(crate) timeouts: OriginTimeouts,
    /// The addresses that the request may reach.
    pub(crate) reach: Reachable,
    /// The parent (another proxy) that passes the request to the server.
    pub(crate) parent: Option<Through>,
}

/// Returns the destination at port 80 of a host, without TLS, limits or parents, for tests.
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

/// Returns the server to which a request for `url` goes under this role. `tls` are the TLS settings of the
/// forward proxy.
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

/// Returns the host in the form that a resolver accepts.
pub(crate) fn host_text(authority: &Authority<'_>) -> Box<str> {
    let mut host = Vec::new();
    authority.write_host(&mut host);
    String::from_utf8(host).unwrap_or_default().into()
}
