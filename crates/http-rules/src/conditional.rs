//! Conditional requests. The cache evaluates the conditions of clients itself (RFC 9110 section 13, RFC 9111
//! section 4.3.2). To revalidate a stored response, it sends its own conditions to the origin (section
//! 4.3.1).

use foxy_base::{Fields, WallTime, eq_name, first, values};

use crate::date;
use crate::etag::{self, ETag};
use crate::facts::CachingFacts;
use crate::range::strong_last_modified;

/// The result of a request's conditions for a stored response that is ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Send the stored response (200, or 206 if a range applies).
    Send,
    /// Send 304 with the fields for which [`is_sent_with_304`] is true.
    NotModified,
    /// If-Match or If-Unmodified-Since is false for the stored response. Only the origin knows whether the
    /// condition is true for the current response, so forward the request.
    AskOrigin,
}

/// Evaluates a request's conditions against a stored response, in the order of RFC 9110 section 13.2.2. Only
/// successful responses are subject to conditions (13.2.1). The caller need not call this function if the
/// facts about the request have neither `conditional` nor `precondition`.
pub fn evaluate<Q, S>(request: &Q, stored: &S, facts: &CachingFacts, now: WallTime) -> Condition
where
    Q: Fields + ?Sized,
    S: Fields + ?Sized,
{
    if !(200..300).contains(&facts.status) {
        return Condition::Send;
    }
    let tag = etag::of(stored);
    if first(request, "If-Match").is_some() {
        if !matches_any(request, "If-Match", tag, |a, b| a.eq_strong(b)) {
            return Condition::AskOrigin;
        }
    } else if let Some(text) = first(request, "If-Unmodified-Since") {
        let since = date::parse(text, now);
        if since.is_some_and(|since| facts.last_modified.is_none_or(|lm| lm > since)) {
            return Condition::AskOrigin;
        }
    }
    if first(request, "If-None-Match").is_some() {
        let found = matches_any(request, "If-None-Match", tag, |a, b| a.eq_weak(b));
        return if found {
            Condition::NotModified
        } else {
            Condition::Send
        };
    }
    match first(request, "If-Modified-Since").and_then(|text| date::parse(text, now)) {
        Some(since) if not_modified_since(facts, since) => Condition::NotModified,
        _ => Condition::Send,
    }
}

/// True if the list field `name` contains `*` or a tag equal to the tag of the stored response.
fn matches_any<Q: Fields + ?Sized>(
    request: &Q,
    name: &str,
    stored: Option<&[u8]>,
    equal: fn(&ETag<'_>, &ETag<'_>) -> bool,
) -> bool {
    values(request, name).any(|line| {
        line == b"*"
            || stored.is_some_and(|tag| {
                let tag = ETag::parse(tag);
                etag::list(line).any(|listed| equal(&listed, &tag))
            })
    })
}

/// True if the response was not modified after `since`. The response counts as modified at the time in
/// Last-Modified, or else in Date, or else at the time of receipt (RFC 9111 section 4.3.2).
fn not_modified_since(facts: &CachingFacts, since: WallTime) -> bool {
    let modified = facts
        .last_modified
        .or(facts.date)
        .unwrap_or(facts.response_time);
    modified.secs() <= since.secs()
}

/// True if a Range field may be obeyed: there is no If-Range, or If-Range names the stored response by a
/// strong validator (RFC 9110 section 13.1.5). If false, the complete response is sent.
pub fn range_applies<Q, S>(request: &Q, stored: &S, now: WallTime) -> bool
where
    Q: Fields + ?Sized,
    S: Fields + ?Sized,
{
    let mut lines = values(request, "If-Range");
    let Some(validator) = lines.next() else {
        return true;
    };
    if lines.next().is_some() {
        return false;
    }
    if validator.starts_with(b"\"") || validator.starts_with(b"W/") {
        return etag::of(stored)
            .is_some_and(|tag| ETag::parse(tag).eq_strong(&ETag::parse(validator)));
    }
    // The date in If-Range must be equal to the stored Last-Modified, which must be a strong validator.
    let asked = date::parse(validator, now);
    asked.is_some() && asked == strong_last_modified(stored, now)
}

/// True if a stored field is sent with a 304 (RFC 9110 section 15.4.5). These are the fields of a 200 that
/// concern caches. Fields that describe the body are left out, because no body is sent. The caller adds Age
/// and Cache-Status.
#[must_use]
pub fn is_sent_with_304(name: &[u8]) -> bool {
    const NAMES: [&str; 9] = [
        "Cache-Control",
        "CDN-Cache-Control",
        "Content-Location",
        "Date",
        "ETag",
        "Expires",
        "Last-Modified",
        "Vary",
        "Set-Cookie",
    ];
    NAMES.iter().any(|sent| eq_name(name, sent.as_bytes()))
}

/// The validators of a stored response, as values of the fields of a revalidation request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// Value of If-None-Match.
    pub if_none_match: Option<&'a [u8]>,
    /// Value of If-Modified-Since. It is the Last-Modified exactly as it was received, because origins
    /// compare the bytes and not the times.
    pub if_modified_since: Option<&'a [u8]>,
}

/// Validators to send with a revalidation (RFC 9111 section 4.3.1). The client's own conditions are removed
/// from the request ([`is_condition`]), and are evaluated later, against the answer.
pub fn validators<'a, S: Fields + ?Sized>(stored: &'a S, facts: &CachingFacts) -> Validators<'a> {
    let modified = first(stored, "Last-Modified")
        .filter(|_| facts.last_modified.is_some() && facts.is_validated_by_date());
    Validators {
        if_none_match: etag::of(stored),
        if_modified_since: modified,
    }
}

/// True if a request field is a condition. When the cache revalidates, it replaces these fields by its own
/// conditions.
#[must_use]
pub fn is_condition(name: &[u8]) -> bool {
    const NAMES: [&str; 5] = [
        "If-None-Match",
        "If-Modified-Since",
        "If-Match",
        "If-Unmodified-Since",
        "If-Range",
    ];
    NAMES
        .iter()
        .any(|condition| eq_name(name, condition.as_bytes()))
}

#[cfg(test)]
mod tests;
