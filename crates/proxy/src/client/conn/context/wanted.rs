//! The destination of a request, in the form that access rules are compared with.

use std::net::{IpAddr, Ipv4Addr};

use foxy_access::Scheme;
use foxy_http1::{Host, RequestHead, TargetForm};

use crate::Role;
use crate::access::gatekeeper::{Gatekeeper, literal, plain_path};
use crate::http::route;

/// The destination of a request.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) host: Vec<u8>,
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
    pub(super) scheme: Scheme,
    pub(super) path: Option<Vec<u8>>,
}

impl Wanted {
    /// Returns the destination. Returns `None` if the request names no destination.
    pub(super) fn of(
        gate: &Gatekeeper,
        head: &RequestHead<'_>,
        role: &Role,
        secure: bool,
    ) -> Option<Self> {
        let (authority, scheme, port) = match (head.form(), role) {
            (TargetForm::Authority, _) => {
                let authority = head.target().authority?;
                (authority, Scheme::Connect, authority.port.unwrap_or(0))
            }
            (_, Role::Site(_)) => {
                let spoken = match secure {
                    true => foxy_http1::Scheme::Https,
                    false => foxy_http1::Scheme::Http,
                };
                let url = head.url(spoken)?;
                let port = url.authority.port_or_default(spoken);
                (url.authority, of(spoken), port)
            }
            _ => {
                let url = route::url_of(head, role)?;
                let port = url.authority.port_or_default(url.scheme);
                (url.authority, of(url.scheme), port)
            }
        };
        let address = match authority.host {
            Host::V6(ip) => Some(IpAddr::V6(ip).to_canonical()),
            Host::Name(name) => literal(name),
        };
        let host = match (address, authority.host) {
            (Some(address), _) => address.to_string().into_bytes(),
            (None, Host::Name(name)) => name.to_vec(),
            (None, Host::V6(_)) => return None,
        };
        let path = (gate.names_paths() && scheme != Scheme::Connect).then(|| {
            let mut path = Vec::new();
            plain_path(head.target().path, &mut path);
            path
        });
        Some(Self {
            host,
            // For a site, rules about addresses are applied to the address of the origin, and not to an
            // address in the client's URL. A build cache has no origin. So its requests get a placeholder
            // address, and need not wait for a look-up.
            address: match role.objects() {
                Some(_) => Some(Ipv4Addr::UNSPECIFIED.into()),
                None => address.filter(|_| matches!(role, Role::Forward)),
            },
            port,
            scheme,
            path,
        })
    }
}

const fn of(scheme: foxy_http1::Scheme) -> Scheme {
    match scheme {
        foxy_http1::Scheme::Http => Scheme::Http,
        foxy_http1::Scheme::Https => Scheme::Https,
    }
}
