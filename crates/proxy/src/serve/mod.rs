//! Answers out of the cache.

pub(crate) mod find;
pub(crate) mod large;
pub(crate) mod memory;
pub(crate) mod part;
