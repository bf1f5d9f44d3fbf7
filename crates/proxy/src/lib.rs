//! The proxy itself: listeners, routes, fills, upstream.
//!
//! One [`Worker`] per core, each with a single-threaded runtime and its own listening sockets;
//! all share one [`Proxy`]. A request goes: accept, parse, route, key, lookup, decide, then
//! memory, disk, a running fill or the origin; see `docs/architecture.md`.

mod access;
mod admit;
mod ask;
mod asker;
mod config;
mod conn;
mod counters;
mod disk;
mod entrance;
mod errors;
mod exchange;
mod fetch;
mod fill;
mod finish;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod gate;
mod gatekeeper;
mod guard;
mod http;
mod key;
mod ledger;
mod listener;
mod listening;
mod listing;
mod local;
mod log;
mod logins;
mod manner;
mod mirrors;
mod named;
mod net;
mod objects;
mod origins;
mod outcome;
mod pac;
mod parents;
mod places;
mod post;
mod proxy;
mod proxy_header;
mod purge;
mod purge_rate;
mod recent;
mod renewal;
mod reply;
mod request_id;
mod rewriting;
mod route;
mod sent;
mod serve;
mod shared;
#[cfg(test)]
mod simulation;
mod sites;
#[cfg(feature = "stand-in")]
mod stand_in;
mod stored;
#[cfg(test)]
mod testing;
mod token;
mod upstream;
mod variants;
mod via;
mod why;
mod worker;

pub use access::{Access, LocalAddresses};
pub use config::{
    Collapse, Config, FillConfig, ForwardedMode, HeaderConfig, Limits, Role, Site, Timeouts,
    UpstreamConfig,
};
pub use counters::{
    BUCKETS, CACHED, CLASSES, Counters, Event, Latency, OriginTotals, SiteTotals, Totals, Trouble,
};
pub use foxy_access as access_rules;
pub use foxy_http_rules as rules;
pub use foxy_mirror as mirror;
pub use gatekeeper::{AccessQuestion, Gatekeeper, Limit, Per, plain_path};
pub use ledger::Use;
pub use listener::{Listener, Serves, bind, can_bind};
pub use listing::Listed;
pub use log::{Details, LogRecord, LogSink, NoLog};
pub use logins::{Helper, LoginToken, Logins, LoginsConfig};
pub use manner::{ErrorPage, Maintenance, Manner, OriginTimeouts, ToHttps};
pub use mirrors::{Login, MirrorPart, MirrorSite, Mirrored, Mirrors, PublicUrl};
pub use objects::{Objects, Writers};
pub use origins::{
    Ailment, Balance, Check, HealthRules, ORIGINS_MAX, Origin, OriginCounts, OriginState, Origins,
    OriginsConfig, Recently, Standing,
};
pub use outcome::Outcome;
pub use parents::{ParentBalance, ParentGroup, ParentServer};
pub use proxy::Proxy;
pub use purge::{Began, Purged, normalised};
pub use recent::Recent;
pub use renewal::{Renewal, Renewals, RenewedListener, Renewer};
pub use request_id::RequestId;
pub use serve::coded::Compress;
pub use shared::Shared;
pub use sites::{Clash, NoSite, SiteNames, SiteTable};
#[cfg(feature = "stand-in")]
pub use stand_in::{Asked, StandIn};
pub use token::{TOKEN_FIELD, Token};
pub use upstream::{FixedNames, ResolveError, Resolved, Resolver, Resolving, SystemResolver};
pub use why::{StoredWhy, Why, WhyRequest};
pub use worker::Worker;
