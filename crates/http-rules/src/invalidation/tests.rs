//! Tests of invalidation by unsafe requests, and of resolved references.

use super::*;
use crate::testing::{TARGET, fields};
use proptest::prelude::*;

fn check(method: &str, status: u16, response: &str, target: bool, paths: &[&str]) {
    let got = invalidated_by(
        Method::of(method.as_bytes()),
        &TARGET,
        status,
        &fields(response),
    );
    let paths = paths.iter().map(|p| (*p).to_owned()).collect();
    assert_eq!(
        got,
        Invalidation { target, paths },
        "{method} {status} {response}"
    );
}

#[test]
fn unsafe_methods_invalidate_their_target_on_success() {
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "UNKNOWN"] {
        for status in [200, 201, 204, 302, 399] {
            check(method, status, "", true, &[]);
        }
        for status in [100, 400, 404, 500, 503] {
            check(method, status, "Location: /x", false, &[]);
        }
    }
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        check(method, 200, "Location: /x", false, &[]);
    }
}

#[test]
fn location_fields_count_on_the_same_origin_only() {
    check(
        "POST",
        200,
        "Location: /x | Content-Location: y?z",
        true,
        &["/x", "/a/y?z"],
    );
    check(
        "POST",
        200,
        "Location: http://EXAMPLE.com:80/x#f",
        true,
        &["/x"],
    );
    check("POST", 200, "Location: //example.com", true, &["/"]);
    check(
        "POST",
        200,
        "Location: /x | Content-Location: /x",
        true,
        &["/x"],
    );
    check("POST", 200, "Content-Location: /a/b?c=d", true, &[]);
    for elsewhere in [
        "http://other.example/x",
        "https://example.com/x",
        "http://example.com:8080/x",
        "//other.example/x",
        "mailto:a@b",
        "http:/x",
        "/a b",
    ] {
        check("POST", 200, &format!("Location: {elsewhere}"), true, &[]);
    }
}

fn check_resolve(reference: &str, expected: &str) {
    let base = TargetUri {
        scheme: "http",
        authority: "a",
        path: "/b/c/d;p?q",
    };
    assert_eq!(
        resolve(&base, reference.as_bytes()).as_deref(),
        Some(expected),
        "{reference}"
    );
}

#[test]
fn references_resolve_as_in_rfc_3986_5_4() {
    for (reference, expected) in [
        ("g", "/b/c/g"),
        ("./g", "/b/c/g"),
        ("g/", "/b/c/g/"),
        ("/g", "/g"),
        ("?y", "/b/c/d;p?y"),
        ("g?y", "/b/c/g?y"),
        ("#s", "/b/c/d;p?q"),
        ("g#s", "/b/c/g"),
        (";x", "/b/c/;x"),
        ("", "/b/c/d;p?q"),
        (".", "/b/c/"),
        ("./", "/b/c/"),
        ("..", "/b/"),
        ("../", "/b/"),
        ("../g", "/b/g"),
        ("../..", "/"),
        ("../../g", "/g"),
        ("../../../g", "/g"),
        ("/./g", "/g"),
        ("/../g", "/g"),
        ("g.", "/b/c/g."),
        ("..g", "/b/c/..g"),
        ("./g/.", "/b/c/g/"),
        ("g/./h", "/b/c/g/h"),
        ("g/../h", "/b/c/h"),
        ("g?y/../x", "/b/c/g?y/../x"),
        ("http://a/g", "/g"),
        ("http://a?x", "/?x"),
    ] {
        check_resolve(reference, expected);
    }
}

#[test]
fn the_target_is_recognised() {
    for same in ["/a/b?c=d", "b?c=d", "http://example.com/a/b?c=d", ""] {
        assert!(same_target(&TARGET, same.as_bytes()), "{same}");
    }
    for other in ["/a/b", "/a/b?c=e", "https://example.com/a/b?c=d"] {
        assert!(!same_target(&TARGET, other.as_bytes()), "{other}");
    }
}

proptest! {
    #[test]
    fn any_reference_is_survived(reference in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Some(path) = resolve(&TARGET, &reference) {
            prop_assert!(path.starts_with('/'));
        }
    }
}
