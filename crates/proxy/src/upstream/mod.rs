//! Everything towards origins: names, connections, their pool, and one exchange on them.

pub(crate) mod dns;
pub(crate) mod resolver;

pub use resolver::{FixedNames, ResolveError, Resolved, Resolver, Resolving, SystemResolver};
