//! Tests of targeted fields. Foxy either obeys all known directives of such a field, or ignores the complete
//! field.

use super::*;
use crate::config::Config;
use crate::testing::fields;

fn source_of(response: &str) -> (ControlSource, Option<u32>) {
    let control = ResponseControl::of(&fields(response), &Config::default());
    (control.source, control.max_age)
}

const TARGETED: ControlSource = ControlSource::Targeted;
const PLAIN: ControlSource = ControlSource::CacheControl;

#[test]
fn a_valid_targeted_field_takes_the_place_of_cache_control() {
    for (value, max_age) in [
        ("max-age=3600", Some(3600)),
        ("max-age=99999999999", Some(1 << 31)),
        ("foobar, max-age=10", Some(10)),
        ("max-age=1, max-age=20", Some(20)),
        ("max-age=10;p=1", Some(10)),
        ("no-store", None),
        ("foobar", None),
    ] {
        let response = format!("Cache-Control: max-age=5 | CDN-Cache-Control: {value}");
        assert_eq!(source_of(&response), (TARGETED, max_age), "{value}");
    }
}

#[test]
fn an_invalid_targeted_field_is_ignored_whole() {
    for value in [
        "max-age=10000, &&&&&",
        "max-age=\"10000\"",
        "max-age=1.5",
        "max-age=-1",
        "max-age",
        "max-age=(1 2)",
        "max-age =100",
        "max-age= 100",
        "MaX-aGe=3600",
        "max-age=3600,",
        "no-store=1",
        "",
    ] {
        let response = format!("Cache-Control: max-age=5 | CDN-Cache-Control: {value}");
        assert_eq!(source_of(&response), (PLAIN, Some(5)), "{value}");
    }
}

#[test]
fn the_most_specific_field_decides() {
    let both = "CDN-Cache-Control: max-age=1 | Foxy-Cache-Control: max-age=2";
    assert_eq!(source_of(both), (TARGETED, Some(2)));
    let broken = "CDN-Cache-Control: max-age=1 | Foxy-Cache-Control: =";
    assert_eq!(source_of(broken), (TARGETED, Some(1)));
}

#[test]
fn lines_are_joined() {
    let lines = "CDN-Cache-Control: max-age=1 | CDN-Cache-Control: private | CDN-Cache-Control: a";
    let control = ResponseControl::of(&fields(lines), &Config::default());
    assert!(control.private && control.max_age == Some(1));
}

#[test]
fn booleans_may_be_false_and_lists_cover_everything() {
    let control = |value: &str| {
        let response = fields(&format!("CDN-Cache-Control: {value}"));
        ResponseControl::of(&response, &Config::default())
    };
    assert!(!control("no-store=?0, max-age=1").no_store);
    assert!(control("private=\"set-cookie\"").private);
    assert!(control("no-cache, immutable, must-understand, public").immutable);
}
