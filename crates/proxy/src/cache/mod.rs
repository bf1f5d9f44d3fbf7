//! Stored answers: keys, lookups, the decision whether a stored answer may be given, and answers out of it.
//!
//! `ask` is an owned request with its key, `key` writes keys, `serve` finds and sends what is stored. `gate`
//! is the only place that grants an answer to a request. `stored` makes the digests of requests and stored
//! objects, `disk` has the reads of one worker. `purge` removes, `variants` knows the variants that a purge
//! removes, `why` and `listing` explain what is stored, `remembered` has properties of keys that fetches
//! have shown.
//!
//! It may use http, state, sites and access, and fill for two things (see lib.rs). It asks no origin:
//! exchange and fill fetch what is missing.

pub(crate) mod ask;
pub(crate) mod disk;
pub(crate) mod gate;
pub(crate) mod key;
pub(crate) mod listing;
pub(crate) mod purge;
pub(crate) mod remembered;
pub(crate) mod serve;
#[cfg(feature = "stand-in")]
pub(crate) mod stand_in;
pub(crate) mod stored;
pub(crate) mod variants;
pub(crate) mod why;
