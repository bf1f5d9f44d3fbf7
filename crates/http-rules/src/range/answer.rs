//! Finds the parts of the answer to a request with Range and If-Range.

use foxy_base::{Fields, WallTime, eq_name};

use super::{Ranges, Resolved};
use crate::conditional::range_applies;
use crate::config::Config;
use crate::facts::CachingFacts;
use crate::method::Method;
use crate::request::RequestFacts;

/// Decides how a stored response of `length` bytes answers a request whose conditions are met (RFC 9110
/// sections 14.2 and 13.2.2 step 5): by 206, by 416, or by the complete body. Ranges apply only to GET, and
/// only to a 200 (or to parts of a 200).
pub fn answer<Q, S>(
    facts: &RequestFacts,
    request: &Q,
    stored: &S,
    stored_facts: &CachingFacts,
    length: u64,
    now: WallTime,
    config: &Config,
) -> Resolved
where
    Q: Fields + ?Sized,
    S: Fields + ?Sized,
{
    let divisible = facts.method == Method::Get && matches!(stored_facts.status, 200 | 206);
    if !facts.range || !divisible || !range_applies(request, stored, now) {
        return Resolved::Whole;
    }
    match Ranges::of(request) {
        Some(ranges) => ranges.resolve(length, config.ranges_max),
        None => Resolved::Whole,
    }
}

/// True for fields whose value describes the bytes of one message, not the representation: `Content-Digest`
/// (RFC 9530 section 2) and the older `Content-MD5`. A value for the complete body is wrong for a part, and a
/// value for a part is wrong for the complete body.
#[must_use]
pub fn is_of_content(name: &[u8]) -> bool {
    eq_name(name, b"Content-Digest") || eq_name(name, b"Content-MD5")
}
