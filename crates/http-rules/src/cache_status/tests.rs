//! Tests that Cache-Status has the right text and is always a valid Structured Field.

use super::*;
use proptest::prelude::*;

fn check(status: &CacheStatus<'_>, expected: &str) {
    let mut out = Vec::new();
    status.write(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn members_are_written_in_the_order_of_the_rfc() {
    let none = CacheStatus::default();
    check(
        &CacheStatus {
            hit: true,
            ttl: Some(376),
            ..none
        },
        "foxy; hit; ttl=376",
    );
    check(
        &CacheStatus {
            hit: true,
            ttl: Some(-412),
            ..none
        },
        "foxy; hit; ttl=-412",
    );
    check(
        &CacheStatus {
            fwd: Some(Fwd::UriMiss),
            fwd_status: Some(304),
            stored: true,
            collapsed: true,
            ttl: Some(0),
            key: Some(b"a \"b\\\""),
            detail: Some("miss"),
            ..none
        },
        "foxy; fwd=uri-miss; fwd-status=304; stored; collapsed; ttl=0; key=\"a \\\"b\\\\\\\"\"; detail=miss",
    );
}

#[test]
fn hit_excludes_what_belongs_to_forwarding() {
    let both = CacheStatus {
        hit: true,
        fwd: Some(Fwd::Stale),
        fwd_status: Some(200),
        stored: true,
        ..CacheStatus::default()
    };
    check(&both, "foxy; hit");
}

#[test]
fn names_and_details_are_tokens_or_strings() {
    let named = CacheStatus {
        cache: "edge 1",
        detail: Some("1x"),
        hit: true,
        ..CacheStatus::default()
    };
    check(&named, "\"edge 1\"; hit; detail=\"1x\"");
    let odd = CacheStatus {
        key: Some("ü\n".as_bytes()),
        hit: true,
        ..CacheStatus::default()
    };
    check(&odd, "foxy; hit; key=\"???\"");
}

proptest! {
    #[test]
    fn output_is_always_a_structured_field(
        cache in ".{0,9}", key in proptest::collection::vec(any::<u8>(), 0..20),
        detail in ".{0,9}", ttl: i64, hit: bool, fwd in 0..Fwd::ALL.len(), status: u16,
    ) {
        let mut out = Vec::new();
        let member = CacheStatus {
            cache: &cache, hit, fwd: Some(Fwd::ALL[fwd]), fwd_status: Some(status),
            ttl: Some(ttl), stored: true, collapsed: true, key: Some(&key), detail: Some(&detail),
            rule: None,
        };
        member.write(&mut out);
        let parsed: Result<sfv::List, _> = sfv::Parser::new(&out).parse();
        prop_assert_eq!(parsed.map(|list| list.len()).ok(), Some(1));
    }
}

#[test]
fn the_rule_that_had_a_say_is_part_of_the_detail() {
    let written = |detail, rule| {
        let mut out = Vec::new();
        let status = CacheStatus {
            hit: true,
            detail,
            rule: Some(rule),
            ..CacheStatus::default()
        };
        status.write(&mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        written(Some("memory-hit"), "images"),
        "foxy; hit; detail=\"memory-hit, rule images\""
    );
    assert_eq!(written(None, "a\"b"), "foxy; hit; detail=\"rule a\\\"b\"");
}
