//! The place of an object that a client stores itself: there is no answer to be judged.

use foxy_base::{FieldBlock, WallTime};
use foxy_http_rules::{self as rules, RequestDigest};

use super::judge::{Asked, Place, Times, place_of};
use crate::cache::ask::Ask;
use crate::state::local::Local;

/// Fields by which the object stays until the store gives its place to another one, or the operator's
/// rules say otherwise.
const LASTING: &[(&str, &str)] = &[("Cache-Control", "public, max-age=2147483647")];

/// Place for an object with these fields. `purge`: the newest purge before it came.
///
/// # Errors
/// The operator's rules forbid to store it.
pub(crate) fn place(
    local: &Local,
    ask: &Ask,
    fields: FieldBlock,
    (now, purge): (WallTime, u64),
) -> Result<Place, rules::NoStore> {
    let none: &[(&str, &str)] = &[];
    let digest = RequestDigest::new(b"GET", none);
    let request = rules::Request {
        digest: &digest,
        target: rules::invalidation::TargetUri::default(),
        fields: none,
    };
    let response = rules::Response {
        status: 200,
        fields: LASTING,
        request_time: now,
        response_time: now,
    };
    let config = local.proxy.rules(ask.rule);
    let plan = rules::can_store(&request, &response, config)?;
    let asked = Asked {
        ask,
        digest,
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
    Ok(Place {
        fields,
        ..place_of(local, &asked, &plan.digest, 0)
    })
}
