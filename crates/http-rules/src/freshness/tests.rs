//! Tests of lifetimes and ages at their limits, and of their arithmetic with any input.

use proptest::prelude::*;

use super::*;
use crate::testing::{T0, after, fields, store, store_with, stored};

fn check_lifetime(status: u16, response: &str, seconds: u32, source: LifetimeSource) {
    let facts = store(status, response).unwrap().facts;
    assert_eq!(
        (facts.lifetime_s, facts.source),
        (seconds, source),
        "{response}"
    );
}

#[test]
fn the_first_explicit_lifetime_decides() {
    use LifetimeSource as S;
    check_lifetime(200, "Cache-Control: s-maxage=5, max-age=9", 5, S::SMaxage);
    check_lifetime(200, "Cache-Control: max-age=9, s-maxage=5", 5, S::SMaxage);
    check_lifetime(
        200,
        "Cache-Control: max-age=9 | Cache-Control: s-maxage=5",
        5,
        S::SMaxage,
    );
    check_lifetime(
        200,
        "Cache-Control: max-age=0, s-maxage=99 | Expires: @-10",
        99,
        S::SMaxage,
    );
    check_lifetime(
        200,
        "Cache-Control: max-age=9 | Expires: @3600",
        9,
        S::MaxAge,
    );
    check_lifetime(200, "Cache-Control: max-age=9 | Expires: 0", 9, S::MaxAge);
    check_lifetime(200, "Expires: @3600 | Date: @0", 3600, S::Expires);
    check_lifetime(
        200,
        "CDN-Cache-Control: max-age=7 | Expires: @-9",
        7,
        S::Targeted,
    );
    check_lifetime(
        200,
        "Cache-Control: max-age=9 | CDN-Cache-Control: a | ETag: \"a\"",
        0,
        S::None,
    );
}

#[test]
fn expires_counts_from_date_or_receipt() {
    use LifetimeSource::Expires;
    check_lifetime(200, "Date: @-10 | Expires: @10", 20, Expires);
    check_lifetime(200, "Date: @10 | Expires: @20", 10, Expires);
    check_lifetime(200, "Date: foo | Expires: @10", 10, Expires);
    check_lifetime(200, "Expires: @10", 10, Expires);
    check_lifetime(
        200,
        "Expires: Sun, 21 Nov 2286 04:46:39 GMT",
        DELTA_MAX,
        Expires,
    );
}

#[test]
fn bad_expires_is_expired() {
    for expires in [
        "0",
        "-1",
        "",
        "foo",
        "@0",
        "@-5",
        "Thu, 18 Aug 2050 02:01:18 UTC",
        "@60 | Expires: @61",
        "@60 | Expires: 0",
    ] {
        let response = format!("Date: @0 | ETag: \"a\" | Expires: {expires}");
        check_lifetime(200, &response, 0, LifetimeSource::Expires);
    }
    check_lifetime(
        200,
        "Date: @0 | Expires: @60 | Expires: @60",
        60,
        LifetimeSource::Expires,
    );
}

#[test]
fn heuristics_are_a_tenth_up_to_the_cap_and_only_where_allowed() {
    use LifetimeSource::{Heuristic, None};
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        check_lifetime(status, "Date: @0 | Last-Modified: @-86400", 8640, Heuristic);
    }
    check_lifetime(200, "Last-Modified: @-100", 10, Heuristic);
    check_lifetime(200, "Last-Modified: @100", 0, Heuristic);
    check_lifetime(
        200,
        "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT",
        604_800,
        Heuristic,
    );
    check_lifetime(
        599,
        "Last-Modified: @-86400 | Cache-Control: public",
        8640,
        Heuristic,
    );
    check_lifetime(200, "Last-Modified: junk | ETag: \"a\"", 0, None);
    for status in [201, 202, 302, 303, 307, 403, 500, 502, 503, 504, 599] {
        let refused = store(status, "Date: @0 | Last-Modified: @-86400").unwrap_err();
        assert_eq!(refused, crate::NoStore::StatusNeedsFreshness, "{status}");
    }
}

#[test]
fn configured_lifetimes_fill_gaps_and_bound() {
    use LifetimeSource::{
        Default as Fallback, Expires, Heuristic, MaxAge, Maximum, Minimum, Negative, None,
    };
    let config = Config {
        default_ttl_s: Some(11),
        negative_ttl_s: Some(12),
        server_error_ttl_s: Some(13),
        ttl_min_s: Some(5),
        ttl_max_s: Some(100),
        ..Config::default()
    };
    let check = |status, response: &str, seconds, source| {
        let facts = store_with("GET", "", status, response, &config)
            .unwrap()
            .facts;
        assert_eq!(
            (facts.lifetime_s, facts.source),
            (seconds, source),
            "{status} {response}"
        );
    };
    check(200, "A: b", 11, Fallback);
    check(404, "A: b", 12, Negative);
    check(503, "A: b", 13, Negative);
    check(200, "Cache-Control: max-age=1", 5, Minimum);
    check(200, "Cache-Control: max-age=50", 50, MaxAge);
    check(200, "Cache-Control: max-age=500", 100, Maximum);
    for status in [400, 404, 410, 500, 503] {
        check(status, "Cache-Control: max-age=1", 1, MaxAge);
        check(status, "Expires: @2 | Date: @0", 2, Expires);
    }
    check(404, "Last-Modified: @-20 | Date: @0", 2, Heuristic);
    check(404, "Cache-Control: max-age=500", 100, Maximum);
    check(301, "Cache-Control: max-age=1", 5, Minimum);
    let refused = store_with("GET", "", 403, "A: b", &config).unwrap_err();
    assert_eq!(refused, crate::NoStore::StatusNeedsFreshness);
    let plain = Config {
        ttl_min_s: Some(5),
        ..Config::default()
    };
    let facts = store_with("GET", "", 200, "ETag: \"a\"", &plain)
        .unwrap()
        .facts;
    assert_eq!((facts.lifetime_s, facts.source), (0, None));
}

fn check_age(response: &str, expected: u32) {
    assert_eq!(age_value(&fields(response)), expected, "{response}");
}

#[test]
fn the_first_age_member_counts_if_it_is_a_number() {
    check_age("Age: 7200", 7200);
    check_age("Age: abc", 0);
    check_age("Age: -7200", 0);
    check_age("Age: 7200.0", 0);
    check_age("Age: 7200;foo=bar", 0);
    check_age("Age: 2147483649", DELTA_MAX);
    check_age("Age: 7200, 0", 7200);
    check_age("Age: 0, 7200", 0);
    check_age("Age: 7200 | Age: 0", 7200);
    check_age("Age: 0 | Age: 7200", 0);
    check_age("A: b", 0);
}

#[test]
fn initial_age_takes_the_larger_of_date_and_age() {
    let check = |response: &str, delay_ms: i64, expected: i64| {
        let block = fields(response);
        let times = Times::of(&block, WallTime(T0.0 - delay_ms), T0);
        assert_eq!(initial_age_ms(&block, &times), expected, "{response}");
    };
    check("Date: @0", 0, 0);
    check("Date: @-10", 0, 10_000);
    check("Date: @10", 0, 0);
    check("Age: 30", 0, 30_000);
    check("Age: 30", 1500, 31_500);
    check("Age: 30 | Date: @-40", 1500, 40_000);
    check("Age: 30", -9000, 30_000);
    check("A: b", 0, 0);
}

#[test]
fn a_response_is_fresh_exactly_until_its_lifetime_is_over() {
    let facts = stored("Cache-Control: max-age=2 | Date: @0");
    assert_eq!(ttl_ms(&facts, WallTime(T0.0 + 1999)), 1);
    assert_eq!(ttl_ms(&facts, WallTime(T0.0 + 2000)), 0);
    assert_eq!(age(&facts, WallTime(T0.0 + 1999)), 1);
    assert_eq!(age(&facts, WallTime(T0.0 + 3000)), 3);
    assert_eq!(expires_at(&facts), after(2));
}

#[test]
fn age_in_transit_shortens_life() {
    let facts = stored("Cache-Control: max-age=3600 | Age: 3000");
    assert_eq!(ttl_ms(&facts, after(0)), 600_000);
    assert_eq!(expires_at(&facts), after(600));
    let old = stored("Cache-Control: max-age=3600 | Age: 7200 | ETag: \"a\"");
    assert_eq!(ttl_ms(&old, after(0)), -3_600_000);
    assert_eq!(age(&old, after(3)), 7203);
}

#[test]
fn a_clock_that_went_backwards_makes_stale_never_younger() {
    let facts = stored("Cache-Control: max-age=3600 | Age: 30");
    let back = after(-10);
    assert!(ttl_ms(&facts, back) <= 0);
    assert_eq!(age(&facts, back), 30);
    let slack = WallTime(T0.0 - CLOCK_SLACK_MS);
    assert!(
        ttl_ms(&facts, slack) > 0,
        "threads may read the clock in any order"
    );
}

#[test]
fn uses_end_after_the_longest_stale_allowance() {
    let config = Config {
        stale_on_disconnect_s: 100,
        ..Config::default()
    };
    let facts = stored("Cache-Control: max-age=10, stale-if-error=500");
    assert_eq!(useless_at(&facts, &config), after(510));
    let facts = stored("Cache-Control: max-age=10");
    assert_eq!(useless_at(&facts, &config), after(110));
}

proptest! {
    #[test]
    fn age_and_freshness_are_monotone(
        initial in 0..=i64::MAX, lifetime: u32, response: i64, a: i64, b: i64, flags in 0..4096u16,
    ) {
        let mut facts = stored("Cache-Control: max-age=1");
        (facts.initial_age_ms, facts.lifetime_s) = (initial, lifetime);
        (facts.response_time, facts.flags) = (WallTime(response), Flags(flags));
        let (early, late) = (WallTime(a.min(b)), WallTime(a.max(b)));
        prop_assert!(age_ms(&facts, early) <= age_ms(&facts, late));
        prop_assert!(age_ms(&facts, early) >= initial);
        prop_assert!(age(&facts, early) <= age(&facts, late));
        // From the time of receipt on, the remaining lifetime only shrinks. A clock that shows an earlier
        // time can make the response stale at first and fresh later.
        if early >= facts.response_time {
            prop_assert!(ttl_ms(&facts, early) >= ttl_ms(&facts, late));
        }
        let _ = (expires_at(&facts), useless_at(&facts, &Config::default()));
    }

    #[test]
    fn any_times_are_survived(request: i64, response: i64, date: i64, modified: i64, age: u64) {
        let text = age.to_string();
        let list: &[(&str, &str)] = &[("Age", &text)];
        let times = Times {
            request_time: WallTime(request),
            response_time: WallTime(response),
            date: Some(WallTime(date)),
            last_modified: Some(WallTime(modified)),
        };
        prop_assert!(initial_age_ms(list, &times) >= 0);
        let get = RequestFacts::new(b"GET", &fields(""));
        let found = lifetime(&get, 200, list, &ResponseControl::default(), &times, &Config::default());
        prop_assert!(found.seconds <= Config::default().heuristic_max_s);
    }
}
