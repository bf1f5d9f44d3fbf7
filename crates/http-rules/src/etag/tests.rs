//! Tests of entity tags: comparisons, lists, malformed tags.

use super::*;
use crate::testing::fields;
use proptest::prelude::*;

fn check(a: &str, b: &str, weak: bool, strong: bool) {
    let (a, b) = (ETag::parse(a.as_bytes()), ETag::parse(b.as_bytes()));
    assert_eq!(
        (a.eq_weak(&b), a.eq_strong(&b)),
        (weak, strong),
        "{a:?} {b:?}"
    );
}

#[test]
fn comparisons_are_those_of_rfc_9110_8_8_3_2() {
    check("W/\"1\"", "W/\"1\"", true, false);
    check("W/\"1\"", "W/\"2\"", false, false);
    check("W/\"1\"", "\"1\"", true, false);
    check("\"1\"", "\"1\"", true, true);
}

#[test]
fn malformed_tags_equal_themselves_weakly() {
    check("abc", "abc", true, false);
    check("abc", "\"abc\"", false, false);
    check("w/\"a\"", "w/\"a\"", true, false);
    check("\"a\"b\"", "\"a\"b\"", true, false);
    check("\"abcdef\u{fc}\"", "\"abcdef\u{fc}\"", true, true);
}

#[test]
fn tag_lists_keep_commas_inside_quotes() {
    let tags: Vec<_> = list(b" \"a,b\" ,W/\"c\",, d").collect();
    assert_eq!(
        tags,
        [
            ETag::parse(b"\"a,b\""),
            ETag::parse(b"W/\"c\""),
            ETag::parse(b"d")
        ]
    );
}

#[test]
fn contradicting_tags_are_none() {
    assert_eq!(of(&fields("ETag: \"a\" | ETag: \"b\"")), None);
    assert_eq!(
        of(&fields("ETag: \"a\" | etag: \"a\"")),
        Some(&b"\"a\""[..])
    );
    assert_eq!(of(&fields("ETag:")), None);
}

proptest! {
    #[test]
    fn any_tag_list_ends(line in proptest::collection::vec(any::<u8>(), 0..60)) {
        prop_assert!(list(&line).count() <= line.len());
    }
}
