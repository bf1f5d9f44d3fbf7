//! All decisions of HTTP caching for a shared cache, as pure functions over header fields: RFC 9111, the
//! parts of RFC 9110 that concern caches, RFC 5861, 8246, 9211 and 9213.
//!
//! This crate does no I/O, reads no clock and needs no runtime. The decision about a fresh hit
//! ([`RequestFacts::new`], [`decide`], [`vary::matches`]) allocates no memory. Parsers accept any bytes and
//! never panic. `docs/http-caching.md` lists each rule with its place in the code and the test that covers
//! it.
//!
//! The usual order of calls is: [`RequestFacts::new`] once per request; [`vary::matches`] and [`decide`]
//! after a lookup; [`can_store`] and [`stored_fields`] when the head of an origin's answer has arrived;
//! [`refresh`] after a 304; [`invalidation::invalidated_by`] after an unsafe request.

pub mod cache_control;
pub mod cache_status;
pub mod coding;
pub mod conditional;
mod config;
pub mod date;
mod decide;
pub mod etag;
pub mod explain;
mod facts;
pub mod freshness;
#[cfg(test)]
mod fuzz;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod heuristics;
pub mod invalidation;
mod method;
pub mod old;
pub mod range;
mod reason;
mod relevant;
mod request;
pub mod rewrite;
pub mod rules;
pub mod status;
mod stored_fields;
mod storing;
mod surrogate;
mod targeted;
#[cfg(test)]
mod testing;
mod text;
pub mod update;
pub mod vary;

pub use cache_status::CacheStatus;
pub use config::{Config, ListedFields};
pub use decide::{Decision, Failure, Miss, StaleUse, decide, decide_miss, stale_on_failure};
pub use facts::{CachingFacts, FACTS_BYTES, Flags};
pub use method::Method;
pub use reason::{Fwd, LifetimeSource, NoStore};
pub use request::RequestFacts;
pub use rules::{RuleId, RuleSet};
pub use status::is_understood;
pub use stored_fields::{is_hop_by_hop, stored_fields};
pub use storing::{
    Request, Response, StorePlan, StoreUnder, can_store, check_size, may_keep_incomplete,
    size_is_right, supersedes,
};
pub use update::{Refresh, RefreshEffect, refresh};
