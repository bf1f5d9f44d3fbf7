//! Combination of parts of one representation (RFC 9110 section 15.3.7.3, RFC 9111 section 3.4).

use foxy_base::{Fields, WallTime, first, rule};

use super::{ContentRange, Parts, RangeSpec, Span};
use crate::date;
use crate::etag::{self, ETag};
use crate::facts::CachingFacts;

/// True if bytes of two responses may be combined: they have the same strong validator, and the same complete
/// length if both state it. `facts` are the facts of the stored response. They determine whether the
/// Last-Modified of the stored response may serve as a validator.
pub fn may_combine<A, B>(
    stored: &A,
    facts: &CachingFacts,
    stored_complete: Option<u64>,
    new: &B,
    new_range: &ContentRange,
    now: WallTime,
) -> bool
where
    A: Fields + ?Sized,
    B: Fields + ?Sized,
{
    let lengths = match (stored_complete, new_range.complete) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    rule!(
        "parts: those of different lengths are not combined",
        lengths,
        true
    ) && rule!(
        "parts: bytes are combined under one strong validator only",
        same_strong_validator(stored, facts, new, now),
        true
    )
}

fn same_strong_validator<A, B>(stored: &A, facts: &CachingFacts, new: &B, now: WallTime) -> bool
where
    A: Fields + ?Sized,
    B: Fields + ?Sized,
{
    match (etag::of(stored), etag::of(new)) {
        (Some(a), Some(b)) => ETag::parse(a).eq_strong(&ETag::parse(b)),
        (None, None) if facts.is_validated_by_date() => match (
            strong_last_modified(stored, now),
            strong_last_modified(new, now),
        ) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        },
        _ => false,
    }
}

/// Last-Modified if it is a strong validator, that is, if it is at least a second before Date (RFC 9110
/// section 8.8.2.2). If the representation changes after such a response was sent, its Last-Modified changes
/// too.
pub(crate) fn strong_last_modified<F: Fields + ?Sized>(
    fields: &F,
    now: WallTime,
) -> Option<WallTime> {
    let read = |name| first(fields, name).and_then(|text| date::parse(text, now));
    let (modified, date) = (read("Last-Modified")?, read("Date")?);
    let strong = rule!(
        "parts: a Last-Modified of the last second is no strong validator",
        date.secs() - modified.secs() >= 1,
        true
    );
    strong.then_some(modified)
}

/// The range to request from the origin so that `wanted` becomes complete: from the first missing byte to the
/// last missing byte. It is open-ended if it reaches the end of the representation, or if the length of the
/// representation is unknown. `None` if no byte is missing.
#[must_use]
pub fn completion(parts: &Parts, wanted: Span, complete: Option<u64>) -> Option<RangeSpec> {
    let missing = parts.missing(wanted);
    let (from, to) = (missing.first()?.start, missing.last()?.end);
    let to_the_end = complete.is_none_or(|length| to >= length);
    Some(RangeSpec::From {
        first: from,
        last: (!to_the_end).then_some(to - 1),
    })
}
