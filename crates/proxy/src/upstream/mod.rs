//! Everything towards origins: names, connections, their pool, and one exchange on them.

pub(crate) mod connect;
pub(crate) mod dns;
mod error;
pub(crate) mod exchange;
pub(crate) mod limit;
mod of_request;
pub(crate) mod pool;
pub(crate) mod resolver;
pub(crate) mod unreachable;

pub(crate) use connect::Destination;
pub(crate) use error::UpstreamError;
pub use resolver::{FixedNames, ResolveError, Resolved, Resolver, Resolving, SystemResolver};
