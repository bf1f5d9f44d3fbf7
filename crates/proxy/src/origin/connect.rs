//! Opens connections to origins and parents. Foxy resolves the name of the host. The guard of destinations
//! and the access rules then check each address of the origin. The guard does not apply to the configured
//! origins of a site. Foxy tries the permitted addresses one after the other, but does not wait for the end
//! of a slow attempt before the next attempt. It uses the first connection that succeeds (RFC 8305).

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use foxy_base::rule;
use foxy_tls::{Failure, OriginTls};
use tokio::net::{TcpSocket, TcpStream};

use super::UpstreamError;
use crate::access::guard::{self, Forbidden};
use crate::access::parents::Through;
use crate::http::destination::Destination;
use crate::http::net::{OriginStream, TlsStream, Transport};
use crate::origin::parents::open_tunnel;
use crate::state::proxy::Proxy;
use crate::{Counters, Event, ResolveError};

/// Time after which the next address is tried in parallel with a running attempt (RFC 8305 section 5).
const STAGGER: Duration = Duration::from_millis(250);
/// Largest number of addresses of one host that are tried.
const ATTEMPTS: usize = 8;

/// Opens a new connection to `to`. If `to` uses TLS, the function also completes the handshake and checks the
/// peer's certificate.
pub(crate) async fn connect(
    proxy: &Proxy,
    counters: &Counters,
    to: &Destination,
) -> Result<(OriginStream, SocketAddr), UpstreamError> {
    let began = proxy.clock.mono();
    let named = Cell::new(false);
    let attempt = async {
        let host = match &to.parent {
            Some(through) => &through.parent.host,
            None => &to.host,
        };
        let addresses = resolve(proxy, counters, host).await?;
        named.set(true);
        let good = match &to.parent {
            Some(through) => of_parent(proxy, to, through, &addresses)?,
            None => permitted(proxy, to, &addresses)?,
        };
        #[cfg(test)]
        if let Some(dialled) = crate::simulation::dial(&good).await {
            let (wire, peer) = dialled.map_err(|_| UpstreamError::Connect)?;
            return Ok((OriginStream::Simulated(wire), peer));
        }
        let ahead = proxy.ledger.receive_bytes();
        let raced = race(&good, ahead).await;
        let (stream, peer) = raced.map_err(|_| UpstreamError::Connect)?;
        // Foxy writes complete heads and large pieces of bodies. So the kernel need not wait for more bytes
        // before it sends a packet (`TCP_NODELAY`).
        let _ = stream.set_nodelay(true);
        let own = (to.tls.as_ref(), &to.host[..]);
        let stream = match &to.parent {
            // The future is boxed. Otherwise it would enlarge the future of every request, and few requests
            // go through a parent.
            Some(through) => Box::pin(through_parent(proxy, counters, to, through, stream)).await?,
            None => secured(proxy, counters, own, stream).await?,
        };
        Ok((stream, peer))
    };
    let general = proxy.config.timeouts.connect;
    let limit = to.timeouts.connect.unwrap_or(general);
    let result = match tokio::time::timeout(limit, attempt).await {
        Ok(result) => result,
        Err(_) if named.get() => Err(UpstreamError::ConnectTimeout),
        Err(_) => Err(UpstreamError::NameService),
    };
    let now = proxy.clock.mono();
    match &result {
        Ok(_) => {
            counters.add(Event::UpstreamNew, 1);
            counters.origin.connected(now.since(began));
            proxy.unreachable.reached(to);
        }
        Err(error) => {
            counters.add(Event::UpstreamFailed, 1);
            proxy.unreachable.failed(to, *error, now.since(began), now);
        }
    }
    result
}

/// Returns the connection after its TLS handshake, if the origin uses TLS.
async fn secured(
    proxy: &Proxy,
    counters: &Counters,
    (tls, host): (Option<&OriginTls>, &str),
    stream: TcpStream,
) -> Result<OriginStream, UpstreamError> {
    Ok(match tls {
        None => OriginStream::Plain(stream),
        Some(tls) => OriginStream::Tls(encrypted(proxy, counters, (tls, host), stream).await?),
    })
}

/// Carries out a TLS handshake over a connection, and returns the encrypted connection.
async fn encrypted<S: Transport>(
    proxy: &Proxy,
    counters: &Counters,
    (tls, host): (&OriginTls, &str),
    stream: S,
) -> Result<Box<TlsStream<S>>, UpstreamError> {
    // An error here means that the host is not a valid name. No certificate can be valid for such a host.
    let session = tls.session(host);
    let session = session.map_err(|_| UpstreamError::Tls(Failure::WrongName))?;
    let stream = Box::new(TlsStream::new(stream, session, &proxy.ledger));
    // The future is boxed. Otherwise the state of a handshake would enlarge the future of every fetch.
    let done = Box::pin(stream.handshake()).await;
    done.map_err(UpstreamError::Tls)?;
    counters.add(Event::UpstreamHandshakes, 1);
    if stream.is_resumed() {
        counters.add(Event::UpstreamResumed, 1);
    }
    Ok(stream)
}

pub(crate) async fn resolve(
    proxy: &Proxy,
    counters: &Counters,
    host: &str,
) -> Result<std::sync::Arc<[IpAddr]>, UpstreamError> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok([ip].into());
    }
    let host = host.trim_end_matches('.');
    let now = proxy.clock.mono();
    let answer = match proxy.dns.get(host, now) {
        Some(answer) => answer,
        None => {
            counters.add(Event::DnsLookups, 1);
            let answer = proxy.resolver.resolve(host).await;
            proxy.dns.put(host, answer, proxy.clock.mono())
        }
    };
    answer.map_err(|error| match error {
        ResolveError::NoSuchName(_) => UpstreamError::NoSuchName,
        ResolveError::Unavailable => UpstreamError::NameService,
    })
}

/// Returns the connection for requests through a parent. `stream` is the connection to the parent. If the
/// destination needs a tunnel through the parent, the function opens the tunnel first.
async fn through_parent(
    proxy: &Proxy,
    counters: &Counters,
    to: &Destination,
    through: &Through,
    stream: TcpStream,
) -> Result<OriginStream, UpstreamError> {
    let parent = &through.parent;
    let (own, destination) = (to.tls.as_ref(), (&to.host[..], to.port));
    let Some(outer) = &parent.tls else {
        if !through.tunnel {
            return Ok(OriginStream::Plain(stream));
        }
        open_tunnel(&stream, parent, destination).await?;
        return secured(proxy, counters, (own, &to.host), stream).await;
    };
    let stream = encrypted(proxy, counters, (outer, &parent.host), stream).await?;
    if !through.tunnel {
        return Ok(OriginStream::Tls(stream));
    }
    open_tunnel(&*stream, parent, destination).await?;
    Ok(match own {
        None => OriginStream::Tls(stream),
        Some(tls) => {
            OriginStream::Nested(encrypted(proxy, counters, (tls, &to.host), *stream).await?)
        }
    })
}

/// Returns the addresses of a parent. If the destination behind the parent is an address, the guard checks
/// this address here. If the destination is a name, Foxy does not know its address, because the parent
/// resolves the name.
fn of_parent(
    proxy: &Proxy,
    to: &Destination,
    through: &Through,
    addresses: &[IpAddr],
) -> Result<Vec<SocketAddr>, UpstreamError> {
    let access = &proxy.config.access;
    if let Ok(ip) = to.host.parse::<IpAddr>() {
        let address = SocketAddr::new(ip, to.port);
        rule!(
            "guard: an address is judged before a parent is asked for it",
            guard::check(access, address),
            Ok(())
        )
        .map_err(UpstreamError::Forbidden)?;
    }
    let all = addresses
        .iter()
        .map(|ip| SocketAddr::new(*ip, through.parent.port));
    let own = |address: &SocketAddr| guard::check(access, *address) == Err(Forbidden::Own);
    let good: Vec<_> = all.filter(|address| !own(address)).collect();
    match good.is_empty() {
        true => Err(UpstreamError::Forbidden(Forbidden::Own)),
        false => Ok(interleave(good)),
    }
}

/// Returns the addresses that Foxy may connect to, in the order in which they are tried.
fn permitted(
    proxy: &Proxy,
    to: &Destination,
    addresses: &[IpAddr],
) -> Result<Vec<SocketAddr>, UpstreamError> {
    let mut refused = None;
    let mut good = Vec::new();
    for ip in addresses {
        let address = SocketAddr::new(*ip, to.port);
        match guard::check(&proxy.config.access, address) {
            Err(why)
                if rule!(
                    "guard: each address is judged before it is connected to",
                    !to.exempt,
                    false
                ) =>
            {
                refused = Some(why);
            }
            _ if rule!(
                "access: an address that a rule denies is not connected to",
                !to.reach.has(*ip),
                false
            ) =>
            {
                refused = Some(Forbidden::Rule);
            }
            _ => good.push(address),
        }
    }
    if good.is_empty() {
        return Err(refused.map_or(UpstreamError::NoSuchName, UpstreamError::Forbidden));
    }
    Ok(interleave(good))
}

/// Alternates IPv6 and IPv4 addresses, IPv6 first. The order within each family does not change (RFC 8305
/// section 4).
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let (six, four): (Vec<_>, Vec<_>) = addresses.into_iter().partition(SocketAddr::is_ipv6);
    let (mut six, mut four) = (six.into_iter(), four.into_iter());
    let mut ordered = Vec::new();
    loop {
        let (a, b) = (six.next(), four.next());
        if a.is_none() && b.is_none() {
            ordered.truncate(ATTEMPTS);
            return ordered;
        }
        ordered.extend(a);
        ordered.extend(b);
    }
}

type Attempt = Pin<Box<dyn Future<Output = io::Result<(TcpStream, SocketAddr)>>>>;

/// Prepares a connection. `ahead` is the size of its receive buffer in the kernel, which contains the bytes
/// that Foxy has not read yet. `None` means the limit of the system, which can be megabytes. An origin that
/// sends faster than the client reads would fill this memory.
fn attempt(to: SocketAddr, ahead: Option<usize>) -> Attempt {
    Box::pin(async move {
        let socket = match to {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if let Some(bytes) = ahead.and_then(|bytes| u32::try_from(bytes).ok()) {
            // The size of the receive buffer is set before the connection is made. So the first TCP window
            // that the peer gets already has this size.
            let _ = socket.set_recv_buffer_size(bytes);
        }
        Ok((socket.connect(to).await?, to))
    })
}

/// Returns the first connection that succeeds. The next address is tried when an attempt fails, or when an
/// attempt is not complete after [`STAGGER`]. When one attempt has succeeded, the other attempts are dropped.
async fn race(
    addresses: &[SocketAddr],
    ahead: Option<usize>,
) -> io::Result<(TcpStream, SocketAddr)> {
    let mut waiting = addresses.iter();
    let Some(first) = waiting.next() else {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    };
    if addresses.len() == 1 {
        return attempt(*first, ahead).await;
    }
    let mut running: Vec<Attempt> = vec![attempt(*first, ahead)];
    let mut stagger = Box::pin(tokio::time::sleep(STAGGER));
    let mut last_error = io::ErrorKind::ConnectionRefused.into();
    poll_fn(|cx| {
        loop {
            let mut at = 0;
            while at < running.len() {
                match running[at].as_mut().poll(cx) {
                    Poll::Ready(Ok(connected)) => return Poll::Ready(Ok(connected)),
                    Poll::Ready(Err(error)) => {
                        last_error = error;
                        drop(running.swap_remove(at));
                        // When an attempt fails, the next attempt starts immediately.
                        if let Some(next) = waiting.next() {
                            running.push(attempt(*next, ahead));
                        }
                    }
                    Poll::Pending => at += 1,
                }
            }
            if running.is_empty() {
                let error = std::mem::replace(&mut last_error, io::ErrorKind::Other.into());
                return Poll::Ready(Err(error));
            }
            if stagger.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let Some(next) = waiting.next() else {
                return Poll::Pending;
            };
            running.push(attempt(*next, ahead));
            let later = tokio::time::Instant::now() + STAGGER;
            stagger.as_mut().reset(later);
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_and_attempts_are_bounded() {
        let list = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|t| t.parse().unwrap()).collect()
        };
        let got = interleave(list(&["1.0.0.1:1", "1.0.0.2:1", "[::2]:1", "1.0.0.3:1"]));
        assert_eq!(
            got,
            list(&["[::2]:1", "1.0.0.1:1", "1.0.0.2:1", "1.0.0.3:1"])
        );
        let many = (0..50)
            .map(|n| SocketAddr::from(([1, 0, 0, n], 1)))
            .collect();
        assert_eq!(interleave(many).len(), ATTEMPTS);
    }

    #[tokio::test]
    async fn a_refused_address_does_not_stop_the_next() {
        // This socket is bound but does not listen, so no other process gets the port during the test.
        let dead =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        dead.bind(&any.into()).unwrap();
        let refused = dead.local_addr().unwrap().as_socket().unwrap();
        let alive = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let accepts = alive.local_addr().unwrap();
        let (_, to) = race(&[refused, refused, accepts], None).await.unwrap();
        assert_eq!(to, accepts);
        assert!(race(&[refused, refused], None).await.is_err());
    }
    #[tokio::test]
    async fn an_origin_sends_ahead_what_memory_allows() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = [listener.local_addr().unwrap()];
        let room = async |ahead| {
            let (stream, _) = race(&to, ahead).await.unwrap();
            socket2::SockRef::from(&stream).recv_buffer_size().unwrap()
        };
        // The kernel doubles the size that a program sets.
        assert_eq!(room(Some(16 << 10)).await, 32 << 10);
        assert!(room(None).await > 64 << 10, "the system's choice");
    }
}
