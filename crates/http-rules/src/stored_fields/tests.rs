//! Tests of the fields that are stored.

use super::*;
use crate::Config;
use crate::testing::{fields, store, store_with};

fn check(status: u16, response: &str, expected: &str) {
    let plan = store(status, response).unwrap();
    let kept = stored_fields(&fields(response), &plan).unwrap();
    assert_eq!(kept, fields(expected), "{response}");
}

#[test]
fn hop_by_hop_fields_are_not_stored() {
    for name in HOP_BY_HOP {
        let response = format!("Cache-Control: max-age=9 | {name}: xyz | A: b");
        check(200, &response, "Cache-Control: max-age=9 | A: b");
    }
}

#[test]
fn fields_listed_by_connection_are_not_stored() {
    check(
        200,
        "Connection: a | connection: B, close | A: 1 | b: 2 | C: 3 | Expires: @60",
        "C: 3 | Expires: @60",
    );
}

#[test]
fn calculated_fields_are_not_stored() {
    check(
        200,
        "Age: 1 | Content-Length: 5 | Expires: @60",
        "Expires: @60",
    );
    check(
        200,
        "Content-Range: odd | Expires: @60",
        "Content-Range: odd | Expires: @60",
    );
    check(
        206,
        "Content-Range: bytes 0-4/9 | Expires: @60",
        "Expires: @60",
    );
}

#[test]
fn cookies_and_unknown_fields_are_stored() {
    let kept = "Cache-Control: public | Set-Cookie: a=b | Set-Cookie: c=d | X-Odd: 1 | Clear-Site-Data: x | Expires: @60";
    check(200, kept, kept);
}

#[test]
fn listed_fields_are_stripped() {
    check(
        200,
        "Cache-Control: max-age=9, no-cache=\"a\", private=\"b, set-cookie\" | A: 1 | B: 2 | C: 3 | Set-Cookie: x=y",
        "Cache-Control: max-age=9, no-cache=\"a\", private=\"b, set-cookie\" | C: 3",
    );
}

#[test]
fn set_cookie_goes_only_when_told() {
    let response = "Expires: @60 | Cache-Control: public | Set-Cookie: a=b | X: y";
    check(200, response, response);
    let told = Config {
        strip_set_cookie: true,
        ..Config::default()
    };
    let plan = store_with("GET", "", 200, response, &told).unwrap();
    let kept = stored_fields(&fields(response), &plan).unwrap();
    assert_eq!(kept, fields("Expires: @60 | Cache-Control: public | X: y"));
    // With this setting, an answer with a cookie and a heuristic lifetime is stored, because the cookie is
    // removed.
    let heuristic = "Last-Modified: @-1000 | Set-Cookie: a=b";
    assert!(store(200, heuristic).is_err());
    assert!(store_with("GET", "", 200, heuristic, &told).is_ok());
}

#[test]
fn a_long_connection_list_is_no_more_work_than_its_length() {
    let names: Vec<String> = (0..4000).map(|i| format!("x-{i}")).collect();
    let response = format!("Connection: {} | X-77: a | Y: b", names.join(","));
    let response = fields(&response);
    let filter = FieldFilter::new(&response, false, false);
    assert!(!filter.keeps(b"X-77") && !filter.keeps(b"x-3999") && filter.keeps(b"x-4000"));
    let usual = fields("Connection: keep-alive, Close");
    assert!(FieldFilter::new(&usual, false, false).listed.is_empty());
}

#[test]
fn digests_of_one_message_are_not_stored_from_a_part() {
    let of = "Cache-Control: max-age=9 | Repr-Digest: sha-256=:a: | ETag: \"a\"";
    let whole = format!("{of} | Content-Digest: sha-256=:b: | Content-MD5: c");
    check(200, &whole, &whole);
    let part = format!("{whole} | Content-Range: bytes 0-3/9");
    check(206, &part, of);
}
