//! Requests to origins: the names of origins, their connections and pools, the choice between several
//! origins, and the exchange with an origin.
//!
//! `of_request` chooses the path of a client's request: through a parent proxy (`parents`), to a registry of
//! container images (`registry`), to one of several origins (`origins`), or directly to the only origin.
//! `screened` sends requests for documents from which a mirror hides versions. `connect` opens connections.
//! `pool` keeps idle connections. `exchange` contains one request and its answer.
//!
//! This room (top-level module) may use mirrors, cache, http, state, sites and access. It has no access to
//! clients or fills.

pub(crate) mod connect;
pub(crate) mod dns;
mod error;
pub(crate) mod exchange;
pub(crate) mod limit;
mod of_request;
pub(crate) mod origins;
pub(crate) mod parents;
pub(crate) mod pool;
mod registry;
mod resolver;
pub(crate) mod screened;
pub(crate) mod timeouts;
pub(crate) mod unreachable;

pub(crate) use error::UpstreamError;
pub use resolver::{FixedNames, ResolveError, Resolved, Resolver, Resolving, SystemResolver};
