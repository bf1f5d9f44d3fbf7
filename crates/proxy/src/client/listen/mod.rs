//! Listening sockets of a worker, and the settings of their connections. The sockets are opened at the start,
//! and renewed and closed by reloads.

pub(crate) mod accept;
pub(crate) mod listener;
pub(crate) mod listening;
pub(crate) mod named;
mod newcomers;
pub(crate) mod post;
pub(crate) mod proxy_header;
pub(crate) mod renewal;
