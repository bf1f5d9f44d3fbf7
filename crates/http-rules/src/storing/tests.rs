//! Tests of each reason to store a response or not, by status, method, directive and field.

use super::*;
use crate::testing::{fields, store, store_with};

mod sharing;

fn check(status: u16, response: &str, expected: Result<(), NoStore>) {
    assert_eq!(
        store(status, response).map(drop),
        expected,
        "{status} {response}"
    );
}

#[test]
fn fresh_responses_of_every_final_status_are_stored() {
    for status in [
        200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 414, 499, 500,
        501, 502, 503, 504, 599, 999,
    ] {
        check(status, "Cache-Control: max-age=60", Ok(()));
        check(status, "Expires: @60", Ok(()));
    }
}

#[test]
fn some_statuses_are_never_stored() {
    check(103, "Cache-Control: max-age=60", Err(NoStore::Interim));
    check(304, "Cache-Control: max-age=60", Err(NoStore::NotModified));
    for status in [
        401, 407, 408, 412, 413, 416, 417, 421, 425, 426, 428, 429, 431, 511,
    ] {
        check(
            status,
            "Cache-Control: max-age=60",
            Err(NoStore::StatusOfThisRequest),
        );
    }
}

#[test]
fn no_store_is_obeyed_in_both_directions() {
    check(
        200,
        "Cache-Control: No-StOrE, max-age=9 | Expires: @99",
        Err(NoStore::ResponseNoStore),
    );
    let refused = store_with(
        "GET",
        "Cache-Control: no-store",
        200,
        "Expires: @9",
        &Config::default(),
    );
    assert_eq!(refused.unwrap_err(), NoStore::RequestNoStore);
    let deaf = Config {
        obey_request: false,
        ..Config::default()
    };
    assert!(store_with("GET", "Cache-Control: no-store", 200, "Expires: @9", &deaf).is_ok());
    check(
        200,
        "CDN-Cache-Control: no-store | Cache-Control: max-age=9",
        Err(NoStore::ResponseNoStore),
    );
    check(
        200,
        "CDN-Cache-Control: max-age=9 | Cache-Control: no-store",
        Ok(()),
    );
}

#[test]
fn must_understand_overrides_no_store_for_understood_statuses_only() {
    let both = "Cache-Control: max-age=60, no-store, must-understand";
    check(200, both, Ok(()));
    check(404, both, Ok(()));
    check(599, both, Err(NoStore::StatusNotUnderstood));
    check(
        599,
        "Cache-Control: max-age=60, must-understand",
        Err(NoStore::StatusNotUnderstood),
    );
}

#[test]
fn private_is_not_stored_but_its_list_form_is() {
    check(
        200,
        "Cache-Control: private, max-age=60",
        Err(NoStore::Private),
    );
    check(
        200,
        "CDN-Cache-Control: private | Expires: @60",
        Err(NoStore::Private),
    );
    let listed = "Cache-Control: private=\"set-cookie\", max-age=60";
    assert!(store(200, listed).unwrap().strip_listed);
    let strict = Config {
        listed_fields: ListedFields::Unqualified,
        ..Config::default()
    };
    assert_eq!(
        store_with("GET", "", 200, listed, &strict).unwrap_err(),
        NoStore::ListedFields
    );
}

#[test]
fn no_cache_is_stored_for_validation_only() {
    let plan = store(200, "Cache-Control: no-cache, max-age=60 | ETag: \"a\"").unwrap();
    assert!(plan.facts.flags.has(Flags::NO_CACHE));
    check(
        200,
        "Cache-Control: no-cache, max-age=60",
        Err(NoStore::ExpiredOnArrival),
    );
    let listed = "Cache-Control: no-cache=\"a\", max-age=60";
    assert!(!store(200, listed).unwrap().facts.flags.has(Flags::NO_CACHE));
    let strict = Config {
        listed_fields: ListedFields::Unqualified,
        ..Config::default()
    };
    let strict = store_with(
        "GET",
        "",
        200,
        "Cache-Control: no-cache=\"a\" | ETag: \"a\"",
        &strict,
    );
    assert!(strict.unwrap().facts.flags.has(Flags::NO_CACHE));
}

#[test]
fn authorization_needs_permission_to_share() {
    let check = |control: &str, expected: Result<(), NoStore>| {
        let response = format!("Cache-Control: {control}");
        let got = store_with(
            "GET",
            "Authorization: x",
            200,
            &response,
            &Config::default(),
        );
        assert_eq!(got.map(drop), expected, "{control}");
    };
    check("max-age=60", Err(NoStore::Authorization));
    check("max-age=60, public", Ok(()));
    check("max-age=60, must-revalidate", Ok(()));
    check("s-maxage=60", Ok(()));
    check("max-age=60, proxy-revalidate", Err(NoStore::Authorization));
}

#[test]
fn only_get_and_explicit_post_are_stored() {
    let posting = Config {
        post: true,
        ..Config::default()
    };
    let check = |method: &str, response: &str, expected: Result<StoreUnder, NoStore>| {
        let got = store_with(method, "", 200, response, &posting);
        assert_eq!(got.map(|plan| plan.under), expected, "{method} {response}");
    };
    check("GET", "Expires: @60", Ok(StoreUnder::Request));
    for method in ["HEAD", "PUT", "DELETE", "OPTIONS", "M-SEARCH", "get"] {
        check(method, "Expires: @60", Err(NoStore::Method));
    }
    let same = "Expires: @60 | Content-Location: /a/b?c=d";
    check("POST", same, Ok(StoreUnder::GetOfTarget));
    check(
        "POST",
        "Expires: @60 | Content-Location: http://example.com/a/b?c=d",
        Ok(StoreUnder::GetOfTarget),
    );
    for other in [
        "Expires: @60",
        "Expires: @60 | Content-Location: /other",
        "Expires: @60 | Content-Location: http://other.example/a/b?c=d",
        "Last-Modified: @-999 | Content-Location: /a/b?c=d",
        "Expires: @-1 | ETag: \"a\" | Content-Location: /a/b?c=d",
    ] {
        check("POST", other, Err(NoStore::PostWithoutContentLocation));
    }
    let refused = store_with("POST", "", 200, same, &Config::default());
    assert_eq!(refused.unwrap_err(), NoStore::Method);
}

#[test]
fn a_get_with_content_is_not_stored() {
    let config = Config::default();
    let refused = store_with("GET", "Content-Length: 5", 200, "Expires: @60", &config);
    assert_eq!(refused.unwrap_err(), NoStore::RequestBody);
    assert!(store_with("GET", "Content-Length: 0", 200, "Expires: @60", &config).is_ok());
}

#[test]
fn vary_star_and_wide_lists_are_refused() {
    for star in [
        "*",
        "*, *",
        ", *",
        "Foo, *",
        "*, Foo",
        "| Vary: *",
        "Foo | Vary: *",
    ] {
        check(
            200,
            &format!("Expires: @60 | Vary: {star}"),
            Err(NoStore::VaryStar),
        );
    }
    let wide = (0..17)
        .map(|n| format!("f{n}"))
        .collect::<Vec<_>>()
        .join(",");
    check(
        200,
        &format!("Expires: @60 | Vary: {wide}"),
        Err(NoStore::VaryTooWide),
    );
    let plan = store(200, "Expires: @60 | Vary: Foo").unwrap();
    assert!(plan.facts.flags.has(Flags::VARY) && plan.vary.is_some());
    assert_eq!(store(200, "Expires: @60 | Vary: ,").unwrap().vary, None);
}

#[test]
fn what_could_never_be_reused_is_not_stored() {
    check(200, "A: b", Err(NoStore::NothingToReuse));
    check(200, "ETag: \"a\"", Ok(()));
    check(200, "Last-Modified: @-10", Ok(()));
    check(
        200,
        "Cache-Control: max-age=0",
        Err(NoStore::ExpiredOnArrival),
    );
    check(200, "Cache-Control: max-age=0 | ETag: \"a\"", Ok(()));
    check(
        200,
        "Cache-Control: max-age=0, stale-while-revalidate=9",
        Ok(()),
    );
    check(
        200,
        "Cache-Control: max-age=60 | Age: 60",
        Err(NoStore::ExpiredOnArrival),
    );
    check(302, "ETag: \"a\"", Err(NoStore::StatusNeedsFreshness));
    check(
        403,
        "Cache-Control: no-cache | ETag: \"a\"",
        Err(NoStore::StatusNeedsFreshness),
    );
    let off = Config {
        ttl_max_s: Some(0),
        ..Config::default()
    };
    let refused = store_with("GET", "", 200, "Expires: @60", &off);
    assert_eq!(refused.unwrap_err(), NoStore::ConfiguredOff);
}

#[test]
fn parts_need_one_valid_content_range() {
    let part = |range: &str| store(206, &format!("Expires: @60 | {range}"));
    let plan = part("Content-Range: bytes 4-9/10").unwrap();
    assert_eq!(plan.part, ContentRange::parse(b"bytes 4-9/10"));
    assert!(plan.facts.flags.has(Flags::PARTIAL));
    for bad in [
        "A: b",
        "Content-Range: bytes */10",
        "Content-Range: bytes 9-4/10",
        "Content-Range: lines 4-9/10",
        "Content-Range: bytes 0-1/9 | Content-Range: bytes 2-3/9",
        "Content-Type: multipart/byteranges; boundary=x",
        "Content-Range: bytes 4-9/10 | Content-Type: multipart/byteranges; boundary=x",
        "Content-Range: bytes 4-9/10 | Content-Type: Multipart/ByteRanges",
    ] {
        assert_eq!(part(bad).unwrap_err(), NoStore::PartialUnusable, "{bad}");
    }
}

#[test]
fn pragma_on_a_response_stops_only_heuristics() {
    let has = |response: &str| {
        store(200, response)
            .unwrap()
            .facts
            .flags
            .has(Flags::NO_CACHE)
    };
    assert!(has("Pragma: no-cache | Last-Modified: @-9999"));
    assert!(!has("Pragma: no-cache | Cache-Control: max-age=60"));
    assert!(!has("Pragma: other | Last-Modified: @-9999"));
}

#[test]
fn incomplete_messages_need_a_strong_validator() {
    let keep = |status, response: &str| may_keep_incomplete(&store(status, response).unwrap());
    assert_eq!(keep(200, "Expires: @60 | ETag: \"a\""), Ok(()));
    assert_eq!(
        keep(
            206,
            "Expires: @60 | ETag: \"a\" | Content-Range: bytes 0-4/9"
        ),
        Ok(())
    );
    assert_eq!(
        keep(200, "Expires: @60 | ETag: W/\"a\""),
        Err(NoStore::Incomplete)
    );
    assert_eq!(keep(200, "Expires: @60"), Err(NoStore::Incomplete));
    assert_eq!(
        keep(404, "Expires: @60 | ETag: \"a\""),
        Err(NoStore::Incomplete)
    );
}

#[test]
fn final_answers_supersede_but_errors_and_conditions_do_not() {
    let get = RequestFacts::new(b"GET", &fields(""));
    for status in [200, 204, 301, 404, 410] {
        assert!(supersedes(&get, status), "{status}");
    }
    for status in [103, 206, 304, 401, 412, 416, 500, 503, 599] {
        assert!(!supersedes(&get, status), "{status}");
    }
    assert!(!supersedes(&RequestFacts::new(b"HEAD", &fields("")), 200));
    let with_content = RequestFacts::new(b"GET", &fields("Content-Length: 5"));
    assert!(!supersedes(&with_content, 200));
}

#[test]
fn facts_are_remembered() {
    let all = "Cache-Control: max-age=9, must-revalidate, proxy-revalidate, immutable, \
               stale-while-revalidate=3, stale-if-error=4 | ETag: \"a\" | Last-Modified: @-5 | Date: @-1";
    let facts = store(200, all).unwrap().facts;
    let flags = Flags::MUST_REVALIDATE
        .with(Flags::PROXY_REVALIDATE)
        .with(Flags::IMMUTABLE)
        .with(Flags::HAS_ETAG)
        .with(Flags::STRONG_ETAG)
        .with(Flags::HAS_LAST_MODIFIED);
    assert_eq!(facts.flags, flags);
    assert_eq!(
        (facts.stale_while_revalidate_s, facts.stale_if_error_s),
        (Some(3), Some(4))
    );
    assert_eq!(facts.date, Some(crate::testing::after(-1)));
    assert_eq!(facts.last_modified, Some(crate::testing::after(-5)));
    let weak = store(200, "Cache-Control: s-maxage=9 | ETag: W/\"a\"")
        .unwrap()
        .facts;
    assert_eq!(weak.flags, Flags::PROXY_REVALIDATE.with(Flags::HAS_ETAG));
}

#[test]
fn sizes_are_limited_by_configuration_only() {
    let limited = Config {
        store_bytes_min: 10,
        store_bytes_max: 100,
        ..Config::default()
    };
    for (length, result) in [
        (9, Err(NoStore::TooSmall)),
        (10, Ok(())),
        (100, Ok(())),
        (101, Err(NoStore::TooLarge)),
    ] {
        assert_eq!(check_size(length, &limited), result, "{length}");
        assert_eq!(check_size(length, &Config::default()), Ok(()));
    }
}

#[test]
fn key_parts_of_a_rule_join_the_vary_list() {
    let config = Config {
        key_parts: vec!["x-device".into()],
        vary_fields_max: 2,
        ..Config::default()
    };
    let list = |response: &str| {
        let plan = store_with("GET", "", 200, response, &config)?;
        Ok::<_, NoStore>(plan.vary.map(|list| list.as_bytes().to_vec()))
    };
    assert_eq!(list("Expires: @60"), Ok(Some(b"x-device".to_vec())));
    assert_eq!(
        list("Expires: @60 | Vary: Accept, X-Device"),
        Ok(Some(b"accept,x-device".to_vec()))
    );
    assert_eq!(list("Expires: @60 | Vary: *"), Err(NoStore::VaryStar));
    assert_eq!(list("Expires: @60 | Vary: a, b"), Err(NoStore::VaryTooWide));
}
