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
    Access, Compress, Gatekeeper, LocalResponses, Maintenance, MirrorSite, Mirrored, Mirrors,
    Objects, OriginTimeouts, Origins,
};

const DAY: u64 = 86_400;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// All settings of the proxy, as plain data. The program `foxy` reads them from files and flags.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Bounds on connections, message heads and memory.
    pub limits: Limits,
    /// Times for which the proxy waits for clients and origins.
    pub timeouts: Timeouts,
    /// Connections to origins.
    pub upstream: UpstreamConfig,
    /// Fetches that serve many clients at the same time.
    pub fill: FillConfig,
    /// Permissions of clients, and the destinations that can be reached.
    pub access: Access,
    /// Access rules, users, limits and parent proxies for the requests of clients; `None`: there are none.
    pub gatekeeper: Option<Arc<Gatekeeper>>,
    /// Hosts that browsers ask directly, without the proxy. Foxy writes them into the file `/proxy.pac` for
    /// browsers; `None`: there is no such file.
    pub pac: Option<Vec<foxy_access::HostPattern>>,
    /// Mirrors on the listeners of the forward proxy; `None`: there are none.
    pub mirrors: Option<Arc<Mirrors>>,
    /// Fields that Foxy adds.
    pub headers: HeaderConfig,
    /// The caching rules.
    pub rules: foxy_http_rules::Config,
    /// Caching rules of the operator for some hosts and paths (`[[rule]]`).
    pub user_rules: foxy_http_rules::RuleSet,
    /// Seed of all random numbers. Foxy combines the seed with the time of the start. In production, choose
    /// the seed at random.
    pub seed: u64,
}

foxy_base::settings! {
    /// Bounds on connections, message heads and memory.
    #[derive(Clone, Copy, Debug)]
    pub struct Limits {
        /// Largest number of client connections of all workers together. If a new connection exceeds this
        /// number, Foxy closes the oldest idle connection. If no connection is idle, Foxy closes the new
        /// connection. The number is at most half of the files that the system lets the process open.
        "connections" connections: usize = Plain::Number(16_384), Range::Count(1, 10_000_000);
        /// Largest number of connections of one client address (IPv6: of one /64 network). Connections
        /// beyond this number are closed at once. Trusted proxies have no such limit.
        "client_connections" client_connections: usize = Plain::Number(4096), Range::Count(1, 10_000_000);
        /// Largest size of a request or response head in bytes. An answer with a single field of more than
        /// 65,535 bytes is passed on and not stored.
        "head" head_bytes: usize = Plain::Number(64 * KIB), Range::Bytes(KIB, MIB);
        /// Largest number of fields in a head.
        "fields" head_fields: usize = Plain::Number(100), Range::Count(10, 128);
    }
    besides {
        /// Bytes that connections, buffers, send queues and fills (fetches from origins) together may use.
        memory: usize = 128 << 20;
    }
}

impl Limits {
    /// Returns the size in bytes to set for the receive buffer of a client connection. The kernel doubles
    /// this size. Returns `None` if there is enough memory for data that clients send before Foxy reads it.
    /// The buffer then keeps the system's size. With the smallest size, a head of more than 4 KiB needs one
    /// more round trip, but thousands of unfinished heads fit into the memory budget.
    pub(crate) const fn receive_bytes(&self) -> Option<usize> {
        match self.memory {
            0..=0xff_ffff => Some(4 << 10),
            0x100_0000..=0x5ff_ffff => Some(8 << 10),
            _ => None,
        }
    }
}

foxy_base::settings! {
    /// Times for which the proxy waits for clients and origins. A per-worker sweep enforces these times,
    /// so each of them is exact to about a quarter of a second.
    #[derive(Clone, Copy, Debug)]
    pub struct Timeouts {
        /// Longest time from the first byte of a request head to its end.
        "head" head: Duration = Plain::seconds(15), Range::Time(1, DAY);
        /// Longest time between two requests on one client connection.
        "idle" idle: Duration = Plain::seconds(75), Range::Time(1, DAY);
        /// Longest time without any progress while a body goes to or comes from a client.
        "progress" progress: Duration = Plain::seconds(60), Range::Time(1, DAY);
        /// Longest time to resolve the name of an origin and to connect to it. The attempts at all its
        /// addresses and the TLS handshake count together.
        "connect" connect: Duration = Plain::seconds(10), Range::Time(1, DAY);
        /// Longest time from the end of a request to the first byte of the origin's answer.
        "first_byte" first_byte: Duration = Plain::seconds(60), Range::Time(1, DAY);
        /// Longest time without any progress while a body comes from or goes to an origin.
        "upstream_progress" upstream_progress: Duration = Plain::seconds(60), Range::Time(1, DAY);
        /// Longest time without any byte in either direction of a tunnel.
        "tunnel" tunnel: Duration = Plain::seconds(600), Range::Time(1, 30 * DAY);
        /// Time from SIGTERM until unfinished requests are cut off.
        "drain" drain: Duration = Plain::seconds(20), Range::Time(0, DAY);
    }
}

foxy_base::settings! {
    /// Connections to origins.
    #[derive(Clone, Debug)]
    pub struct UpstreamConfig {
        /// Time for which an unused connection to an origin is kept.
        "idle" idle_max: Duration = Plain::seconds(30), Range::Time(0, DAY);
        /// Age of a connection to an origin after which the connection is not used for another request.
        "age" age_max: Duration = Plain::seconds(600), Range::Time(0, 30 * DAY);
        /// Largest number of connections to one destination that a worker keeps after they were unused for a
        /// second. The worker also keeps connections that were used within the last second, up to
        /// `idle_total`.
        "idle_per_destination" idle_per_destination: usize = Plain::Number(32), Range::Count(0, 100_000);
        /// Largest number of unused connections to all destinations that a worker keeps.
        "idle_total" idle_total: usize = Plain::Number(1024), Range::Count(0, 1_000_000);
        /// Largest number of fetches that wait for answer heads from one origin at the same time. Fetches
        /// that download a body do not count. One client has at most three quarters of these fetches.
        "origin_concurrency" origin_concurrency: usize = Plain::Number(256), Range::Count(1, 1_000_000);
        /// Largest number of requests that wait in the queue for a fetch from one origin. If the queue is
        /// full, a request gets 503.
        "origin_queue" origin_queue: usize = Plain::Number(4096), Range::Count(0, 10_000_000);
        /// Largest number of names in the DNS cache.
        "dns_names" dns_names: usize = Plain::Number(10_000), Range::Count(1, 10_000_000);
    }
    besides {
        /// Name servers to ask; empty for the name servers of the system.
        name_servers: Vec<SocketAddr> = Vec::new();
        /// TLS settings of the forward proxy for origins.
        tls: OriginTls = OriginTls::system();
    }
}

foxy_base::settings! {
    /// Fetches that serve many clients at the same time.
    #[derive(Clone, Copy, Debug)]
    pub struct FillConfig {
        /// Bytes of a running fetch that are kept in memory for the requests that share the fetch. If the
        /// object is stored while it arrives, Foxy keeps at least one fragment, which usually has 256 KiB. This
        /// limit does not apply if the whole object is kept in memory.
        "window" window: usize = Plain::Number(MIB), Range::Bytes(64 * KIB, GIB);
        /// Time for which a slow client may delay the other clients that share its fetch. After that time,
        /// Foxy reads the remaining bytes for the slow client from the store, or fetches them from the
        /// origin.
        "lag" lag: Duration = Plain::seconds(2), Range::Time(0, DAY);
        /// If all clients have left a fetch whose answer is to be stored, the fetch continues if at most this
        /// number of bytes is missing. It also continues if `finish_percent` permits it.
        "finish_remaining" finish_remaining: u64 = Plain::Number(MIB), Range::Bytes(0, GIB);
        /// If all clients have left a fetch whose answer is to be stored, the fetch continues if at least
        /// this percentage of the answer has arrived. It also continues if `finish_remaining` permits it.
        "finish_percent" finish_percent: u8 = Plain::Number(90), Range::Count(0, 100);
    }
    besides {
        /// Bytes that all running fetches together may keep in memory.
        memory: usize = 64 << 20;
    }
}

/// The treatment of a field that describes the client to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedMode {
    /// Send the field of the client unchanged, and add nothing.
    Transparent,
    /// Add the peer's address to the field that the peer sent.
    Append,
    /// Send a field with only the client's address.
    Replace,
    /// Send no such field.
    Remove,
}

/// Fields that Foxy adds.
#[derive(Clone, Debug)]
pub struct HeaderConfig {
    /// Foxy's name in `Cache-Status`.
    pub name: String,
    /// The part of the name that distinguishes this Foxy from other instances with the same name. `Via`
    /// contains `name-instance`. If Foxy receives a request whose `Via` contains this text, the request is in
    /// a loop. An empty text stands for eight hexadecimal digits that Foxy chooses at the start.
    pub instance: String,
    /// Treatment of `X-Forwarded-For`. `None`: Foxy appends the peer's address, but replaces the field of an
    /// untrusted client of a site.
    pub x_forwarded_for: Option<ForwardedMode>,
    /// Treatment of `Forwarded` (RFC 7239). `None`: Foxy sends the field unchanged, but removes the field of
    /// an untrusted client of a site.
    pub forwarded: Option<ForwardedMode>,
    /// True if answers contain `Cache-Status` (RFC 9211).
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

/// The role of a listener, or of a request: it determines how Foxy handles the request.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "roles are few, and requests share them"
)]
pub enum Role {
    /// A forward proxy: its clients send requests with absolute URLs, and `CONNECT` requests.
    Forward,
    /// A reverse proxy: a site. Its objects have their own partition of the cache.
    Site(Site),
    /// The role of a request on a listener with several sites, until host and path of the request have
    /// selected a site. Also the role of a request for which there is no site.
    Undecided,
}

impl Role {
    /// Returns the partition of the cache for requests of this role. Keys of objects begin with it, so
    /// partitions do not share objects.
    #[must_use]
    pub fn partition(&self) -> &str {
        match self {
            Self::Forward => foxy_http_rules::rules::FORWARD,
            Self::Site(site) => &site.name,
            Self::Undecided => "-",
        }
    }

    /// Returns the name in the operator's configuration: `forward`, or the name of the site or mirror. It can
    /// differ from the partition, because a mirror can have several partitions.
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
    /// Returns the settings for answers that the site makes without its origins.
    pub(crate) const fn local_responses(&self) -> Option<&LocalResponses> {
        match self {
            Self::Site(site) => Some(&site.local_responses),
            _ => None,
        }
    }

    /// Returns the rewriting rules of the site.
    #[inline]
    pub(crate) fn rewriting(&self) -> Option<&Rewriting> {
        match self {
            Self::Site(site) => site.rewriting.as_deref(),
            _ => None,
        }
    }

    /// Returns the origins of the site.
    #[inline]
    pub(crate) fn origins(&self) -> Option<&Origins> {
        match self {
            Self::Site(site) => site.origins.as_ref(),
            _ => None,
        }
    }

    /// Returns the facts about the mirror, if this role is for requests to a mirror.
    #[inline]
    pub(crate) fn mirrored(&self) -> Option<&Arc<Mirrored>> {
        match self {
            Self::Site(site) => site.mirror.as_ref(),
            _ => None,
        }
    }

    /// Returns the settings of the build cache, if the site is a build cache.
    #[inline]
    pub(crate) const fn objects(&self) -> Option<&Arc<Objects>> {
        match self {
            Self::Site(site) => site.objects.as_ref(),
            _ => None,
        }
    }

    /// True if this role is for documents of a mirror. Foxy rewrites these documents.
    #[inline]
    pub(crate) fn is_document(&self) -> bool {
        self.mirrored().is_some_and(|part| part.is_document())
    }

    /// Returns the compression settings of the site.
    #[inline]
    pub(crate) fn compress(&self) -> Option<&Compress> {
        match self {
            Self::Site(site) => site.compress.as_deref(),
            _ => None,
        }
    }

    /// True if the site asks no origin at present: it is a build cache, or it is under maintenance.
    pub(crate) fn is_closed(&self) -> bool {
        let local_responses = self.local_responses();
        self.objects().is_some()
            || local_responses.is_some_and(|responses| responses.maintenance != Maintenance::Off)
    }
}

/// A site: a reverse proxy for one origin or several origins, a part of a mirror, or a build cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    /// Name of the site's partition of the cache. It consists of letters, digits, `-`, `.` and `:`, and is
    /// not `forward`.
    pub name: String,
    /// Name or address of the origin.
    pub host: String,
    /// Port of the origin.
    pub port: u16,
    /// TLS settings for the origin; `None`: no TLS.
    pub tls: Option<OriginTls>,
    /// The origins of the site, with statistics about the origins and about the site's requests. All origins
    /// share the name in `host`. `None`: there is one origin, without statistics.
    pub origins: Option<Origins>,
    /// Longest times for which the site waits for its origins.
    pub timeouts: OriginTimeouts,
    /// Settings for answers that the site makes without its origins.
    pub local_responses: LocalResponses,
    /// Rewriting of fields and URLs. `None`: there is none.
    pub rewriting: Option<Arc<Rewriting>>,
    /// Compression of answers that are stored uncompressed; `None`: they are not compressed.
    pub compress: Option<Arc<Compress>>,
    /// True if the origin receives the client's `Host`, false if the origin receives its own name.
    pub preserve_host: bool,
    /// Determines which of the requests that wait for a running fetch may get its answer.
    pub collapse: Collapse,
    /// Clients that may use the site; `None`: all.
    pub allow_clients: Option<Vec<IpNet>>,
    /// Names in certificates of clients that may use the site; `None`: all clients may use it.
    pub allow_client_names: Option<Vec<Pattern>>,
    /// TLS settings of the site, if its clients must show certificates. Requests are accepted only on
    /// connections whose handshake used these settings, because only there the client's certificate was
    /// checked.
    pub verified_by: Option<ServerTls>,
    /// The facts about the mirror, if this site belongs to a mirror.
    pub mirror: Option<Arc<Mirrored>>,
    /// The settings of a build cache: clients store the objects themselves, and no origin is asked.
    pub objects: Option<Arc<Objects>>,
}

impl Site {
    /// Returns the scheme of the origin's URLs.
    pub(crate) const fn scheme(&self) -> Scheme {
        match self.tls {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        }
    }
}

/// Determines which of the requests that wait for a running fetch may get its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collapse {
    /// A waiting request gets the answer if the answer is fresh for this request when the answer arrives.
    #[default]
    Fresh,
    /// A waiting request also gets the answer if the answer would have been fresh when the request arrived.
    /// This choice is for lifetimes that are shorter than the origin's response time.
    Arrived,
}
