//! Tests of cookies and credentials that prevent sharing.

use super::*;

#[test]
fn cookies_are_stored_only_if_the_response_permits_sharing() {
    let cookie = Err(NoStore::SetCookie);
    check(200, "Cache-Control: max-age=60 | Set-Cookie: a=b", cookie);
    check(200, "Expires: @60 | Set-Cookie: a=b", cookie);
    check(200, "ETag: \"a\" | Set-Cookie: a=b", cookie);
    check(
        200,
        "Cache-Control: max-age=60, must-revalidate | Set-Cookie: a=b",
        cookie,
    );
    check(
        200,
        "CDN-Cache-Control: max-age=60 | Cache-Control: public | Set-Cookie: a=b",
        cookie,
    );
    check(
        200,
        "CDN-Cache-Control: max-age=60, public | Set-Cookie: a=b",
        Ok(()),
    );
    check(
        200,
        "Cache-Control: public, max-age=60 | Set-Cookie: a=b",
        Ok(()),
    );
    check(200, "Cache-Control: s-maxage=60 | Set-Cookie: a=b", Ok(()));
    check(
        200,
        "Cache-Control: public | Last-Modified: @-9999 | Set-Cookie: a=b",
        Err(NoStore::SetCookieWithoutFreshness),
    );
}

#[test]
fn cookies_that_are_not_kept_forbid_nothing() {
    for directive in ["private", "no-cache"] {
        let response =
            format!("Cache-Control: max-age=60, {directive}=\"Set-Cookie\" | Set-Cookie: a=b");
        check(200, &response, Ok(()));
        let other = response.replace("\"Set-Cookie\"", "\"X-Other\"");
        check(200, &other, Err(NoStore::SetCookie));
    }
    let strip = Config {
        strip_set_cookie: true,
        ..Config::default()
    };
    let response = "Cache-Control: max-age=60 | Set-Cookie: a=b";
    let plan = store_with("GET", "", 200, response, &strip).unwrap();
    let kept = crate::stored_fields(&fields(response), &plan).unwrap();
    assert_eq!(values(&kept, "Set-Cookie").count(), 0);
}

#[test]
fn a_cookie_that_only_a_rule_shares_is_marked() {
    let config = Config {
        store_set_cookie: true,
        ..Config::default()
    };
    for (response, marked) in [
        ("Cache-Control: max-age=60 | Set-Cookie: a=b", true),
        ("Cache-Control: max-age=60, public | Set-Cookie: a=b", false),
        ("Cache-Control: s-maxage=60 | Set-Cookie: a=b", false),
        (
            "Cache-Control: max-age=60, private=\"Set-Cookie\" | Set-Cookie: a=b",
            false,
        ),
        ("Cache-Control: max-age=60", false),
    ] {
        let facts = store_with("GET", "", 200, response, &config).unwrap().facts;
        assert_eq!(facts.flags.has(Flags::COOKIE_BY_RULE), marked, "{response}");
        let read = CachingFacts::decode(&facts.encode());
        assert_eq!(read, Some(facts), "{response}");
    }
}

#[test]
fn the_operator_may_have_cookies_stored_with_explicit_freshness() {
    let config = Config {
        store_set_cookie: true,
        ..Config::default()
    };
    let check = |status, response: &str, expected: Result<(), NoStore>| {
        let stored = store_with("GET", "", status, response, &config).map(|_| ());
        assert_eq!(stored, expected, "{response}");
    };
    check(200, "Cache-Control: max-age=60 | Set-Cookie: a=b", Ok(()));
    check(
        200,
        "Last-Modified: @-9999 | Set-Cookie: a=b",
        Err(NoStore::SetCookieWithoutFreshness),
    );
    check(
        200,
        "ETag: \"a\" | Set-Cookie: a=b",
        Err(NoStore::SetCookieWithoutFreshness),
    );
}

/// Lifetime and source of the lifetime of a response stored for a request with these fields.
fn life(request: &str, response: &str) -> (u32, LifetimeSource) {
    let plan = store_with("GET", request, 200, response, &Config::default()).unwrap();
    (plan.facts.lifetime_s, plan.facts.source)
}

#[test]
fn no_lifetime_is_heuristic_for_a_request_with_credentials() {
    use LifetimeSource::{Heuristic, None};
    let page = "Last-Modified: @-10000 | Content-Type: text/html";
    assert_eq!(life("", page), (1000, Heuristic));
    assert_eq!(life("Cookie: a=b", page), (0, None));
    assert_eq!(life("Cookie: a=b", "Last-Modified: @-10000"), (0, None));
    let style = "Last-Modified: @-10000 | Content-Type: text/css; charset=utf-8";
    assert_eq!(life("Cookie: a=b", style), (1000, Heuristic));
    let public = format!("{style} | Cache-Control: public");
    assert_eq!(life("Authorization: x", &public), (0, None));
}

#[test]
fn a_validation_for_a_user_ends_a_heuristic_lifetime() {
    let page = fields("Last-Modified: @-10000 | Content-Type: text/html");
    let request = fields("Cookie: a=b");
    let refreshed = crate::refresh(
        &Request {
            facts: &RequestFacts::new(b"GET", &request),
            target: crate::testing::TARGET,
            fields: &request,
        },
        &page,
        &store(200, "Last-Modified: @-10000 | Content-Type: text/html")
            .unwrap()
            .facts,
        &Response {
            status: 304,
            fields: &fields("Date: @5"),
            request_time: crate::testing::after(5),
            response_time: crate::testing::after(5),
        },
        &Config::default(),
    )
    .unwrap();
    assert_eq!(refreshed.facts.lifetime_s, 0);
    assert_eq!(refreshed.effect, crate::RefreshEffect::Shortens);
}
