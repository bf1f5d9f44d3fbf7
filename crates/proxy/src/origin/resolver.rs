//! Resolves names to addresses. Tests use an implementation with fixed names, and the proxy uses the system's
//! resolver.

use std::collections::HashMap;
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};

/// Addresses of a name, in the order in which they are tried, and the time for which they may be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The addresses. There is at least one.
    pub addresses: Vec<IpAddr>,
    /// Time for which the answer may be reused.
    pub ttl: Duration,
}

/// Reason why a name has no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The name does not exist or has no address. This answer may be kept for the given time.
    NoSuchName(Duration),
    /// No name server gave an answer.
    Unavailable,
}

/// The future that returns the answer of a [`Resolver`].
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<Resolved, ResolveError>> + Send + 'a>>;

/// Looks names up. The caller caches the answers, by their time to live. Dropping the future cancels the
/// lookup safely.
pub trait Resolver: Send + Sync + Debug {
    /// Returns the addresses of `name`. The name is a host name in lower case, without a port, and is not an
    /// address.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// Fixed names, for tests and for machines without a name service.
#[derive(Clone, Debug, Default)]
pub struct FixedNames {
    names: HashMap<String, Vec<IpAddr>>,
}

impl FixedNames {
    /// Adds a name. It replaces an earlier entry for the same name.
    #[must_use]
    pub fn with(mut self, name: &str, addresses: &[IpAddr]) -> Self {
        self.names
            .insert(name.to_ascii_lowercase(), addresses.to_vec());
        self
    }
}

impl Resolver for FixedNames {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        let ttl = Duration::from_secs(60);
        let answer = match self.names.get(name) {
            Some(addresses) => Ok(Resolved {
                addresses: addresses.clone(),
                ttl,
            }),
            None => Err(ResolveError::NoSuchName(ttl)),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// The resolver that asks name servers and reads `/etc/hosts`. The name servers come from `/etc/resolv.conf`,
/// or from the caller of [`new`](Self::new).
#[derive(Clone, Debug, Default)]
pub struct SystemResolver {
    servers: Vec<SocketAddr>,
}

impl SystemResolver {
    /// Makes a resolver that asks `servers`, or the name servers of the system if `servers` is empty.
    #[must_use]
    pub fn new(servers: &[SocketAddr]) -> Self {
        Self {
            servers: servers.to_vec(),
        }
    }
}

thread_local! {
    // The connections of a resolver live on the runtime that opened them, so every worker has its own
    // resolver.
    static LOCAL: std::cell::OnceCell<Option<TokioResolver>> = const { std::cell::OnceCell::new() };
}

fn local_resolver(servers: &[SocketAddr]) -> Option<TokioResolver> {
    LOCAL.with(|cell| cell.get_or_init(|| build(servers)).clone())
}

fn build(servers: &[SocketAddr]) -> Option<TokioResolver> {
    let builder = if servers.is_empty() {
        TokioResolver::builder_tokio()
    } else {
        let servers = servers.iter().map(|at| name_server(*at)).collect();
        let config = ResolverConfig::from_name_servers(servers);
        let runtime = TokioRuntimeProvider::default();
        Ok(TokioResolver::builder_with_config(config, runtime))
    };
    let built = builder.and_then(|mut builder| {
        // The shared cache in front of this resolver keeps the answers.
        builder.options_mut().cache_size = 0;
        builder.options_mut().timeout = Duration::from_secs(3);
        builder.build()
    });
    match built {
        Ok(resolver) => Some(resolver),
        Err(error) => {
            tracing::error!(%error, "the system's name service is not usable: names cannot be resolved");
            None
        }
    }
}

fn name_server(at: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(at.ip());
    for connection in &mut server.connections {
        connection.port = at.port();
    }
    server
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        if name == "localhost" || name.ends_with(".localhost") {
            // RFC 6761 section 6.3: `localhost` must never be resolved over the network.
            return Box::pin(std::future::ready(Ok(Resolved {
                addresses: vec![
                    IpAddr::V4(Ipv4Addr::LOCALHOST),
                    IpAddr::V6(Ipv6Addr::LOCALHOST),
                ],
                ttl: Duration::from_secs(3600),
            })));
        }
        let resolver = local_resolver(&self.servers);
        Box::pin(async move {
            let Some(resolver) = resolver else {
                return Err(ResolveError::Unavailable);
            };
            // Without the final dot, the resolver would also try the name with the domains of the system's
            // search list.
            let absolute = format!("{}.", name.trim_end_matches('.'));
            match resolver.lookup_ip(absolute).await {
                Ok(answer) => resolved(answer.iter().collect(), ttl_of(&answer)),
                Err(error) => Err(failure(&error)),
            }
        })
    }
}

fn resolved(addresses: Vec<IpAddr>, ttl: Duration) -> Result<Resolved, ResolveError> {
    if addresses.is_empty() {
        return Err(ResolveError::NoSuchName(ttl));
    }
    Ok(Resolved { addresses, ttl })
}

fn ttl_of(answer: &hickory_resolver::lookup_ip::LookupIp) -> Duration {
    let shortest = answer.as_lookup().answers().iter().map(|r| r.ttl).min();
    Duration::from_secs(u64::from(shortest.unwrap_or(0)))
}

fn failure(error: &NetError) -> ResolveError {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => {
            let ttl = none.negative_ttl.unwrap_or(10);
            ResolveError::NoSuchName(Duration::from_secs(u64::from(ttl)))
        }
        _ => ResolveError::Unavailable,
    }
}
