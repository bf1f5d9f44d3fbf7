//! Requests through parents. Parents are other proxies, and the access rules choose them.

mod ask;
mod tunnel;

pub(crate) use ask::{ask, open, tunnel_through};
pub(crate) use tunnel::open_tunnel;
