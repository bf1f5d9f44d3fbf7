//! Tests of Vary: lists, canonical values, matching.

use proptest::prelude::*;

use super::*;
use crate::testing::fields;

fn list(response: &str) -> VaryList {
    match of(&fields(response)) {
        Vary::List(list) => list,
        other => panic!("{response}: {other:?}"),
    }
}

fn key(list: &[u8], request: &str) -> String {
    let mut out = Vec::new();
    selecting_values(list, &fields(request), &mut out);
    String::from_utf8(out).unwrap()
}

/// True if two requests select the same variant. Asserts that the keys agree with `matches`.
fn same(list: &str, a: &str, b: &str) -> bool {
    let same = key(list.as_bytes(), a) == key(list.as_bytes(), b);
    let matched = matches(
        list.as_bytes(),
        key(list.as_bytes(), a).as_bytes(),
        &fields(b),
    );
    assert_eq!(same, matched, "{a} / {b}");
    same
}

#[test]
fn lists_are_canonical() {
    assert_eq!(
        list("Vary: Foo, bar | vary: BAZ, foo").as_bytes(),
        b"bar,baz,foo"
    );
    assert_eq!(list("Vary: Foo").len(), 1);
    assert_eq!(of(&fields("Vary: , | Vary:")), Vary::None);
    assert_eq!(of(&fields("A: b")), Vary::None);
}

#[test]
fn a_star_anywhere_is_a_star() {
    for value in [
        "*",
        "*, *",
        "* | Vary: *",
        ", *",
        "| Vary: *",
        "*, Foo",
        "Foo, *",
    ] {
        assert_eq!(
            of(&fields(&format!("Vary: {value}"))),
            Vary::Star,
            "{value}"
        );
    }
    assert_ne!(of(&fields("Vary: *foo")), Vary::Star);
}

#[test]
fn selecting_values_are_readable_and_tell_absence_from_emptiness() {
    assert_eq!(key(b"bar,foo", "Foo: 1, 2 | Foo: 3"), "bar\nfoo=1,2,3\n");
    assert_eq!(
        key(b"accept,te", "Accept: 1, 2 | Accept: 3"),
        "accept=1,2,3\nte\n"
    );
    assert_eq!(key(b"foo", "Foo:"), "foo=\n");
    assert!(!same("foo", "Foo:", "A: b"));
}

#[test]
fn every_listed_field_has_to_match() {
    assert!(same("foo", "Foo: 1", "foo: 1 | Bar: 9"));
    assert!(!same("foo", "Foo: 1", "Foo: 2"));
    assert!(!same("foo", "Foo: 1", ""));
    assert!(!same("foo", "", "Foo: 1"));
    assert!(same("bar,baz,foo", "Foo: 1 | Baz: 7", "Baz: 7 | Foo: 1"));
    assert!(!same("bar,foo", "Foo: 1 | Bar: abc", "Foo: 1 | Bar: abcde"));
    assert!(!same("foo", "Foo: a", "Foo: A"));
}

#[test]
fn lines_and_white_space_do_not_matter_in_lists() {
    assert!(same("accept", "Accept: 1, 2", "Accept: 1 | Accept: 2"));
    assert!(same("accept", "Accept: 1,2", "Accept:  1,  2 "));
    assert!(!same("accept", "Accept: 1 2", "Accept: 12"));
    assert!(
        !same("accept", "Accept: \"1, 2\"", "Accept: \"1,2\""),
        "quoted text is kept"
    );
    assert!(
        !same("accept", "Accept: 1, 2", "Accept: 2, 1"),
        "order may matter"
    );
}

#[test]
fn fields_that_are_no_lists_count_byte_for_byte() {
    assert!(!same("cookie", "Cookie: a=1,b=2", "Cookie: a=1, b=2"));
    assert!(!same("cookie", "Cookie: a=1,,b", "Cookie: a=1,b"));
    assert!(same(
        "cookie",
        "Cookie: a=1; b=2",
        "Cookie: a=1 | Cookie: b=2"
    ));
    assert!(!same(
        "cookie",
        "Cookie: a=1,b=2",
        "Cookie: a=1 | Cookie: b=2"
    ));
    let agents = ["X/1 (a , b)", "X/1 (a, b)", "X/1 (a,b)"];
    for (i, one) in agents.iter().enumerate() {
        for (j, other) in agents.iter().enumerate() {
            let (one, other) = (format!("User-Agent: {one}"), format!("User-Agent: {other}"));
            assert_eq!(same("user-agent", &one, &other), i == j);
        }
    }
    assert!(!same("x-user", "X-User: a,", "X-User: a"));
    assert!(same("x-user", "X-User:  a ", "X-User: a"));
    assert!(
        same("x-user", "X-User: 1 , 2", "X-User: 1,2"),
        "plain words"
    );
    assert!(!same("x-user", "X-User: a=1 , 2", "X-User: a=1,2"));
    assert!(same("x-user", "X-User: a, b", "X-User: a | X-User: b"));
}

#[test]
fn accept_language_ignores_order_case_and_spelling_of_weights() {
    let same = |a: &str, b: &str| {
        same(
            "accept-language",
            &format!("Accept-Language: {a}"),
            &format!("Accept-Language: {b}"),
        )
    };
    assert!(same("en, de", "de, en"));
    assert!(same("en, de", "eN, De"));
    assert!(same("en, de", " en ,   de"));
    assert!(same("en;q=0.5, de", "de;q=1.0, en; Q=0.500"));
    assert!(same("en, en, de", "de, en"));
    assert!(same("en;q=0.5, en", "en, en;q=0.5"));
    assert!(!same("en;q=0.5, de", "en, de;q=0.5"));
    assert!(!same("en", "en-GB"));
    assert!(same("en;q=1.5", "en;q=1.5"));
    assert!(!same("en;q=1.5", "en;q=0.5"));
}

#[test]
fn accept_encoding_has_a_canonical_form() {
    let key = |value: &str| key(b"accept-encoding", &format!("Accept-Encoding: {value}"));
    assert_eq!(
        key("gzip, deflate, br"),
        "accept-encoding=br,deflate,gzip\n"
    );
    assert_eq!(
        key("BR;q=1, gzip;q=0.80, *;q=0"),
        "accept-encoding=*;q=0,br,gzip;q=0.8\n"
    );
    assert_eq!(key("gzip;x=y, br"), "accept-encoding=gzip;x=y,br\n");
    let many = vec!["x"; 40].join(",");
    assert_eq!(key(&many), format!("accept-encoding={many}\n"));
}

fn language(stored_request: &str, content: &str, request: &str) -> bool {
    let list = list("Vary: Accept-Language, Foo");
    let values = key(list.as_bytes(), stored_request);
    let stored = fields(&format!("Content-Language: {content}"));
    satisfied_by_language(
        list.as_bytes(),
        values.as_bytes(),
        &stored,
        &fields(request),
    )
}

#[test]
fn a_stored_translation_answers_whoever_prefers_it_above_all() {
    let first = "Accept-Language: en, de | Foo: 1";
    assert!(language(
        first,
        "de",
        "Accept-Language: fr;q=0.5, de;q=1.0 | Foo: 1"
    ));
    assert!(language(first, "de", "Accept-Language: DE | Foo: 1"));
    assert!(!language(
        first,
        "de",
        "Accept-Language: fr, de;q=0.5 | Foo: 1"
    ));
    assert!(!language(first, "de", "Accept-Language: fr, de | Foo: 1"));
    assert!(!language(first, "de", "Accept-Language: de-AT | Foo: 1"));
    assert!(!language(first, "de", "Accept-Language: de | Foo: 2"));
    assert!(!language(first, "de, en", "Accept-Language: de | Foo: 1"));
    assert!(!language(first, "de", "Foo: 1"));
    assert!(!language(first, "*", "Accept-Language: * | Foo: 1"));
    assert!(!language(first, "de", "Accept-Language: de;q=0 | Foo: 1"));
}

proptest! {
    #[test]
    fn key_equality_is_match(
        a in "[a-cA-C,;=q01. \"]{0,12}", b in "[a-cA-C,;=q01. \"]{0,12}", which in 0..4usize,
        has_a: bool, has_b: bool,
    ) {
        let name = ["foo", "accept-language", "accept-encoding", "accept"][which];
        let line = |has: bool, v: &'_ str| if has { format!("{name}: {v}") } else { String::new() };
        same(name, &line(has_a, &a), &line(has_b, &b));
        prop_assert!(same(name, &line(has_a, &a), &line(has_a, &a)));
    }

    #[test]
    fn canonical_values_are_stable(value in "[a-cA-C,;=q01. ]{0,16}", which in 0..3usize) {
        let name = ["foo", "accept-language", "accept-encoding"][which];
        let once = key(name.as_bytes(), &format!("{name}: {value}"));
        let inner = once.strip_prefix(&format!("{name}=")).unwrap().trim_end();
        let twice = key(name.as_bytes(), &format!("{name}: {inner}"));
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn any_values_are_survived(value in proptest::collection::vec(any::<u8>(), 0..40)) {
        let request: &[(&[u8], &[u8])] = &[(b"accept-language", &value), (b"vary", &value)];
        let mut out = Vec::new();
        selecting_values(b"accept-language", request, &mut out);
        prop_assert!(matches(b"accept-language", &out, request));
        let _ = of(request);
        let _ = satisfied_by_language(b"accept-language", &out, request, request);
    }
}
