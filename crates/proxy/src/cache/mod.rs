//! Stored answers: keys, lookups, the decision whether a stored answer may be sent, and the answers
//! themselves.
//!
//! `owned_request` is a copy of a request, with its key. `key` writes keys. `serve` finds and sends stored
//! objects. `gate` is the only module that grants an answer to a request. `stored` collects the caching facts
//! of requests and stored objects. `disk` carries out the disk reads of one worker. `purge` removes objects.
//! `variants` is the table with which purges count the variants of a URL. `why` and `listing` explain what is
//! stored. `remembered` is a table of properties of keys, which were learnt from fetches.
//!
//! This room (top-level module) may use http, state, sites and access. It may also use fill for two purposes
//! (see lib.rs). It sends no requests to origins: exchange and fill fetch missing objects.

pub(crate) mod disk;
pub(crate) mod gate;
pub(crate) mod key;
pub(crate) mod listing;
pub(crate) mod owned_request;
pub(crate) mod purge;
pub(crate) mod remembered;
pub(crate) mod serve;
#[cfg(feature = "stand-in")]
pub(crate) mod stand_in;
pub(crate) mod stored;
pub(crate) mod variants;
pub(crate) mod why;
