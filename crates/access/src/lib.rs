//! Permission to use the proxy: ordered rules for requests, and the limits of users.
//!
//! This crate has no I/O, no clock and no runtime. The first rule that fits a request decides. Rules are
//! compiled to sets of bits. Each condition divides its values into classes, and there is one set for each
//! class. A judgement intersects the sets of the request's classes. So it takes about the same time with one
//! rule and with five hundred rules.

mod explain;
mod host;
mod index;
mod rate;
mod request;
mod rule;
mod set;
mod time;

pub use explain::{Condition, Step, Why};
pub use host::HostPattern;
pub use rate::{Charge, Rate};
pub use request::{ApplicableRules, Principal, Request, Requester, Scheme, User};
pub use rule::{Action, Rule};
pub use set::{Judgement, RULES_MAX, RuleSet};
pub use time::{MINUTES, Span};

#[cfg(test)]
mod tests;
