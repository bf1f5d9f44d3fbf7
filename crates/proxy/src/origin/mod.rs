//! Everything towards origins: their names, connections and pools, the choice among several, and one
//! exchange with one of them.
//!
//! A request enters by `of_request`, which leads it through a parent (`parents`), a registry of images
//! (`registry`), the screen of a mirror (`screened`), one of several origins (`origins`), or straight to the
//! only one. `connect` opens connections, `pool` keeps them, `exchange` has one request and its answer.
//!
//! It may use mirrors, cache, http, state, sites and access. It knows neither clients nor fills.

pub(crate) mod connect;
pub(crate) mod dns;
mod error;
pub(crate) mod exchange;
pub(crate) mod limit;
mod of_request;
pub(crate) mod origins;
pub(crate) mod parents;
pub(crate) mod patience;
pub(crate) mod pool;
mod registry;
mod resolver;
pub(crate) mod screened;
pub(crate) mod unreachable;

pub(crate) use error::UpstreamError;
pub use resolver::{FixedNames, ResolveError, Resolved, Resolver, Resolving, SystemResolver};
