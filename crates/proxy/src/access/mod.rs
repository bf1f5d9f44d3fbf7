//! Access of clients: lists of addresses, rules of the operator, logins, limits, and the addresses that may
//! be connected to.
//!
//! The lowest room: it uses no other. `settings` has the lists of clients and proxies, `gatekeeper` applies
//! the rules of the crate `foxy_access`, `logins` checks users, `parents` are the proxies that a rule may
//! choose, `places` and `purge_rate` are limits per client, `guard` judges addresses of destinations, `token`
//! is the admin credential, and `refusal` the answer to what is not permitted.

pub(crate) mod gatekeeper;
pub(crate) mod guard;
pub(crate) mod logins;
pub(crate) mod parents;
pub(crate) mod places;
pub(crate) mod purge_rate;
pub(crate) mod refusal;
pub(crate) mod settings;
pub(crate) mod token;
