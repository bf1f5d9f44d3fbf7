//! Connections of clients: workers accept connections, read requests and answer requests that need no wait.
//!
//! `worker` is one thread, `listen` contains the listening sockets of a worker and their settings, and `conn`
//! is one connection. Requests that take longer than a hit are answered in `exchange`.
//!
//! This is the highest room (top-level module): it may use every other room, and no other room uses it.

mod conn;
pub(crate) mod listen;
pub(crate) mod worker;
