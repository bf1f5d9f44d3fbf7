//! Tests of the facts about a request.

use super::*;
use crate::testing::fields;
use proptest::prelude::*;

fn facts(request: &str) -> RequestFacts {
    RequestFacts::new(b"GET", &fields(request))
}

fn check(request: &str, expected: impl FnOnce(&mut RequestFacts)) {
    let mut wanted = RequestFacts::empty(Method::Get);
    expected(&mut wanted);
    assert_eq!(facts(request), wanted, "{request}");
}

#[test]
fn request_directives_are_read() {
    check("Cache-Control: no-cache", |d| d.no_cache = true);
    check("Cache-Control: NO-store", |d| d.no_store = true);
    check("Cache-Control: only-if-cached", |d| d.only_if_cached = true);
    check("Cache-Control: max-age=5, max-age=3", |d| {
        d.max_age = Some(3);
    });
    check(
        "Cache-Control: min-fresh=5 | Cache-Control: min-fresh=7",
        |d| d.min_fresh = Some(7),
    );
    check("Cache-Control: max-stale", |d| d.max_stale = Some(u32::MAX));
    check("Cache-Control: max-stale=9", |d| d.max_stale = Some(9));
    check("Cache-Control: stale-if-error=9", |d| {
        d.stale_if_error = Some(9);
    });
}

#[test]
fn unknown_and_malformed_request_directives_are_ignored() {
    check("Cache-Control: nothing-to-see-here", |_| {});
    check("Cache-Control: max-age=x, max-stale=-1, min-fresh=", |_| {});
    check("Cache-Control: x=\"no-cache\"", |_| {});
}

#[test]
fn pragma_counts_where_cache_control_is_absent() {
    check("Pragma: no-cache", |d| d.no_cache = true);
    check("Pragma: foo", |_| {});
    check("Pragma: no-cache | Cache-Control: max-stale", |d| {
        d.max_stale = Some(u32::MAX);
    });
    check("Cache-Control: x | Pragma: no-cache", |_| {});
}

#[test]
fn the_presence_of_other_fields_is_noted() {
    check("range: bytes=0-1", |d| d.range = true);
    check("If-Range: \"a\"", |d| d.if_range = true);
    check("If-None-Match: *", |d| d.conditional = true);
    check("If-Modified-Since: x", |d| d.conditional = true);
    check("If-Match: *", |d| d.precondition = true);
    check("If-Unmodified-Since: x", |d| d.precondition = true);
    check("Content-Length: 5", |d| d.body = true);
    check("Content-Length: 0", |_| {});
    check("Transfer-Encoding: chunked", |d| d.body = true);
    check("AUTHORIZATION: x", |d| d.authorization = true);
}

proptest! {
    #[test]
    fn any_request_is_survived(value in "[ -~]{0,60}") {
        let list: &[(&str, &str)] = &[("Cache-Control", &value), ("Pragma", &value)];
        let _ = RequestFacts::new(value.as_bytes(), list);
    }
}
