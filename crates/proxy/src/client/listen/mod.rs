//! Listening sockets of a worker: opened at the start, renewed and closed by reloads, with the settings that
//! their connections have.

pub(crate) mod listener;
pub(crate) mod listening;
pub(crate) mod named;
pub(crate) mod post;
pub(crate) mod proxy_header;
pub(crate) mod renewal;
