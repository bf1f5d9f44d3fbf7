//! Which fields reach the store.

use super::*;
use crate::testing::{fields, store};

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
    let kept = "Set-Cookie: a=b | Set-Cookie: c=d | X-Odd: 1 | Clear-Site-Data: x | Expires: @60";
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
