//! Tests of updates by 304 and HEAD.

use super::*;
use crate::testing::{T0, TARGET, after, fields, stored};

fn check_fields(old: &str, new: &str, expected: &str) {
    let got = updated_fields(&fields(old), &fields(new), false).unwrap();
    assert_eq!(got, fields(expected), "{old} + {new}");
}

#[test]
fn new_fields_replace_their_namesakes_and_others_stay() {
    check_fields("A: 1 | B: 2", "A: 3", "B: 2 | A: 3");
    check_fields("A: 1 | a: 2 | B: 3", "A: 4", "B: 3 | A: 4");
    check_fields("B: 2", "A: 1 | A: 2", "B: 2 | A: 1 | A: 2");
    check_fields(
        "Set-Cookie: a=b | Content-Type: x",
        "Set-Cookie: a=c",
        "Content-Type: x | Set-Cookie: a=c",
    );
    check_fields(
        "Date: @0 | Expires: @9",
        "Date: @5 | Expires: @60",
        "Date: @5 | Expires: @60",
    );
}

#[test]
fn fields_of_the_stored_bytes_and_of_the_connection_never_change() {
    let old = "Content-Length: 36 | Content-Encoding: gzip | Content-Range: x | Content-MD5: a | Content-Digest: b | Repr-Digest: e | Digest: f";
    check_fields(
        old,
        "Content-Length: 10 | Content-Encoding: br | Content-Range: y | Content-MD5: c | Content-Digest: d | Repr-Digest: g | Digest: h",
        old,
    );
    check_fields(
        "A: 1",
        "Connection: b | B: 2 | Keep-Alive: x | Age: 3",
        "A: 1",
    );
}

fn check_selects(old: &str, new: &str, expected: bool) {
    assert_eq!(
        selects(&fields(old), &fields(new)),
        expected,
        "{old} / {new}"
    );
}

#[test]
fn a_304_selects_by_its_strongest_validator() {
    check_selects("ETag: \"a\"", "ETag: \"a\"", true);
    check_selects("ETag: \"a\"", "ETag: \"b\"", false);
    check_selects("ETag: W/\"a\"", "ETag: W/\"a\"", true);
    check_selects("ETag: W/\"a\"", "ETag: \"b\"", false);
    check_selects("A: b", "ETag: \"b\"", false);
    check_selects("Last-Modified: @-9", "Last-Modified: @-9", true);
    check_selects("Last-Modified: @-9", "Last-Modified: @-8", false);
    check_selects(
        "ETag: \"a\" | Last-Modified: @-9",
        "ETag: \"a\" | Last-Modified: @-8",
        true,
    );
    check_selects("ETag: \"a\" | Last-Modified: @-9", "A: b", true);
}

fn refreshed(request: &str, old: &str, new: &str) -> Refresh {
    refreshed_under(&Config::default(), request, old, new)
}

fn refreshed_under(config: &Config, request: &str, old: &str, new: &str) -> Refresh {
    let (request, new) = (fields(request), fields(new));
    let facts = RequestFacts::new(b"GET", &request);
    refresh(
        &Request {
            facts: &facts,
            target: TARGET,
            fields: &request,
        },
        &fields(old),
        &stored(old),
        &Response {
            status: 304,
            fields: &new,
            request_time: after(10),
            response_time: after(10),
        },
        config,
    )
    .unwrap()
}

#[test]
fn a_page_of_everybody_is_not_one_users_and_stays_so() {
    let page = "Cache-Control: max-age=0 | ETag: \"a\"";
    let anonymous = stored(page);
    let mut for_one_user = anonymous;
    for_one_user.flags.0 &= !Flags::FETCHED_ANONYMOUSLY.0;
    for (old, request, is_for_one_user) in [
        (for_one_user, "Cookie: sid=2", true),
        (for_one_user, "", false),
        (anonymous, "Cookie: sid=2", false),
    ] {
        let request = fields(request);
        let facts = RequestFacts::new(b"GET", &request);
        let request = Request {
            facts: &facts,
            target: TARGET,
            fields: &request,
        };
        let response = Response {
            status: 304,
            fields: &fields("ETag: \"a\""),
            request_time: after(10),
            response_time: after(10),
        };
        let got = refresh(&request, &fields(page), &old, &response, &Config::default());
        assert_eq!(got.unwrap().facts.is_for_one_user(), is_for_one_user);
    }
}

fn check_effect(old: &str, new: &str, expected: RefreshEffect) {
    assert_eq!(refreshed("", old, new).effect, expected, "{old} / {new}");
}

#[test]
fn a_304_starts_a_new_life() {
    let got = refreshed(
        "",
        "Cache-Control: max-age=5 | ETag: \"a\" | A: 1",
        "Date: @10 | A: 2",
    );
    assert_eq!(got.effect, RefreshEffect::Extends);
    assert_eq!(
        (got.facts.status, got.facts.response_time),
        (200, after(10))
    );
    assert_eq!(expires_at(&got.facts), after(15));
    assert_eq!(
        got.fields,
        fields("Cache-Control: max-age=5 | ETag: \"a\" | Date: @10 | A: 2")
    );
    let aged = refreshed("", "Cache-Control: max-age=50 | ETag: \"a\"", "Age: 7");
    assert_eq!(aged.facts.initial_age_ms, 7000);
    assert_eq!(first(&aged.fields, "Age"), None);
}

#[test]
fn a_304_that_takes_something_away_is_told() {
    use RefreshEffect::{Extends, Shortens};
    let old = "Cache-Control: max-age=60, stale-if-error=60 | ETag: \"a\" | Vary: A";
    check_effect(old, "Cache-Control: max-age=60, stale-if-error=60", Extends);
    check_effect(
        old,
        "Cache-Control: max-age=40, stale-if-error=60",
        Shortens,
    );
    check_effect(old, "Cache-Control: max-age=60", Shortens);
    check_effect(
        old,
        "Cache-Control: max-age=60, stale-if-error=60, must-revalidate",
        Shortens,
    );
    check_effect(old, "Cache-Control: no-cache, stale-if-error=60", Shortens);
    check_effect(old, "Vary: a", Extends);
    check_effect(old, "Vary: B", Shortens);
}

#[test]
fn a_304_can_end_storability() {
    let old = "Cache-Control: max-age=5 | ETag: \"a\"";
    check_effect(
        old,
        "Cache-Control: no-store",
        RefreshEffect::Unstorable(NoStore::ResponseNoStore),
    );
    check_effect(
        old,
        "Cache-Control: private",
        RefreshEffect::Unstorable(NoStore::Private),
    );
    check_effect(old, "Vary: *", RefreshEffect::Unstorable(NoStore::VaryStar));
    let got = refreshed("Cache-Control: no-store", old, "A: b");
    assert_eq!(
        got.effect,
        RefreshEffect::Unstorable(NoStore::RequestNoStore)
    );
    assert!(NoStore::RequestNoStore.is_about_request());
    let got = refreshed("Authorization: x", old, "A: b");
    assert_eq!(
        got.effect,
        RefreshEffect::Unstorable(NoStore::Authorization)
    );
    assert!(NoStore::Authorization.is_about_request() && !NoStore::Private.is_about_request());
}

#[test]
fn a_cookie_of_a_304_is_its_clients_alone() {
    let old = "Cache-Control: max-age=60 | ETag: \"a\"";
    let cookie = RefreshEffect::Unstorable(NoStore::SetCookie);
    check_effect(old, "Set-Cookie: a=b", cookie);
    assert!(
        NoStore::SetCookie.is_about_request(),
        "others keep what is stored"
    );
    let shared = "Cache-Control: public, max-age=60 | Set-Cookie: a=b";
    check_effect(old, shared, RefreshEffect::Extends);
    let listed = "Cache-Control: max-age=60, private=\"set-cookie\" | Set-Cookie: a=b";
    check_effect(old, listed, RefreshEffect::Extends);
    let kept = refreshed("", old, listed).fields;
    assert_eq!(first(&kept, "Set-Cookie"), None);
}

#[test]
fn cookies_of_a_304_are_stripped_where_all_are() {
    let strips = Config {
        strip_set_cookie: true,
        ..Config::default()
    };
    let old = "Cache-Control: max-age=60 | ETag: \"a\"";
    let got = refreshed_under(&strips, "", old, "Set-Cookie: a=b | X: 1");
    assert_eq!(got.effect, RefreshEffect::Extends);
    assert_eq!(
        got.fields,
        fields("Cache-Control: max-age=60 | ETag: \"a\" | X: 1")
    );
}

#[test]
fn fields_listed_by_a_304_are_stripped() {
    let got = refreshed(
        "",
        "ETag: \"a\" | X: 1",
        "Cache-Control: max-age=9, private=\"x\"",
    );
    assert_eq!(
        got.fields,
        fields("ETag: \"a\" | Cache-Control: max-age=9, private=\"x\"")
    );
}

#[test]
fn a_part_stays_a_part() {
    let old = crate::testing::store(
        206,
        "Expires: @5 | ETag: \"a\" | Content-Range: bytes 0-4/9",
    );
    let old = old.unwrap().facts;
    let (request, new) = (
        fields("Range: bytes=0-1"),
        fields("Cache-Control: max-age=50"),
    );
    let facts = RequestFacts::new(b"GET", &request);
    let got = refresh(
        &Request {
            facts: &facts,
            target: TARGET,
            fields: &request,
        },
        &fields("Expires: @5 | ETag: \"a\""),
        &old,
        &Response {
            status: 304,
            fields: &new,
            request_time: T0,
            response_time: T0,
        },
        &Config::default(),
    );
    let got = got.unwrap();
    assert_eq!(got.effect, RefreshEffect::Extends);
    assert!(got.facts.status == 206 && got.facts.flags.has(Flags::PARTIAL));
}

#[test]
fn head_freshens_or_invalidates() {
    let check = |status: u16, old: &str, new: &str, expected: HeadUpdate| {
        let response = fields(new);
        let response = Response {
            status,
            fields: &response,
            request_time: T0,
            response_time: T0,
        };
        let old_facts = stored(&format!("Cache-Control: max-age=9 | {old}"));
        let got = head_update(&fields(old), &old_facts, Some(5), &response);
        assert_eq!(got, expected, "{status} {old} / {new}");
    };
    use HeadUpdate::{Freshen, Invalidate, Nothing};
    check(200, "A: 1", "A: 2", Freshen);
    check(
        200,
        "ETag: \"a\"",
        "ETag: \"a\" | Content-Length: 5",
        Freshen,
    );
    check(200, "ETag: \"a\"", "ETag: \"b\"", Invalidate);
    check(200, "A: 1", "ETag: \"b\"", Invalidate);
    check(200, "Last-Modified: @-9", "Last-Modified: @-8", Invalidate);
    check(200, "A: 1", "Content-Length: 6", Invalidate);
    check(410, "A: 1", "A: 2", Nothing);
    check(503, "A: 1", "A: 2", Nothing);
}

#[test]
fn head_freshens_what_get_stored() {
    let (request, new) = (fields(""), fields("Cache-Control: max-age=1000"));
    let facts = RequestFacts::new(b"HEAD", &request);
    let old = "Cache-Control: max-age=2 | A: 1";
    let got = refresh(
        &Request {
            facts: &facts,
            target: TARGET,
            fields: &request,
        },
        &fields(old),
        &stored(old),
        &Response {
            status: 200,
            fields: &new,
            request_time: after(3),
            response_time: after(3),
        },
        &Config::default(),
    );
    let got = got.unwrap();
    assert_eq!(
        (got.effect, expires_at(&got.facts)),
        (RefreshEffect::Extends, after(1003))
    );
}
