//! Tests of each decision about a stored response, second by second.

use super::*;
use crate::testing::{after, fields, stored};

mod users;

const DAY: i64 = 86_400;

fn on(method: &str, request: &str, response: &str, secs: i64) -> Decision {
    let request = RequestFacts::new(method.as_bytes(), &fields(request));
    decide(&request, &stored(response), after(secs), &Config::default())
}

fn check(request: &str, response: &str, secs: i64, expected: Decision) {
    assert_eq!(
        on("GET", request, response, secs),
        expected,
        "{request} / {response} / {secs}"
    );
}

const fn fresh(age: u32, ttl: i64) -> Decision {
    Decision::Fresh { age, ttl }
}

const fn stale(age: u32, ttl: i64, why: StaleUse) -> Decision {
    Decision::Stale { age, ttl, why }
}

const fn ask(reason: Fwd, if_none_match: bool, if_modified_since: bool) -> Decision {
    Decision::Revalidate {
        reason,
        if_none_match,
        if_modified_since,
    }
}

const fn go(reason: Fwd) -> Decision {
    Decision::Forward { reason }
}

#[test]
fn fresh_responses_are_served_with_their_age() {
    check("", "Cache-Control: max-age=60", 0, fresh(0, 60));
    check("", "Cache-Control: max-age=60 | Age: 30", 3, fresh(33, 27));
    check("", "Cache-Control: max-age=60", 59, fresh(59, 1));
    assert_eq!(on("HEAD", "", "Cache-Control: max-age=60", 1), fresh(1, 59));
    check(
        "Cache-Control: no-store",
        "Cache-Control: max-age=60",
        1,
        fresh(1, 59),
    );
    check("Cookie: a=b", "Cache-Control: max-age=60", 1, fresh(1, 59));
}

#[test]
fn stale_responses_are_validated_or_forwarded() {
    check("", "Cache-Control: max-age=2", 3, go(Fwd::Stale));
    check(
        "",
        "Cache-Control: max-age=2 | ETag: \"a\"",
        3,
        ask(Fwd::Stale, true, false),
    );
    check(
        "",
        "Cache-Control: max-age=2 | Last-Modified: @-9",
        3,
        ask(Fwd::Stale, false, true),
    );
    check(
        "",
        "Cache-Control: no-cache | ETag: \"a\"",
        0,
        ask(Fwd::Stale, true, false),
    );
    check(
        "",
        "Cache-Control: no-cache, max-age=99 | ETag: \"a\"",
        0,
        ask(Fwd::Stale, true, false),
    );
}

#[test]
fn other_methods_go_to_the_origin() {
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "M-SEARCH"] {
        let decision = on(method, "Cache-Control: only-if-cached", "Expires: @60", 0);
        assert_eq!(decision, go(Fwd::Method), "{method}");
    }
}

#[test]
fn a_get_with_content_passes_by() {
    check(
        "Content-Length: 5",
        "Cache-Control: max-age=60",
        0,
        go(Fwd::Bypass),
    );
    let get = RequestFacts::new(b"GET", &fields("Content-Length: 5"));
    assert_eq!(decide_miss(&get, Miss::Uri), go(Fwd::Bypass));
    let failed = failed(
        "Content-Length: 5",
        "Cache-Control: max-age=2",
        3,
        Failure::Unreachable,
    );
    assert_eq!(failed, None);
}

#[test]
fn request_no_cache_asks_the_origin() {
    for request in ["Cache-Control: no-cache", "Pragma: no-cache"] {
        check(request, "Cache-Control: max-age=60", 0, go(Fwd::Request));
        check(
            request,
            "Cache-Control: max-age=60 | ETag: \"a\"",
            0,
            ask(Fwd::Request, true, false),
        );
    }
    let deaf = Config {
        obey_request: false,
        ..Config::default()
    };
    let request = RequestFacts::new(b"GET", &fields("Cache-Control: no-cache"));
    let decision = decide(
        &request,
        &stored("Cache-Control: max-age=60"),
        after(0),
        &deaf,
    );
    assert_eq!(decision, fresh(0, 60));
}

#[test]
fn request_max_age_and_min_fresh_bound_freshness() {
    let response = "Cache-Control: max-age=1500 | Age: 1000";
    check("Cache-Control: max-age=1000", response, 0, fresh(1000, 500));
    check("Cache-Control: max-age=999", response, 0, go(Fwd::Request));
    check(
        "Cache-Control: min-fresh=500",
        response,
        0,
        fresh(1000, 500),
    );
    check(
        "Cache-Control: min-fresh=501",
        response,
        0,
        go(Fwd::Request),
    );
    check(
        "Cache-Control: max-age=0",
        "Cache-Control: max-age=60",
        0,
        go(Fwd::Request),
    );
}

#[test]
fn max_stale_accepts_stale_responses() {
    let response = "Cache-Control: max-age=2";
    check(
        "Cache-Control: max-stale=1000",
        response,
        3,
        stale(3, -1, StaleUse::MaxStale),
    );
    check(
        "Cache-Control: max-stale",
        response,
        9 * DAY,
        stale(777_600, 2 - 9 * DAY, StaleUse::MaxStale),
    );
    check(
        "Cache-Control: max-stale=1",
        response,
        3,
        stale(3, -1, StaleUse::MaxStale),
    );
    check("Cache-Control: max-stale=1", response, 4, go(Fwd::Stale));
    check(
        "Cache-Control: max-stale=9, max-age=3",
        response,
        3,
        stale(3, -1, StaleUse::MaxStale),
    );
    check(
        "Cache-Control: max-stale=9, max-age=2",
        response,
        3,
        go(Fwd::Stale),
    );
}

#[test]
fn stale_while_revalidate_lasts_for_its_window() {
    let response = "Cache-Control: max-age=1, stale-while-revalidate=4";
    check("", response, 3, stale(3, -2, StaleUse::WhileRevalidate));
    check("", response, 5, stale(5, -4, StaleUse::WhileRevalidate));
    check("", response, 6, go(Fwd::Stale));
    check("Cache-Control: max-age=0", response, 3, go(Fwd::Stale));
    check("Cache-Control: no-cache", response, 3, go(Fwd::Stale));
}

#[test]
fn nothing_stale_is_served_where_it_is_forbidden() {
    for forbid in [
        "must-revalidate",
        "proxy-revalidate",
        "no-cache",
        "s-maxage=2",
    ] {
        let response = format!(
            "Cache-Control: max-age=2, stale-while-revalidate=99, stale-if-error=99, {forbid}"
        );
        check("Cache-Control: max-stale", &response, 3, go(Fwd::Stale));
        check("", &response, 3, go(Fwd::Stale));
        for failure in [Failure::Unreachable, Failure::Status(503)] {
            assert_eq!(failed("", &response, 3, failure), None, "{forbid}");
        }
    }
}

#[test]
fn only_if_cached_never_forwards() {
    let request = "Cache-Control: only-if-cached";
    check(request, "Cache-Control: max-age=9", 0, fresh(0, 9));
    check(
        request,
        "Cache-Control: max-age=9",
        10,
        Decision::OnlyIfCached504,
    );
    check(
        request,
        "Cache-Control: max-age=9 | ETag: \"a\"",
        10,
        Decision::OnlyIfCached504,
    );
    let facts = RequestFacts::new(b"GET", &fields(request));
    assert_eq!(decide_miss(&facts, Miss::Uri), Decision::OnlyIfCached504);
}

#[test]
fn misses_are_named() {
    let get = RequestFacts::new(b"GET", &fields(""));
    let post = RequestFacts::new(b"POST", &fields("Cache-Control: only-if-cached"));
    assert_eq!(decide_miss(&get, Miss::Uri), go(Fwd::UriMiss));
    assert_eq!(decide_miss(&get, Miss::Vary), go(Fwd::VaryMiss));
    assert_eq!(decide_miss(&get, Miss::Bypass), go(Fwd::Bypass));
    assert_eq!(decide_miss(&get, Miss::Partial), go(Fwd::Partial));
    assert_eq!(decide_miss(&post, Miss::Uri), go(Fwd::Method));
}

fn partial(secs: i64, request: &str, method: &str) -> Decision {
    let response = "Cache-Control: max-age=9 | ETag: \"a\" | Content-Range: bytes 0-4/9";
    let part = crate::testing::store(206, response).unwrap().facts;
    let request = RequestFacts::new(method.as_bytes(), &fields(request));
    decide(&request, &part, after(secs), &Config::default())
}

#[test]
fn parts_answer_ranges_only() {
    assert_eq!(partial(0, "", "GET"), go(Fwd::Partial));
    assert_eq!(partial(0, "Range: bytes=0-1", "GET"), fresh(0, 9));
    assert_eq!(partial(0, "", "HEAD"), fresh(0, 9));
    assert_eq!(partial(10, "Range: bytes=0-1", "GET"), go(Fwd::Stale));
}

fn failed(request: &str, response: &str, secs: i64, failure: Failure) -> Option<Decision> {
    let request = RequestFacts::new(b"GET", &fields(request));
    stale_on_failure(
        &request,
        &stored(response),
        after(secs),
        failure,
        &Config::default(),
    )
}

#[test]
fn an_unreachable_origin_leaves_stale_responses_in_use() {
    let gone = Failure::Unreachable;
    let on_error = |age, ttl| Some(stale(age, ttl, StaleUse::OnError));
    assert_eq!(
        failed("", "Cache-Control: max-age=2", 3, gone),
        on_error(3, -1)
    );
    assert_eq!(failed("", "Cache-Control: max-age=2", DAY + 3, gone), None);
    let long = "Cache-Control: max-age=2, stale-if-error=172800";
    assert_eq!(failed("", long, DAY + 3, gone), on_error(86_403, -86_401));
    assert_eq!(
        failed(
            "Cache-Control: no-cache",
            "Cache-Control: max-age=2",
            3,
            gone
        ),
        None
    );
}

#[test]
fn stale_if_error_covers_server_errors_for_its_window() {
    let response = "Cache-Control: max-age=2, stale-if-error=60";
    let on_error = Some(stale(3, -1, StaleUse::OnError));
    for status in [500, 502, 503, 504] {
        assert_eq!(
            failed("", response, 3, Failure::Status(status)),
            on_error,
            "{status}"
        );
    }
    for status in [200, 400, 404, 501, 505] {
        assert_eq!(
            failed("", response, 3, Failure::Status(status)),
            None,
            "{status}"
        );
    }
    assert_eq!(failed("", response, 63, Failure::Status(503)), None);
    let silent = "Cache-Control: max-age=2";
    assert_eq!(failed("", silent, 3, Failure::Status(503)), None);
    assert_eq!(
        failed(
            "Cache-Control: stale-if-error=9",
            silent,
            3,
            Failure::Status(503)
        ),
        on_error
    );
}

#[test]
fn invalidated_means_validation_and_soft_purged_means_stale() {
    let mut facts = stored("Cache-Control: max-age=60, stale-while-revalidate=60");
    let get = RequestFacts::new(b"GET", &fields(""));
    facts.flags = facts.flags.with(Flags::SOFT_PURGED);
    let decision = decide(&get, &facts, after(0), &Config::default());
    assert_eq!(decision, stale(0, 0, StaleUse::WhileRevalidate));
    facts.flags = facts.flags.with(Flags::INVALIDATED);
    assert_eq!(
        decide(&get, &facts, after(0), &Config::default()),
        go(Fwd::Stale)
    );
    let failure = stale_on_failure(
        &get,
        &facts,
        after(0),
        Failure::Unreachable,
        &Config::default(),
    );
    assert_eq!(failure, None);
}

#[test]
fn a_clock_that_went_backwards_asks_the_origin() {
    check(
        "",
        "Cache-Control: max-age=60 | ETag: \"a\"",
        -5,
        ask(Fwd::Stale, true, false),
    );
}
