//! The proxy itself: listeners, routes, fills, upstream.
//!
//! One [`Worker`] per core, each with a single-threaded runtime and its own listening sockets;
//! all share one [`Proxy`]. A request goes: accept, parse, route, key, lookup, decide, then
//! memory, disk, a running fill or the origin; see `docs/architecture.md`.

mod config;
mod counters;
mod listener;
mod log;
mod outcome;
mod proxy;
mod upstream;
mod worker;

pub use config::{
    Access, Config, FillConfig, ForwardedMode, HeaderConfig, Limits, Role, Site, Timeouts,
    UpstreamConfig,
};
pub use counters::{BUCKETS, Counters, Event, Latency, Totals};
pub use listener::{Listener, bind};
pub use log::{LogRecord, LogSink, NoLog};
pub use outcome::Outcome;
pub use proxy::Proxy;
pub use upstream::{FixedNames, ResolveError, Resolved, Resolver, Resolving, SystemResolver};
pub use worker::Worker;
