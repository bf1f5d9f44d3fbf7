//! Listening sockets: one per worker and address. The kernel distributes connections among the sockets of an
//! address.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use foxy_tls::{ListenerTls, ServerTls};
use socket2::{Domain, Protocol, Socket, Type};

use crate::{Origins, Role, Site, SiteTable};

/// Largest number of connections that wait for `accept`.
pub(crate) const BACKLOG: i32 = 4096;

/// A bound listening socket, and the way in which Foxy handles the requests on its connections.
#[derive(Debug)]
pub struct Listener {
    /// Bound, listening, non-blocking.
    pub socket: TcpListener,
    /// The roles that requests on its connections may have.
    pub serves: Serves,
    /// Certificates, if clients use TLS. `None`: plain connections.
    pub tls: Option<ListenerTls>,
    /// True if trusted proxies name the client at the beginning of each connection (PROXY protocol, version 1
    /// or 2).
    pub proxy_protocol: bool,
}

/// The roles that requests on the connections of a listener may have. A role determines how Foxy handles a
/// request: as a forward proxy, or for a site.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each listener")]
pub enum Serves {
    /// All requests have this role, except requests for mirrors.
    One(Role),
    /// Each request chooses its site by host and path. The sites are in the order of the table, each with its
    /// certificates.
    Sites(Arc<SiteTable>, Vec<(Site, Option<ServerTls>)>),
}

impl Serves {
    /// Returns the sets of origins of this listener's sites. Sites that have no such set are left out.
    pub(crate) fn origins(&self) -> impl Iterator<Item = &Origins> {
        let (one, several) = match self {
            Self::One(Role::Site(site)) => (Some(site), &[][..]),
            Self::One(_) => (None, &[][..]),
            Self::Sites(_, sites) => (None, &sites[..]),
        };
        let several = several.iter().map(|(site, _)| site);
        one.into_iter()
            .chain(several)
            .filter_map(|site| site.origins.as_ref())
    }
}

/// Binds `workers` sockets to the same address (SO_REUSEPORT), one for each worker. If the port is 0, the
/// kernel chooses one port for all sockets.
///
/// # Errors
/// The error of the system, if the address is in use, is not of this machine, or is not permitted.
pub fn bind(address: SocketAddr, workers: usize) -> io::Result<Vec<TcpListener>> {
    can_bind(address)?;
    let first = bind_one(address)?;
    let address = first.local_addr()?;
    let mut sockets = vec![first];
    while sockets.len() < workers {
        sockets.push(bind_one(address)?);
    }
    Ok(sockets)
}

/// Fails if `address` cannot be bound now. Port 0 can always be bound.
///
/// SO_REUSEPORT would let a second process of the same user join silently and take half of the connections.
/// So this function tries to bind a socket without SO_REUSEPORT.
///
/// # Errors
/// The error of the system, if the address is in use, is not of this machine, or is not permitted.
pub fn can_bind(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    let probe = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    probe.set_reuse_address(true)?;
    if address.is_ipv6() {
        probe.set_only_v6(true)?;
    }
    probe.bind(&address.into())
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    // Later, the worker that accepts the connections shortens this queue, if the memory budget requires it.
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_share_one_port() {
        let sockets = bind(SocketAddr::from(([127, 0, 0, 1], 0)), 3).unwrap();
        let ports: Vec<_> = sockets
            .iter()
            .map(|s| s.local_addr().unwrap().port())
            .collect();
        assert_eq!(ports.len(), 3);
        assert!(ports.iter().all(|p| *p == ports[0] && *p != 0));
        let again = bind(sockets[0].local_addr().unwrap(), 1).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
    }
}
