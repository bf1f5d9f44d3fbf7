//! Tests with requests that have Cookie or Authorization, and responses that other users fetched.

use super::*;

/// A page without freshness information. Its heuristic lifetime is 1000 s.
const PAGE: &str = "Last-Modified: @-10000 | Content-Type: text/html";
const IMAGE: &str = "Last-Modified: @-10000 | Content-Type: image/png";
const USERS: [&str; 2] = ["Cookie: sid=2", "Authorization: Basic b"];

#[test]
fn a_heuristic_lifetime_holds_for_requests_without_credentials() {
    check("", PAGE, 9, fresh(9, 991));
    check("Accept: text/html", IMAGE, 9, fresh(9, 991));
}

#[test]
fn a_heuristic_lifetime_holds_for_users_only_where_the_type_is_static() {
    for user in USERS {
        check(user, PAGE, 9, ask(Fwd::Stale, false, true));
        check(user, IMAGE, 9, fresh(9, 991));
        check(
            user,
            "Cache-Control: max-age=60 | Content-Type: text/html",
            9,
            fresh(9, 51),
        );
    }
}

#[test]
fn a_heuristic_lifetime_with_bounds_of_the_operator_stays_heuristic() {
    for (min, max) in [(Some(2000), None), (None, Some(500))] {
        let config = Config {
            ttl_min_s: min,
            ttl_max_s: max,
            ..Config::default()
        };
        let page = crate::testing::store_with("GET", "", 200, PAGE, &config).unwrap();
        let request = RequestFacts::new(b"GET", &fields(USERS[0]));
        let decision = decide(&request, &page.facts, after(1), &config);
        assert_eq!(decision, ask(Fwd::Stale, false, true), "{min:?} {max:?}");
    }
}

#[test]
fn default_ttl_is_the_operators_word_and_not_heuristic() {
    let config = Config {
        default_ttl_s: Some(60),
        ..Config::default()
    };
    let page = crate::testing::store_with("GET", USERS[0], 200, "A: b", &config).unwrap();
    let request = RequestFacts::new(b"GET", &fields(USERS[0]));
    let decision = decide(&request, &page.facts, after(1), &config);
    assert_eq!(decision, fresh(1, 59));
}

fn on_failure(request: &str, response: &str, secs: i64) -> Option<Decision> {
    let request = RequestFacts::new(b"GET", &fields(request));
    let config = Config::default();
    let (stored, now) = (stored(response), after(secs));
    stale_on_failure(&request, &stored, now, Failure::Unreachable, &config)
}

#[test]
fn users_get_no_stale_answer_that_only_a_heuristic_lifetime_shares() {
    let lenient =
        format!("{PAGE} | Cache-Control: stale-while-revalidate=9999, stale-if-error=9999");
    check(
        "",
        &lenient,
        1001,
        stale(1001, -1, StaleUse::WhileRevalidate),
    );
    assert!(on_failure("", &lenient, 1001).is_some());
    for user in USERS {
        check(user, &lenient, 1001, ask(Fwd::Stale, false, true));
        let impatient = format!("{user} | Cache-Control: max-stale");
        check(&impatient, PAGE, 1001, ask(Fwd::Stale, false, true));
        assert_eq!(on_failure(user, &lenient, 1001), None);
        assert_eq!(on_failure(user, "ETag: \"a\"", 1), None);
    }
}

#[test]
fn users_get_a_never_fresh_answer_stale_only_by_permission() {
    for page in [
        "Cache-Control: max-age=0 | ETag: \"a\"",
        "Expires: @-9 | ETag: \"a\"",
    ] {
        assert!(on_failure("", page, 1).is_some());
        for user in USERS {
            assert_eq!(on_failure(user, page, 1), None);
            let impatient = format!("{user} | Cache-Control: max-stale");
            check(&impatient, page, 1, ask(Fwd::Stale, true, false));
        }
    }
    let leave = "Cache-Control: max-age=0, stale-if-error=60, stale-while-revalidate=60";
    assert!(on_failure(USERS[0], leave, 1).is_some());
    check(USERS[0], leave, 1, stale(1, -1, StaleUse::WhileRevalidate));
}

#[test]
fn what_a_user_got_and_was_never_fresh_is_stale_for_nobody() {
    let config = Config::default();
    let failed = |request: &RequestFacts, stored: &CachingFacts| {
        stale_on_failure(request, stored, after(1), Failure::Unreachable, &config).is_some()
    };
    let plain = RequestFacts::new(b"GET", &fields(""));
    let patient = RequestFacts::new(b"GET", &fields("Cache-Control: max-stale"));
    for page in [
        "Cache-Control: max-age=0 | ETag: \"a\"",
        "Last-Modified: @-10000 | Content-Type: text/html",
    ] {
        let store = |request| crate::testing::store_with("GET", request, 200, page, &config);
        let for_one_user = store(USERS[0]).unwrap().facts;
        assert_eq!(
            CachingFacts::decode(&for_one_user.encode()),
            Some(for_one_user)
        );
        assert!(!failed(&plain, &for_one_user), "{page}");
        let decision = decide(&patient, &for_one_user, after(1), &config);
        let asks = matches!(
            decision,
            Decision::Revalidate { .. } | Decision::Forward { .. }
        );
        assert!(asks, "{page}: {decision:?}");
        assert!(failed(&plain, &store("").unwrap().facts), "{page}");
    }
    let leave = "Cache-Control: max-age=0, stale-if-error=60";
    let leave = crate::testing::store_with("GET", USERS[0], 200, leave, &config);
    assert!(failed(&plain, &leave.unwrap().facts));
}

#[test]
fn the_page_of_a_user_is_validated_by_its_entity_tag_alone() {
    let config = Config::default();
    let validation = |page: &str, first: &str, next: &str| {
        let stored = crate::testing::store_with("GET", first, 200, page, &config).unwrap();
        let next = RequestFacts::new(b"GET", &fields(next));
        match decide(&next, &stored.facts, after(1), &config) {
            Decision::Revalidate {
                if_none_match,
                if_modified_since,
                ..
            } => Some((if_none_match, if_modified_since)),
            Decision::Forward { .. } => None,
            other => panic!("{page}: {other:?}"),
        }
    };
    for control in ["max-age=0", "no-cache", "no-cache, max-age=60"] {
        let dated = format!("Cache-Control: {control} | Last-Modified: @-10000");
        let tagged = format!("{dated} | ETag: \"a\"");
        for next in [USERS[0], USERS[1], ""] {
            assert_eq!(validation(&dated, USERS[0], next), None, "{control}");
            let by_tag = Some((true, false));
            assert_eq!(validation(&tagged, USERS[0], next), by_tag, "{control}");
        }
        // Here a request without credentials fetched the page, so the page's Last-Modified may be sent to
        // validate the page.
        assert_eq!(validation(&dated, "", USERS[0]), Some((false, true)));
    }
}

/// A record of an older Foxy does not state whether the request that fetched the page had credentials.
#[test]
fn a_page_that_needs_validation_and_was_stored_before_may_be_of_a_user() {
    let config = Config::default();
    let before = |page: &str| {
        let stored = crate::testing::store_with("GET", "", 200, page, &config).unwrap();
        let mut bytes = stored.facts.encode();
        bytes[3] &= !0x40;
        CachingFacts::decode(&bytes).unwrap()
    };
    let plain = RequestFacts::new(b"GET", &fields(""));
    for control in ["max-age=0", "no-cache, max-age=60"] {
        let page = format!("Cache-Control: {control} | Last-Modified: @-10000");
        let decision = decide(&plain, &before(&page), after(1), &config);
        assert_eq!(decision, Decision::Forward { reason: Fwd::Stale }, "{page}");
    }
    let shared = before("Cache-Control: max-age=60 | Last-Modified: @-10000");
    let decision = decide(&plain, &shared, after(61), &config);
    assert_eq!(decision, ask(Fwd::Stale, false, true));
}

#[test]
fn request_directives_are_ignored_if_requests_are_not_obeyed() {
    let deaf = Config {
        obey_request: false,
        ..Config::default()
    };
    let kept = stored("Cache-Control: max-age=60");
    for directive in ["no-cache", "max-age=0", "min-fresh=99", "only-if-cached"] {
        let request = format!("Cache-Control: {directive}");
        let request = RequestFacts::new(b"GET", &fields(&request));
        assert_eq!(decide(&request, &kept, after(0), &deaf), fresh(0, 60));
        assert_eq!(decide(&request, &kept, after(61), &deaf), go(Fwd::Stale));
        let facts = request.under(&deaf);
        assert_eq!(decide_miss(&facts, Miss::Uri), go(Fwd::UriMiss));
    }
    let request = fields(
        "Cache-Control: max-stale=99, stale-if-error=99, no-store | Pragma: no-cache | Cookie: a",
    );
    let request = RequestFacts::new(b"GET", &request).under(&deaf);
    let plain = RequestFacts::new(b"GET", &fields("Cookie: a"));
    assert_eq!(request, plain);
}
