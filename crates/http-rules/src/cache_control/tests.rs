//! Tests of response directives in the forms that real senders use.

use super::*;
use crate::testing::fields;

fn read(line: &str) -> ResponseControl {
    ResponseControl::of(
        &fields(&format!("Cache-Control: {line}")),
        &Config::default(),
    )
}

fn check_max_age(line: &str, expected: Option<u32>) {
    assert_eq!(read(line).max_age, expected, "{line}");
}

#[test]
fn max_age_is_read_tolerantly() {
    check_max_age("max-age=3600", Some(3600));
    check_max_age("MaX-aGe=3600", Some(3600));
    check_max_age("max-age=\"3600\"", Some(3600));
    check_max_age("max-age=003600", Some(3600));
    check_max_age("foobar, max-age=3600", Some(3600));
    check_max_age("max-age=99999999999", Some(1 << 31));
    check_max_age("no-cache", None);
}

#[test]
fn malformed_max_age_is_stale() {
    for line in [
        "max-age=-3600",
        "max-age='3600'",
        "max-age=3600.0",
        "max-age=a3600",
        "max-age=3600a",
        "max-age =3600",
        "max-age= 3600",
        "max-age",
        "max-age=",
        "max-age=\"3600",
    ] {
        check_max_age(line, Some(0));
    }
}

#[test]
fn a_quoted_argument_hides_what_looks_like_a_directive() {
    check_max_age("extension=\"max-age=3600\", max-age=1", Some(1));
    check_max_age("max-age=1, extension=\"max-age=3600\"", Some(1));
    assert!(!read("extension=\"a, no-store\"").no_store);
    assert!(
        read("extension=\"a, no-store").no_store,
        "an open quote hides nothing"
    );
}

#[test]
fn repeated_lifetimes_count_as_the_lowest() {
    check_max_age("max-age=1800, max-age=1", Some(1));
    check_max_age("max-age=1 | Cache-Control: max-age=1800", Some(1));
}

#[test]
fn every_directive_is_known_in_any_case() {
    let all = read(
        "No-Store, NO-CACHE, Private, PUBLIC, Must-Revalidate, PROXY-revalidate, \
         must-UNDERSTAND, Immutable, S-maxage=5, Stale-While-Revalidate=6, stale-if-ERROR=7",
    );
    assert!(all.no_store && all.no_cache && all.private && all.public && all.must_revalidate);
    assert!(all.proxy_revalidate && all.must_understand && all.immutable);
    assert_eq!(all.s_maxage, Some(5));
    assert_eq!(
        (all.stale_while_revalidate, all.stale_if_error),
        (Some(6), Some(7))
    );
}

#[test]
fn list_forms_are_told_apart() {
    let listed = read("private=\"Set-Cookie\", no-cache=\"a, b\"");
    assert!(listed.private_listed && listed.no_cache_listed);
    assert!(!listed.private && !listed.no_cache);
    let token = read("no-cache=a");
    assert!(token.no_cache_listed && !token.no_cache);
    for broken in ["private=\"\"", "private=", "private=\" , \"", "private=\"a"] {
        assert!(read(broken).private, "{broken} covers everything");
    }
}

#[test]
fn listed_names_are_found() {
    let response = fields("Cache-Control: private=\"Set-Cookie, X-A\", no-cache=\"x-b\"");
    let mut listed: Vec<&[u8]> = Vec::new();
    for_each_listed(&response, |name| listed.push(name));
    assert_eq!(listed, [&b"Set-Cookie"[..], b"X-A", b"x-b"]);
}

#[test]
fn surrogate_control_counts_only_when_configured() {
    let response = fields("Surrogate-Control: max-age=7 | Cache-Control: no-store");
    let mut config = Config::default();
    assert!(ResponseControl::of(&response, &config).no_store);
    config.surrogate_control = true;
    let control = ResponseControl::of(&response, &config);
    assert_eq!((control.no_store, control.max_age), (false, Some(7)));
    assert_eq!(control.source, ControlSource::Surrogate);
}
