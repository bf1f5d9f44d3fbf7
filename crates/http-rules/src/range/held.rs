//! A stored part of a representation: the requests that it can answer, and its combination with other parts.

use foxy_base::{Fields, WallTime};

use super::{ContentRange, Parts, Ranges, Span};
use crate::conditional::range_applies;
use crate::facts::{CachingFacts, Flags};

/// The bytes of a stored part that answer a request. The request must have only one range, this range must
/// lie completely inside the part (RFC 9111 section 3.3), and If-Range must be met. Otherwise the result is
/// `None`, and the request must go to the origin. The result is also `None` for a range that may be
/// unsatisfiable.
pub fn from_part<Q, S>(request: &Q, stored: &S, held: &ContentRange, now: WallTime) -> Option<Span>
where
    Q: Fields + ?Sized,
    S: Fields + ?Sized,
{
    let ranges = Ranges::of(request)?;
    let [spec] = ranges.specs() else {
        return None;
    };
    // If the complete length is unknown, it is unknown which bytes an open end or a suffix means. The range
    // is then resolved against the largest possible length, so that it exceeds every stored part and the
    // request goes to the origin.
    let wanted = spec.resolve(held.complete.unwrap_or(u64::MAX))?;
    let inside = held.span.is_some_and(|span| span.contains(wanted));
    (inside && range_applies(request, stored, now)).then_some(wanted)
}

/// The union of two spans that touch or overlap; `None` if there is a gap.
#[must_use]
pub fn joined(a: Span, b: Span) -> Option<Span> {
    let mut parts = Parts::new();
    parts.insert(a);
    parts.insert(b);
    match parts.spans() {
        [one] => Some(*one),
        _ => None,
    }
}

impl CachingFacts {
    /// Returns the facts of the complete response. They are used when parts with the facts `self` have been
    /// combined into the complete body.
    #[must_use]
    pub const fn completed(self) -> Self {
        Self {
            status: 200,
            flags: Flags(self.flags.0 & !Flags::PARTIAL.0),
            ..self
        }
    }

    /// Returns the facts of a part of this response, with status 206. An example is the part that arrived
    /// before the response ended early.
    #[must_use]
    pub const fn as_part(self) -> Self {
        Self {
            status: 206,
            flags: self.flags.with(Flags::PARTIAL),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, fields};

    fn asked(range: &str, held: &str) -> Option<(u64, u64)> {
        let request = fields(&format!("Range: {range}"));
        let held = ContentRange::parse(held.as_bytes()).unwrap();
        let span = from_part(&request, &fields("ETag: \"a\""), &held, T0)?;
        Some((span.start, span.end))
    }

    #[test]
    fn a_part_answers_what_lies_wholly_inside() {
        for (range, held, expected) in [
            ("bytes=6-8", "bytes 4-8/10", Some((6, 9))),
            ("bytes=4-8", "bytes 4-8/10", Some((4, 9))),
            ("bytes=6-", "bytes 4-8/10", None),
            ("bytes=6-", "bytes 4-9/10", Some((6, 10))),
            ("bytes=6-99", "bytes 4-9/10", Some((6, 10))),
            ("bytes=-5", "bytes 4-9/10", Some((5, 10))),
            ("bytes=-1", "bytes 4-8/10", None),
            ("bytes=3-5", "bytes 4-9/10", None),
            ("bytes=10-", "bytes 4-9/10", None),
            ("bytes=4-5,7-8", "bytes 4-9/10", None),
            ("bytes=6-8", "bytes 4-9/*", Some((6, 9))),
            ("bytes=6-", "bytes 4-9/*", None),
            ("bytes=-2", "bytes 4-9/*", None),
            ("bytes=x", "bytes 4-9/10", None),
        ] {
            assert_eq!(asked(range, held), expected, "{range} of {held}");
        }
    }

    #[test]
    fn if_range_must_hold_for_a_part_too() {
        let held = ContentRange::parse(b"bytes 0-9/20").unwrap();
        for (if_range, expected) in [("\"a\"", true), ("\"b\"", false), ("W/\"a\"", false)] {
            let request = fields(&format!("Range: bytes=1-2 | If-Range: {if_range}"));
            let got = from_part(&request, &fields("ETag: \"a\""), &held, T0);
            assert_eq!(got.is_some(), expected, "{if_range}");
        }
    }

    #[test]
    fn spans_join_where_they_touch() {
        let span = |a, b| Span::new(a, b).unwrap();
        assert_eq!(joined(span(0, 5), span(5, 9)), Some(span(0, 9)));
        assert_eq!(joined(span(4, 9), span(0, 6)), Some(span(0, 9)));
        assert_eq!(joined(span(0, 5), span(6, 9)), None);
    }

    #[test]
    fn parts_and_wholes_have_each_others_facts() {
        let part = crate::testing::stored("Cache-Control: max-age=9").as_part();
        assert!(part.flags.has(Flags::PARTIAL) && part.status == 206);
        let whole = part.completed();
        assert!(!whole.flags.has(Flags::PARTIAL) && whole.status == 200);
        assert_eq!(whole.as_part(), part);
    }
}
