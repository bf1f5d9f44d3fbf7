//! The proxy itself: listeners, routes, fills, origins.
//!
//! Each core has one [`Worker`] with a single-threaded runtime and its own listening sockets. All workers
//! share one [`Proxy`]. The steps of a request are: accept, parse, route, key, lookup, decide. The answer
//! then comes from memory, from a disk, from a running fill or from the origin; see `docs/architecture.md`.
//!
//! The rooms (top-level modules) are listed below, highest layer first. Each room may use the rooms below it:
//! - `client`: workers, listening sockets, connections; requests that are answered immediately
//! - `exchange`: requests that take longer: large answers, fetches, methods that do not concern the cache,
//!   purges
//! - `fill`: fetches that several requests share, and the task that stores the fetched objects
//! - `origin`: names, connections and pools of origins, the choice among several origins, parents, registries
//! - `mirrors`: requests for mirrors of package registries, digests of artefacts, rewriting of documents
//! - `cache`: keys, lookup, the grant (the permission to send a stored answer), answers out of the store,
//!   purging
//! - `http`: byte streams (TCP and TLS), the client's HTTP/1.1 connection, routes, heads of requests and of
//!   answers
//! - `state`: settings, state of process and workers, the ledger (account) of memory, counters, log records
//! - `sites`: the table of sites, and the part of a site's behaviour that does not depend on its origins
//! - `access`: lists of clients, rules, logins, limits, the guard of destinations
//!
//! There are two exceptions. `state` contains tables of `fill`, `origin`, `mirrors`, `cache` and `http`,
//! because these tables must exist as long as a worker or the process. `cache` uses `fill` for two things.
//! `cache::gate` requires a proof from `fill` that a request itself started the fetch of its answer, and
//! `cache::purge` invalidates running fills.

mod access;
mod cache;
mod client;
mod exchange;
mod fill;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod http;
mod mirrors;
mod origin;
#[cfg(test)]
mod simulation;
mod sites;
mod state;
#[cfg(test)]
mod testing;

pub use access::gatekeeper::{AccessQuestion, Gatekeeper, Limit, Per, plain_path};
pub use access::logins::{Helper, LoginToken, Logins, LoginsConfig};
pub use access::parents::{ParentBalance, ParentGroup, ParentServer};
pub use access::settings::{Access, LocalAddresses};
pub use access::token::{TOKEN_FIELD, Token};
pub use cache::listing::Listed;
pub use cache::purge::{Began, Purged, normalised};
#[cfg(feature = "stand-in")]
pub use cache::stand_in::{Asked, StandIn};
pub use cache::why::{StoredWhy, Why, WhyRequest};
pub use client::listen::listener::{Listener, Serves, bind, can_bind};
pub use client::listen::renewal::{Renewal, Renewals, RenewedListener, Renewer};
pub use client::worker::Worker;
pub use foxy_access as access_rules;
pub use foxy_http_rules as rules;
pub use foxy_mirror as mirror;
pub use mirrors::{Login, MirrorPart, MirrorSite, Mirrored, Mirrors, PublicUrl};
pub use origin::origins::{
    Ailment, Balance, Check, HealthRules, HealthState, ORIGINS_MAX, Origin, OriginCounts,
    OriginState, Origins, OriginsConfig, Recently,
};
pub use origin::{FixedNames, ResolveError, Resolved, Resolver, Resolving, SystemResolver};
pub use sites::compress::Compress;
pub use sites::local_responses::{ErrorPage, LocalResponses, Maintenance, OriginTimeouts, ToHttps};
pub use sites::objects::{Objects, Writers};
pub use sites::table::{Clash, NoSite, SiteNames, SiteTable};
pub use state::config::{
    Collapse, Config, FillConfig, ForwardedMode, HeaderConfig, Limits, Role, Site, Timeouts,
    UpstreamConfig,
};
pub use state::counters::{
    BUCKETS, CACHED, CLASSES, Counters, Event, Latency, OriginTotals, SiteTotals, Totals, Trouble,
};
pub use state::ledger::Use;
pub use state::log::{Details, LogRecord, LogSink, NoLog};
pub use state::outcome::Outcome;
pub use state::proxy::Proxy;
pub use state::recent::Recent;
pub use state::request_id::RequestId;
pub use state::shared::Shared;
