//! Settings of the proxy. Defaults suit a small machine and are safe on the Internet.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::settings::{Plain, Range};
use foxy_http_rules::rewrite::Rewriting;
use foxy_http_rules::rules::Pattern;
use foxy_http1::Scheme;
use foxy_tls::{OriginTls, ServerTls};
use ipnet::IpNet;

use crate::{
    Access, Compress, Gatekeeper, Maintenance, Manner, MirrorSite, Mirrored, Mirrors, Objects,
    OriginTimeouts, Origins,
};

const DAY: u64 = 86_400;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

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

foxy_base::settings! {
    /// Bounds on what one client can use.
    #[derive(Clone, Copy, Debug)]
    pub struct Limits {
        /// Client connections over all workers. For a new one beyond that the oldest idle one is closed;
        /// if none is idle, the new one is. At most half of the files that the system lets the process
        /// open.
        "connections" connections: usize = Plain::Number(16_384), Range::Count(1, 10_000_000);
        /// Connections of one client address (IPv6: of one /64 network); more are closed at once.
        /// Trusted proxies have no such limit.
        "client_connections" client_connections: usize = Plain::Number(4096), Range::Count(1, 10_000_000);
        /// Bytes of a request or response head. An answer with a single field of more than 65,535 bytes
        /// is passed on and not stored.
        "head" head_bytes: usize = Plain::Number(64 * KIB), Range::Bytes(KIB, MIB);
        /// Fields in a head.
        "fields" head_fields: usize = Plain::Number(100), Range::Count(10, 128);
    }
    besides {
        /// Bytes that connections, buffers, queues and fills may use together.
        memory: usize = 128 << 20;
    }
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

foxy_base::settings! {
    /// How long the proxy waits for others. A per-worker sweep enforces them, so each is exact to
    /// about a quarter of a second.
    #[derive(Clone, Copy, Debug)]
    pub struct Timeouts {
        /// From the first byte of a request head to its end.
        "head" head: Duration = Plain::seconds(15), Range::Time(1, DAY);
        /// Between two requests on one client connection.
        "idle" idle: Duration = Plain::seconds(75), Range::Time(1, DAY);
        /// Without any progress while a body goes to or comes from a client.
        "progress" progress: Duration = Plain::seconds(60), Range::Time(1, DAY);
        /// To resolve a name and connect to an origin, all its addresses and the TLS handshake together.
        "connect" connect: Duration = Plain::seconds(10), Range::Time(1, DAY);
        /// From the end of a request to the first byte of the origin's answer.
        "first_byte" first_byte: Duration = Plain::seconds(60), Range::Time(1, DAY);
        /// Without any progress while a body comes from or goes to an origin.
        "upstream_progress" upstream_progress: Duration = Plain::seconds(60), Range::Time(1, DAY);
        /// Without any byte in either direction of a tunnel.
        "tunnel" tunnel: Duration = Plain::seconds(600), Range::Time(1, 30 * DAY);
        /// From SIGTERM until unfinished requests are cut off.
        "drain" drain: Duration = Plain::seconds(20), Range::Time(0, DAY);
    }
}

foxy_base::settings! {
    /// Connections to origins.
    #[derive(Clone, Debug)]
    pub struct UpstreamConfig {
        /// How long an unused connection to an origin is kept.
        "idle" idle_max: Duration = Plain::seconds(30), Range::Time(0, DAY);
        /// How old such a connection may become before it is not used again.
        "age" age_max: Duration = Plain::seconds(600), Range::Time(0, 30 * DAY);
        /// Connections kept per destination and worker that have been unused for a second. Those that
        /// were used within it are kept beyond that, up to `idle_total`.
        "idle_per_destination" idle_per_destination: usize = Plain::Number(32), Range::Count(0, 100_000);
        /// Unused connections kept per worker.
        "idle_total" idle_total: usize = Plain::Number(1024), Range::Count(0, 1_000_000);
        /// Fetches that may wait for answer heads from one origin at the same time. Downloads under way
        /// do not count. One client has at most three quarters of them.
        "origin_concurrency" origin_concurrency: usize = Plain::Number(256), Range::Count(1, 1_000_000);
        /// Requests that may queue for such a fetch; more are answered with 503.
        "origin_queue" origin_queue: usize = Plain::Number(4096), Range::Count(0, 10_000_000);
        /// Names in the DNS cache.
        "dns_names" dns_names: usize = Plain::Number(10_000), Range::Count(1, 10_000_000);
    }
    besides {
        /// Name servers to ask; empty for those of the system.
        name_servers: Vec<SocketAddr> = Vec::new();
        /// How the forward proxy speaks TLS to origins.
        tls: OriginTls = OriginTls::system();
    }
}

foxy_base::settings! {
    /// Fetches that serve many clients.
    #[derive(Clone, Copy, Debug)]
    pub struct FillConfig {
        /// Bytes of a running fetch kept for its followers when the whole object is not kept.
        "window" window: usize = Plain::Number(MIB), Range::Bytes(64 * KIB, GIB);
        /// How long a slow follower may hold the others back before it goes on alone.
        "lag" lag: Duration = Plain::seconds(2), Range::Time(0, DAY);
        /// A fetch that all clients have left goes on if at most this much is missing ...
        "finish_remaining" finish_remaining: u64 = Plain::Number(MIB), Range::Bytes(0, GIB);
        /// ... or if at least this many percent of it are there.
        "finish_percent" finish_percent: u8 = Plain::Number(90), Range::Count(0, 100);
    }
    besides {
        /// Bytes that all fills together may hold.
        memory: usize = 64 << 20;
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
