//! HTTP/1.1: heads and bodies of requests and answers on connections.
//!
//! `net` has transports, deadlines and buffers. `connection` is the client's connection: it reads heads and
//! bodies, reserves memory in the kernel's send buffers, and ends the connection. The parts of a request are
//! `client_identity`, `route` and `destination` (the server that gets the request), `rewriting` (a site's
//! rules for the request), `via` and `sent` (the form of the request for the origin). `reply` and `errors`
//! write answers.
//!
//! This room (top-level module) may use the rooms state, sites and access. It has no access to stored
//! objects, and none of its code decides about an answer.

pub(crate) mod client_identity;
pub(crate) mod connection;
pub(crate) mod destination;
mod errors;
pub(crate) mod net;
pub(crate) mod reply;
pub(crate) mod rewriting;
pub(crate) mod route;
pub(crate) mod sent;
pub(crate) mod via;
