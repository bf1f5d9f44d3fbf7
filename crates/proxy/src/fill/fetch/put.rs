//! The store target (key and stored data) of an object that a client itself stores. The target cannot be
//! derived from an answer of an origin, because there is no such answer.

use foxy_base::{FieldBlock, WallTime};
use foxy_http_rules::{self as rules, RequestFacts};

use super::judge::{OriginRequest, StoreTarget, Times, primary_target};
use crate::cache::owned_request::OwnedRequest;
use crate::state::local::Local;

/// Response fields by which the caching rules judge the object. With these fields the object stays until the
/// store reuses its space, or until the operator's rules invalidate it.
const LASTING: &[(&str, &str)] = &[("Cache-Control", "public, max-age=2147483647")];

/// Returns the store target for an object with these fields. `purge` is the number of the newest purge before
/// the object arrived.
///
/// # Errors
/// Returned if the operator's rules forbid storing the object.
pub(crate) fn store_target(
    local: &Local,
    req: &OwnedRequest,
    fields: FieldBlock,
    (now, purge): (WallTime, u64),
) -> Result<StoreTarget, rules::NoStore> {
    let none: &[(&str, &str)] = &[];
    let facts = RequestFacts::new(b"GET", none);
    let request = rules::Request {
        facts: &facts,
        target: rules::invalidation::TargetUri::default(),
        fields: none,
    };
    let response = rules::Response {
        status: 200,
        fields: LASTING,
        request_time: now,
        response_time: now,
    };
    let config = local.proxy.rules(req.rule);
    let plan = rules::can_store(&request, &response, config)?;
    let asked = OriginRequest {
        req,
        facts,
        stored: None,
        primary: None,
        part: None,
        aligned: false,
        widened: false,
        times: Times {
            request: now,
            response: now,
            purge,
        },
    };
    Ok(StoreTarget {
        fields,
        ..primary_target(local, &asked, &plan.facts, 0)
    })
}
