//! Every decision of HTTP caching for a shared cache, as pure functions over header fields:
//! RFC 9111, the parts of RFC 9110 that touch caches, RFC 5861, 8246, 9211 and 9213.
//!
//! Nothing here does I/O, reads a clock or needs a runtime. Deciding about a fresh hit
//! ([`RequestDigest::new`], [`decide`], [`vary::matches`]) allocates nothing. Parsers accept any
//! bytes and never panic. `docs/http-caching.md` lists where each rule is, and which test covers it.
//!
//! The usual way: [`RequestDigest::new`] once per request; after a lookup [`vary::matches`] and
//! [`decide`]; at the head of an origin's answer [`can_store`] and [`stored_fields`]; after a
//! 304 [`refresh`]; after an unsafe request [`invalidation::invalidated_by`].

pub mod cache_control;
pub mod cache_status;
pub mod coding;
pub mod conditional;
mod config;
pub mod date;
mod decide;
mod digest;
pub mod etag;
pub mod explain;
pub mod freshness;
#[cfg(test)]
mod fuzz;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod guess;
mod hygiene;
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
pub use digest::{DIGEST_BYTES, Digest, Flags};
pub use hygiene::{is_hop_by_hop, stored_fields};
pub use method::Method;
pub use reason::{Fwd, LifetimeSource, NoStore};
pub use request::RequestDigest;
pub use rules::{RuleId, RuleSet};
pub use status::is_understood;
pub use storing::{
    Request, Response, StorePlan, StoreUnder, can_store, check_size, may_keep_incomplete,
    size_is_right, supersedes,
};
pub use update::{Refresh, RefreshEffect, refresh};
