//! Decides which clients may use Foxy, and for which requests: lists of addresses, access rules of the
//! operator, logins and limits. It also decides to which addresses Foxy may connect.
//!
//! This is the lowest room (top-level module), so it uses no other room. `settings` contains the lists of
//! clients and proxies. `gatekeeper` applies the rules of the crate `foxy_access`. `logins` checks users.
//! `parents` contains the proxies that a rule may choose. `client_connections` and `purge_rate` are limits
//! per client. `guard` decides to which addresses the forward proxy and the mirrors may connect. `token` is
//! the admin credential. `refusal` is the answer to a request that is not permitted.

pub(crate) mod client_connections;
pub(crate) mod gatekeeper;
pub(crate) mod guard;
pub(crate) mod logins;
pub(crate) mod parents;
pub(crate) mod purge_rate;
pub(crate) mod refusal;
pub(crate) mod settings;
pub(crate) mod token;
