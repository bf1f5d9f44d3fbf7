//! Tests of conditions that are answered from the cache, with one table per field.

use super::*;
use crate::testing::{after, fields, store};

fn check_status(status: u16, request: &str, response: &str, expected: Condition) {
    let facts = store(status, response).unwrap().facts;
    let got = evaluate(&fields(request), &fields(response), &facts, after(1));
    assert_eq!(got, expected, "{request} / {response}");
}

fn check(request: &str, response: &str, expected: Condition) {
    check_status(
        200,
        request,
        &format!("Cache-Control: max-age=60 | {response}"),
        expected,
    );
}

use Condition::{AskOrigin, NotModified, Send};

#[test]
fn if_none_match_compares_weakly_with_every_member() {
    for (request, response, expected) in [
        ("\"abc\"", "\"abc\"", NotModified),
        ("W/\"abc\"", "\"abc\"", NotModified),
        ("\"abc\"", "W/\"abc\"", NotModified),
        ("\"x\", \"abc\", \"y\"", "\"abc\"", NotModified),
        ("\"x\" | If-None-Match: \"abc\"", "\"abc\"", NotModified),
        ("\"x\"", "\"abc\"", Send),
        ("*", "\"abc\"", NotModified),
        ("abc", "abc", NotModified),
        ("abc", "\"abc\"", Send),
        ("\"a,b\"", "\"a,b\"", NotModified),
    ] {
        let (request, response) = (
            format!("If-None-Match: {request}"),
            format!("ETag: {response}"),
        );
        check(&request, &response, expected);
    }
    check("If-None-Match: *", "A: b", NotModified);
    check("If-None-Match: \"a\"", "A: b", Send);
}

#[test]
fn if_modified_since_compares_dates() {
    check(
        "If-Modified-Since: @-3000",
        "Last-Modified: @-3000",
        NotModified,
    );
    check(
        "If-Modified-Since: @-2000",
        "Last-Modified: @-3000",
        NotModified,
    );
    check("If-Modified-Since: @-4000", "Last-Modified: @-3000", Send);
    check(
        "If-Modified-Since: Sunday, 15-Jun-25 11:10:00 GMT",
        "Last-Modified: @-3000",
        NotModified,
    );
    check("If-Modified-Since: junk", "Last-Modified: @-3000", Send);
    check("", "Last-Modified: @-3000", Send);
}

#[test]
fn without_last_modified_date_and_receipt_count() {
    check("If-Modified-Since: @-9", "Date: @-10", NotModified);
    check("If-Modified-Since: @-11", "Date: @-10", Send);
    check("If-Modified-Since: @0", "A: b", NotModified);
    check("If-Modified-Since: @-1", "A: b", Send);
}

#[test]
fn if_none_match_takes_precedence_over_if_modified_since() {
    let response = "ETag: \"a\" | Last-Modified: @-5000";
    check(
        "If-None-Match: \"a\" | If-Modified-Since: @-10000",
        response,
        NotModified,
    );
    check(
        "If-None-Match: \"b\" | If-Modified-Since: @0",
        response,
        Send,
    );
}

#[test]
fn preconditions_that_fail_here_are_for_the_origin() {
    let response = "ETag: \"a\" | Last-Modified: @-50";
    check("If-Match: \"a\"", response, Send);
    check("If-Match: *", response, Send);
    check("If-Match: \"b\"", response, AskOrigin);
    check("If-Match: W/\"a\"", "ETag: W/\"a\"", AskOrigin);
    check("If-Unmodified-Since: @-50", response, Send);
    check("If-Unmodified-Since: @-51", response, AskOrigin);
    check("If-Unmodified-Since: @-51", "A: b", AskOrigin);
    check("If-Unmodified-Since: junk", response, Send);
    check(
        "If-Match: \"a\" | If-Unmodified-Since: @-51",
        response,
        Send,
    );
    check(
        "If-Match: \"b\" | If-None-Match: \"a\"",
        response,
        AskOrigin,
    );
    check(
        "If-Match: \"a\" | If-None-Match: \"a\"",
        response,
        NotModified,
    );
}

#[test]
fn errors_are_not_subject_to_conditions() {
    check_status(
        404,
        "If-None-Match: *",
        "Cache-Control: max-age=60 | ETag: \"a\"",
        Send,
    );
    check_status(
        404,
        "If-Match: \"b\"",
        "Cache-Control: max-age=60 | ETag: \"a\"",
        Send,
    );
}

#[test]
fn if_range_needs_a_strong_match() {
    let applies = |request: &str, response: &str| {
        range_applies(&fields(request), &fields(response), after(1))
    };
    assert!(applies("", "A: b"));
    assert!(applies("If-Range: \"a\"", "ETag: \"a\""));
    assert!(!applies("If-Range: \"a\"", "ETag: \"b\""));
    assert!(!applies("If-Range: W/\"a\"", "ETag: W/\"a\""));
    assert!(!applies("If-Range: \"a\"", "A: b"));
    assert!(applies("If-Range: @-60", "Last-Modified: @-60 | Date: @0"));
    assert!(!applies("If-Range: @-50", "Last-Modified: @-60 | Date: @0"));
    assert!(
        !applies("If-Range: @0", "Last-Modified: @0 | Date: @0"),
        "a weak date"
    );
    assert!(!applies("If-Range: @-60", "Last-Modified: @-60"), "no Date");
    assert!(!applies("If-Range: junk", "A: b"));
    assert!(!applies("If-Range: \"a\" | If-Range: \"a\"", "ETag: \"a\""));
}

#[test]
fn a_304_has_what_caches_need_and_nothing_of_the_body() {
    for name in [
        "etag",
        "Cache-Control",
        "Content-Location",
        "DATE",
        "Expires",
        "Vary",
    ] {
        assert!(is_sent_with_304(name.as_bytes()), "{name}");
    }
    for name in [
        "Content-Type",
        "Content-Encoding",
        "Content-Length",
        "X-Other",
    ] {
        assert!(!is_sent_with_304(name.as_bytes()), "{name}");
    }
}

#[test]
fn stored_validators_are_sent_as_they_came() {
    let response = "Cache-Control: max-age=60 | ETag: W/\"a\" | Last-Modified: @-60";
    let (block, facts) = (fields(response), store(200, response).unwrap().facts);
    let sent = validators(&block, &facts);
    assert_eq!(sent.if_none_match, Some(&b"W/\"a\""[..]));
    assert_eq!(sent.if_modified_since, first(&block, "Last-Modified"));
    let for_one_user = CachingFacts {
        lifetime_s: 0,
        ..facts
    };
    let sent = validators(&block, &for_one_user);
    assert_eq!(sent.if_none_match, Some(&b"W/\"a\""[..]));
    assert_eq!(
        sent.if_modified_since, None,
        "another user's page may have the date"
    );
    let junk = "Cache-Control: max-age=60 | Last-Modified: junk";
    let (block, facts) = (fields(junk), store(200, junk).unwrap().facts);
    assert_eq!(validators(&block, &facts), Validators::default());
    assert!(is_condition(b"if-range") && !is_condition(b"Range"));
}
