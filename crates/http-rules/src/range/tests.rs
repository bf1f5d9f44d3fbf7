//! Tests of ranges: parsing, resolving, combining, and a comparison of parts with a bitmap.

use proptest::prelude::*;

use super::*;
use crate::testing::{after, fields};

fn span(start: u64, end: u64) -> Span {
    Span::new(start, end).unwrap()
}

fn resolve(line: &str, length: u64) -> Option<Resolved> {
    Some(Ranges::parse(line.as_bytes())?.resolve(length, 8))
}

fn check_one(line: &str, length: u64, start: u64, end: u64) {
    assert_eq!(
        resolve(line, length),
        Some(Resolved::One(span(start, end))),
        "{line}"
    );
}

#[test]
fn single_ranges_are_clamped_to_the_body() {
    check_one("bytes=0-1", 10, 0, 2);
    check_one("bytes=1-", 10, 1, 10);
    check_one("bytes=-1", 10, 9, 10);
    check_one("bytes=-99", 10, 0, 10);
    check_one("bytes=5-99", 10, 5, 10);
    check_one("BYTES=0-0", 10, 0, 1);
    check_one("bytes= 0-1 ,", 10, 0, 2);
    check_one("bytes=0-18446744073709551615", 10, 0, 10);
    check_one("bytes=0-99999999999999999999999", 10, 0, 10);
}

#[test]
fn ranges_beyond_the_body_are_unsatisfiable() {
    for line in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99-, -0"] {
        assert_eq!(resolve(line, 10), Some(Resolved::Unsatisfiable), "{line}");
    }
    assert_eq!(resolve("bytes=0-", 0), Some(Resolved::Unsatisfiable));
    check_one("bytes=99-, 0-1", 10, 0, 2);
}

#[test]
fn malformed_ranges_are_ignored() {
    for line in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=a-b",
        "bytes=1",
        "bytes=2-1",
        "bytes=--1",
        "lines=0-1",
        "bytes 0-1",
        "bytes=0-1-2",
        "bytes=0 - 1",
        "bytes=0-1;x",
    ] {
        assert_eq!(Ranges::parse(line.as_bytes()), None, "{line}");
    }
    assert_eq!(
        Ranges::of(&fields("Range: bytes=0-1 | Range: bytes=2-3")),
        None
    );
}

#[test]
fn several_ranges_keep_their_order_and_join_when_near() {
    let many = |line: &str| resolve(line, 10_000);
    let far = vec![span(5000, 5010), span(0, 10)];
    assert_eq!(many("bytes=5000-5009, 0-9"), Some(Resolved::Many(far)));
    assert_eq!(many("bytes=0-9, 5-19"), Some(Resolved::One(span(0, 20))));
    assert_eq!(many("bytes=0-9, 50-59"), Some(Resolved::One(span(0, 60))));
    let bridged = vec![span(0, 320), span(5000, 5001)];
    assert_eq!(
        many("bytes=0-99, 220-319, 5000-5000, 100-219"),
        Some(Resolved::Many(bridged))
    );
}

#[test]
fn too_many_or_too_much_is_answered_with_the_whole() {
    let small: Vec<String> = (0..9).map(|n| format!("{0}-{0}", n * 1000)).collect();
    let line = format!("bytes={}", small.join(","));
    assert_eq!(resolve(&line, 10_000), Some(Resolved::Whole));
    assert_eq!(resolve("bytes=0-,0-,0-", 10_000), Some(Resolved::Whole));
    let flood = format!("bytes={}", vec!["0-0"; RANGES_LIMIT + 1].join(","));
    assert_eq!(Ranges::parse(flood.as_bytes()), None);
}

#[test]
fn content_range_is_read_and_written() {
    for (text, start_end, complete) in [
        ("bytes 4-9/10", Some((4, 10)), Some(10)),
        ("bytes 0-0/*", Some((0, 1)), None),
        ("bytes */10", None, Some(10)),
        ("bytes */0", None, Some(0)),
    ] {
        let range = ContentRange::parse(text.as_bytes()).unwrap();
        assert_eq!(range.span, start_end.map(|(a, b)| span(a, b)), "{text}");
        assert_eq!(range.complete, complete, "{text}");
        let mut out = Vec::new();
        range.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}

#[test]
fn invalid_content_ranges_are_refused() {
    for text in [
        "",
        "bytes",
        "bytes */*",
        "bytes 9-4/10",
        "bytes 4-10/10",
        "bytes 4-9",
        "bytes -5/10",
        "bytes=4-9/10",
        "lines 4-9/10",
        "bytes 4-/10",
        "bytes 4-9/x",
        "ananananananana",
        "bytes 0-18446744073709551615/*",
    ] {
        assert_eq!(ContentRange::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_short_part_counts_as_far_as_it_came() {
    let range = ContentRange::parse(b"bytes 4-9/10").unwrap();
    assert_eq!(range.received(6), Some(span(4, 10)));
    assert_eq!(range.received(5), Some(span(4, 9)));
    assert_eq!(range.received(0), None);
    assert_eq!(range.received(7), None);
}

fn combine(stored: &str, length: Option<u64>, new: &str, range: &str) -> bool {
    combine_for("", stored, length, new, range)
}

/// Does the same as `combine`, for a stored response that answered this request.
fn combine_for(request: &str, stored: &str, length: Option<u64>, new: &str, range: &str) -> bool {
    let range = ContentRange::parse(range.as_bytes()).unwrap();
    let response = format!("Cache-Control: max-age=0, stale-if-error=9 | {stored}");
    let config = crate::Config::default();
    let plan = crate::testing::store_with("GET", request, 200, &response, &config).unwrap();
    let new = fields(new);
    may_combine(&fields(stored), &plan.facts, length, &new, &range, after(0))
}

#[test]
fn only_the_same_strong_validator_combines() {
    let range = "bytes 5-9/10";
    assert!(combine("ETag: \"a\"", Some(10), "ETag: \"a\"", range));
    assert!(combine("ETag: \"a\"", None, "ETag: \"a\"", "bytes 5-9/*"));
    assert!(!combine("ETag: \"a\"", Some(11), "ETag: \"a\"", range));
    assert!(!combine("ETag: \"a\"", Some(10), "ETag: \"b\"", range));
    assert!(!combine("ETag: W/\"a\"", Some(10), "ETag: W/\"a\"", range));
    assert!(!combine("ETag: \"a\"", Some(10), "A: b", range));
    assert!(!combine("A: b", Some(10), "A: b", range));
    let dated = "Last-Modified: @-60 | Date: @0";
    assert!(combine(dated, Some(10), dated, range));
    assert!(!combine(
        dated,
        Some(10),
        "Last-Modified: @-50 | Date: @0",
        range
    ));
    let weak = "Last-Modified: @0 | Date: @0";
    assert!(!combine(weak, Some(10), weak, range));
    // Pages of different users may have the same Last-Modified, so an equal Last-Modified does not permit
    // combining the parts.
    let for_one_user =
        |validator| combine_for("Cookie: a=b", validator, Some(10), validator, range);
    assert!(for_one_user("ETag: \"a\"") && !for_one_user(dated));
}

#[test]
fn completion_asks_for_what_is_missing() {
    let mut parts = Parts::new();
    parts.insert(span(0, 5));
    let from = |first, last| Some(RangeSpec::From { first, last });
    assert_eq!(completion(&parts, span(0, 10), Some(10)), from(5, None));
    assert_eq!(completion(&parts, span(0, 8), Some(10)), from(5, Some(7)));
    assert_eq!(completion(&parts, span(0, 8), None), from(5, None));
    assert_eq!(completion(&parts, span(1, 4), Some(10)), None);
    parts.insert(span(9, 10));
    assert_eq!(completion(&parts, span(0, 10), Some(10)), from(5, Some(8)));
}

#[test]
fn answers_obey_method_status_and_if_range() {
    use crate::{Config, RequestFacts};
    let check = |method: &str, status: u16, request: &str, whole: bool| {
        let response = "Cache-Control: max-age=9 | ETag: \"a\"";
        let facts = crate::testing::store(status, response).unwrap().facts;
        let request = fields(request);
        let request_facts = RequestFacts::new(method.as_bytes(), &request);
        let config = Config::default();
        let got = answer(
            &request_facts,
            &request,
            &fields(response),
            &facts,
            10,
            after(0),
            &config,
        );
        assert_eq!(got == Resolved::Whole, whole, "{method} {status}");
    };
    check("GET", 200, "Range: bytes=0-1", false);
    check("GET", 200, "Range: bytes=99-", false);
    check("HEAD", 200, "Range: bytes=0-1", true);
    check("GET", 404, "Range: bytes=0-1", true);
    check("GET", 200, "", true);
    check("GET", 200, "Range: lines=0-1", true);
    check("GET", 200, "Range: bytes=0-1 | If-Range: \"a\"", false);
    check("GET", 200, "Range: bytes=0-1 | If-Range: \"b\"", true);
}

const BITS: u64 = 64;

fn some_span() -> impl Strategy<Value = Span> {
    (0..BITS, 1..BITS).prop_map(|(start, len)| span(start, (start + len).min(BITS).max(start + 1)))
}

proptest! {
    #[test]
    fn parts_are_a_set_of_bytes(steps in proptest::collection::vec((any::<bool>(), some_span()), 0..20), probe in some_span()) {
        let mut parts = Parts::new();
        let mut model = [false; BITS as usize];
        for (insert, s) in steps {
            if insert { parts.insert(s) } else { parts.remove(s) }
            for byte in s.start..s.end { model[byte as usize] = insert; }
        }
        let bytes = |spans: &[Span]| spans.iter().flat_map(|s| s.start..s.end).collect::<Vec<_>>();
        let wanted: Vec<u64> = (0..BITS).filter(|b| model[*b as usize]).collect();
        prop_assert_eq!(bytes(parts.spans()), wanted);
        prop_assert!(parts.spans().windows(2).all(|w| w[0].end < w[1].start));
        let absent: Vec<u64> = (probe.start..probe.end).filter(|b| !model[*b as usize]).collect();
        prop_assert_eq!(parts.contains(probe), absent.is_empty());
        let run = (probe.start..probe.end).take_while(|b| model[*b as usize]).count() as u64;
        prop_assert_eq!(parts.prefix(probe).map_or(0, Span::len), run);
        prop_assert_eq!(bytes(&parts.missing(probe)), absent);
        prop_assert_eq!(parts.total(), model.iter().filter(|b| **b).count() as u64);
        prop_assert_eq!(parts.is_complete(BITS), model.iter().all(|b| *b));
    }

    #[test]
    fn resolved_parts_hold_what_was_asked(specs in proptest::collection::vec((0..3000u64, 0..50u64), 1..6), length in 1..4000u64) {
        let text: Vec<String> = specs.iter().map(|(a, n)| format!("{a}-{}", a + n)).collect();
        let ranges = Ranges::parse(format!("bytes={}", text.join(",")).as_bytes()).unwrap();
        let asked: Vec<Span> = ranges.specs().iter().filter_map(|s| s.resolve(length)).collect();
        let parts = match ranges.resolve(length, 8) {
            Resolved::One(one) => vec![one],
            Resolved::Many(many) => many,
            Resolved::Unsatisfiable => vec![],
            Resolved::Whole => vec![span(0, length)],
        };
        for one in &asked {
            prop_assert!(parts.iter().any(|part| part.contains(*one)));
        }
        prop_assert_eq!(asked.is_empty(), parts.is_empty());
        for (i, a) in parts.iter().enumerate() {
            prop_assert!(a.end <= length);
            prop_assert!(parts[..i].iter().all(|b| a.intersect(*b).is_none()));
        }
    }

    #[test]
    fn any_range_is_survived(line in proptest::collection::vec(any::<u8>(), 0..40), length: u64) {
        let with_unit = [b"bytes=", &line[..]].concat();
        for text in [&line, &with_unit] {
            if let Some(ranges) = Ranges::parse(text) {
                let _ = ranges.resolve(length, 8);
            }
            let _ = ContentRange::parse(text);
        }
    }
}
