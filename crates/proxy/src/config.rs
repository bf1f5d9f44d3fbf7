//! Settings of the proxy. Defaults suit a small machine and are safe on the Internet.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use foxy_http_rules::rewrite::Rewriting;
use foxy_http_rules::rules::Pattern;
use foxy_http1::Scheme;
use foxy_tls::{OriginTls, ServerTls};
use ipnet::IpNet;

use crate::{
    Access, Compress, Gatekeeper, Maintenance, Manner, MirrorSite, Mirrored, Mirrors, Objects,
    OriginTimeouts, Origins,
};

/// Everything the proxy needs to know. Plain data: reading files and flags is the binary's work.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Bounds on what one client can use.
    pub limits: Limits,
    /// How long the proxy waits for others.
    pub timeouts: Timeouts,
    /// Connections to origins.
    pub upstream: UpstreamConfig,
    /// Fetches that serve many clients.
    pub fill: FillConfig,
    /// The rules for clients and their destinations.
    pub access: Access,
    /// Rules, users and limits of requests; `None`: there are none.
    pub gatekeeper: Option<Arc<Gatekeeper>>,
    /// Hosts that `/proxy.pac` says are asked directly; `None`: there is no such file.
    pub pac: Option<Vec<foxy_access::HostPattern>>,
    /// Mirrors on the listeners of the forward proxy; `None`: there are none.
    pub mirrors: Option<Arc<Mirrors>>,
    /// Fields that Foxy adds.
    pub headers: HeaderConfig,
    /// The caching rules.
    pub rules: foxy_http_rules::Config,
    /// Rules of the operator for some hosts and paths.
    pub user_rules: foxy_http_rules::RuleSet,
    /// Random numbers follow from it and the time of the start. Draw it at random in production.
    pub seed: u64,
}

/// Bounds on what one client can use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Client connections over all workers. Beyond, the oldest idle one is closed for a new one;
    /// if none is idle, the new one is.
    pub connections: usize,
    /// Client connections of one address (IPv6: of one /64); more are closed at once. Trusted
    /// proxies have no such limit.
    pub client_connections: usize,
    /// Bytes that connections, buffers, queues and fills may use together.
    pub memory: usize,
    /// Bytes of a request head, and of a response head.
    pub head_bytes: usize,
    /// Fields in a head. The setting allows up to 128, the codec up to 256.
    pub head_fields: usize,
}

impl Limits {
    /// Receive buffer of clients in bytes, which the kernel doubles; `None`: the system's, where there is
    /// memory for what clients send ahead. With the least of memory a head of more than 4 KiB costs
    /// another round trip, and thousands of unfinished heads fit into the budget.
    pub(crate) const fn receive_bytes(&self) -> Option<usize> {
        match self.memory {
            0..=0xff_ffff => Some(4 << 10),
            0x100_0000..=0x5ff_ffff => Some(8 << 10),
            _ => None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            client_connections: 4096,
            memory: 128 << 20,
            head_bytes: 64 << 10,
            head_fields: 100,
        }
    }
}

/// How long the proxy waits for others. A per-worker sweep enforces them, so each is exact to
/// about a quarter of a second.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the first byte of a request head to its end.
    pub head: Duration,
    /// Between two requests on one client connection.
    pub idle: Duration,
    /// Without any progress while a body goes to or comes from a client.
    pub progress: Duration,
    /// To resolve a name and connect to an origin, all addresses together.
    pub connect: Duration,
    /// From the end of a request to the first byte of the origin's answer.
    pub first_byte: Duration,
    /// Without any progress while a body comes from or goes to an origin.
    pub upstream_progress: Duration,
    /// Without any byte in either direction of a tunnel.
    pub tunnel: Duration,
    /// From the call of [`Proxy::shutdown`](crate::Proxy::shutdown) until unfinished requests are cut off.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(15),
            idle: Duration::from_secs(75),
            progress: Duration::from_secs(60),
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(60),
            upstream_progress: Duration::from_secs(60),
            tunnel: Duration::from_secs(600),
            drain: Duration::from_secs(20),
        }
    }
}

/// Connections to origins.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// How long an unused connection is kept.
    pub idle_max: Duration,
    /// How old a connection may become before it is not used again.
    pub age_max: Duration,
    /// Connections kept per destination and worker that have been unused for a second. Those that were used
    /// since are kept beyond it.
    pub idle_per_destination: usize,
    /// Unused connections kept per worker.
    pub idle_total: usize,
    /// Name servers to ask; empty for those of the system.
    pub name_servers: Vec<SocketAddr>,
    /// Names in the shared DNS cache.
    pub dns_names: usize,
    /// Fetches of one origin that may wait for the head of an answer at the same time.
    pub origin_concurrency: usize,
    /// Requests that may queue for a fetch; more are answered with 503.
    pub origin_queue: usize,
    /// How the forward proxy speaks TLS to origins.
    pub tls: OriginTls,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            idle_max: Duration::from_secs(30),
            age_max: Duration::from_secs(600),
            idle_per_destination: 32,
            idle_total: 1024,
            name_servers: Vec::new(),
            dns_names: 10_000,
            origin_concurrency: 256,
            origin_queue: 4096,
            tls: OriginTls::system(),
        }
    }
}

/// Fetches that serve many clients.
#[derive(Clone, Copy, Debug)]
pub struct FillConfig {
    /// Bytes of a running fill kept for its followers when the whole object is not kept.
    pub window: usize,
    /// How long a follower may hold the others back before it goes on alone.
    pub lag: Duration,
    /// Bytes that all fills together may hold.
    pub memory: usize,
    /// A fill without clients goes on if at most this many bytes are missing ...
    pub finish_remaining: u64,
    /// ... or if at least this share of it is there, in percent.
    pub finish_percent: u8,
}

impl Default for FillConfig {
    fn default() -> Self {
        Self {
            window: 1 << 20,
            lag: Duration::from_secs(2),
            memory: 64 << 20,
            finish_remaining: 1 << 20,
            finish_percent: 90,
        }
    }
}

/// The treatment of a field that tells the origin about the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedMode {
    /// Pass on what the client sent, add nothing.
    Transparent,
    /// Add the peer's address to the field that it sent.
    Append,
    /// Send the client's address alone.
    Replace,
    /// Send none.
    Remove,
}

/// Fields that Foxy adds.
#[derive(Clone, Debug)]
pub struct HeaderConfig {
    /// Foxy's name in `Cache-Status`.
    pub name: String,
    /// The part of the name that tells this Foxy from others of the same name. `Via` says
    /// `name-instance`, and a request that comes back with exactly that is a loop. Empty: eight
    /// hexadecimal digits drawn at the start.
    pub instance: String,
    /// `X-Forwarded-For`. `None`: append, but replace the field of an untrusted client of a site.
    pub x_forwarded_for: Option<ForwardedMode>,
    /// `Forwarded` (RFC 7239). `None`: pass on, but remove the field of an untrusted client of a
    /// site.
    pub forwarded: Option<ForwardedMode>,
    /// Answers carry `Cache-Status` (RFC 9211).
    pub cache_status: bool,
}

impl Default for HeaderConfig {
    fn default() -> Self {
        Self {
            name: "foxy".to_owned(),
            instance: String::new(),
            x_forwarded_for: None,
            forwarded: None,
            cache_status: true,
        }
    }
}

/// Purpose of a listener.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "roles are few, and requests share them"
)]
pub enum Role {
    /// A forward proxy: absolute-form requests and `CONNECT`.
    Forward,
    /// A reverse proxy for one origin, in a partition of its own.
    Site(Site),
    /// One of several sites; the request has not said which, or there is none for it.
    Undecided,
}

impl Role {
    /// The partition of the cache that its requests are in.
    #[must_use]
    pub fn partition(&self) -> &str {
        match self {
            Self::Forward => foxy_http_rules::rules::FORWARD,
            Self::Site(site) => &site.name,
            Self::Undecided => "-",
        }
    }

    /// The name that the operator knows it by: `forward`, or that of the site or mirror, which can have
    /// several partitions.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Site(site) => match &site.mirror {
                Some(part) => part.name(),
                None => &site.name,
            },
            _ => self.partition(),
        }
    }
}

impl Config {
    /// The mirrors, in the order of the configuration.
    pub(crate) fn mirror_sites(&self) -> &[MirrorSite] {
        let mirrors = self.mirrors.as_ref();
        mirrors.map_or(&[], |mirrors| &mirrors.sites)
    }
}

impl Role {
    /// How its site answers apart from the origins.
    pub(crate) const fn manner(&self) -> Option<&Manner> {
        match self {
            Self::Site(site) => Some(&site.manner),
            _ => None,
        }
    }

    /// Rewriting rules of its site.
    #[inline]
    pub(crate) fn rewriting(&self) -> Option<&Rewriting> {
        match self {
            Self::Site(site) => site.rewriting.as_deref(),
            _ => None,
        }
    }

    /// The origins of its site.
    #[inline]
    pub(crate) fn origins(&self) -> Option<&Origins> {
        match self {
            Self::Site(site) => site.origins.as_ref(),
            _ => None,
        }
    }

    /// The part of a mirror that it is for.
    #[inline]
    pub(crate) fn mirrored(&self) -> Option<&Arc<Mirrored>> {
        match self {
            Self::Site(site) => site.mirror.as_ref(),
            _ => None,
        }
    }

    /// The settings of the build cache that it is.
    #[inline]
    pub(crate) const fn objects(&self) -> Option<&Arc<Objects>> {
        match self {
            Self::Site(site) => site.objects.as_ref(),
            _ => None,
        }
    }

    /// True if its answers are documents that are rewritten.
    #[inline]
    pub(crate) fn is_document(&self) -> bool {
        self.mirrored().is_some_and(|part| part.is_document())
    }

    /// How its site compresses.
    #[inline]
    pub(crate) fn compress(&self) -> Option<&Compress> {
        match self {
            Self::Site(site) => site.compress.as_deref(),
            _ => None,
        }
    }

    /// True if its origins are not asked now.
    pub(crate) fn is_closed(&self) -> bool {
        let manner = self.manner();
        self.objects().is_some()
            || manner.is_some_and(|manner| manner.maintenance != Maintenance::Off)
    }
}

/// One origin behind a reverse listener.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    /// The partition's name: letters, digits, `-`, `.`, `:`; not `forward`.
    pub name: String,
    /// Name or address of the origin.
    pub host: String,
    /// Port of the origin.
    pub port: u16,
    /// How TLS is spoken to the origin; `None`: it is not.
    pub tls: Option<OriginTls>,
    /// Its origins, with the figures about them and about its requests. All are asked under the
    /// name `host`. `None`: one, without figures.
    pub origins: Option<Origins>,
    /// How long it waits for its origins.
    pub timeouts: OriginTimeouts,
    /// How it answers apart from its origins.
    pub manner: Manner,
    /// Rewriting of fields and URLs, if there is any.
    pub rewriting: Option<Arc<Rewriting>>,
    /// Compression of what is stored plain, if it is wanted.
    pub compress: Option<Arc<Compress>>,
    /// Whether the origin receives the client's `Host` (true) or its own name (false).
    pub preserve_host: bool,
    /// Waiting requests that take the answer of a running fetch.
    pub collapse: Collapse,
    /// Clients that may use it; `None`: all.
    pub allow_clients: Option<Vec<IpNet>>,
    /// Names of clients' certificates that may use it; `None`: all.
    pub allow_client_names: Option<Vec<Pattern>>,
    /// Connections to it must have been made with these certificates, because clients show their own
    /// there.
    pub verified_by: Option<ServerTls>,
    /// The part of a mirror that it is.
    pub mirror: Option<Arc<Mirrored>>,
    /// Clients store the objects themselves; its origin is asked for nothing.
    pub objects: Option<Arc<Objects>>,
}

impl Site {
    /// The scheme of its origin's URLs.
    pub(crate) const fn scheme(&self) -> Scheme {
        match self.tls {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        }
    }
}

/// Waiting requests that take the answer of a running fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collapse {
    /// Requests for which the answer is fresh when it arrives.
    #[default]
    Fresh,
    /// Also requests for which it was fresh when they arrived: for lifetimes shorter than the
    /// origin's response time.
    Arrived,
}
