//! Requests through parents: other proxies, which the access rules choose.

mod ask;
mod tunnel;

pub(crate) use ask::{ask, open, tunnel_through};
pub(crate) use tunnel::open_tunnel;
