//! Stored answers: keys, lookups, the decision whether a stored answer may be sent, and the answers
//! themselves.
//!
//! `owned_request` is a copy of a request, with its cache key. `key` writes cache keys. `serve` finds and
//! sends stored objects. `gate` is the only module that can permit a stored or shared answer for a request.
//! `stored` collects the facts about requests and stored objects by which the caching rules decide. `disk`
//! carries out the disk reads of one worker. `purge` removes objects. `variants` is the table by which a
//! purge counts the removed variants of a URL (Vary). `why` and `listing` explain what is stored.
//! `remembered` is a table of keys whose last answer had a certain property, for example that it could not be
//! shared.
//!
//! This room (top-level module) may use the rooms http, state, sites and access. For two purposes it may also
//! use the room fill (see lib.rs). It sends no requests to origins: the rooms exchange and fill fetch missing
//! objects.

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
