//! Connections of clients: workers accept them, read requests and answer what needs no wait.
//!
//! `worker` is one thread, `listen` has its listening sockets and their settings, `conn` one connection. A
//! request that takes longer than a hit goes to exchange.
//!
//! The highest room: it may use every other, and no other uses it.

mod conn;
pub(crate) mod listen;
pub(crate) mod worker;
