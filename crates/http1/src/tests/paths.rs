//! Tests of the normal form of paths.

use proptest::prelude::*;

use crate::Escapes;

fn normal(text: &str) -> String {
    let mut out = b"before%".to_vec();
    Escapes::Normal.write(text.as_bytes(), &mut out);
    String::from_utf8(out.split_off(7)).unwrap()
}

#[test]
fn escapes_of_unreserved_characters_are_decoded_and_others_are_in_upper_case() {
    for (text, wanted) in [
        ("/%41", "/A"),
        ("/a%7eb%5f%2d%2E", "/a~b_-."),
        ("/%c3%a9%2f%3f%20", "/%C3%A9%2F%3F%20"),
        ("/a+b%2b", "/a+b%2B"),
        ("/%41?%41=%2f", "/A?%41=%2f"),
        ("/x?%zz", "/x?%zz"),
        ("/%2541", "/%2541"),
        ("*", "*"),
        ("", ""),
    ] {
        assert_eq!(normal(text), wanted, "{text}");
        let mut same = Vec::new();
        Escapes::AsReceived.write(text.as_bytes(), &mut same);
        assert_eq!(same, text.as_bytes());
    }
}

#[test]
fn no_segment_becomes_a_dot_segment() {
    for (text, wanted) in [
        ("/%2e/a", "/%2E/a"),
        ("/%2e%2e/a", "/%2E%2E/a"),
        ("/.%2e", "/.%2E"),
        ("/%2e.?x", "/%2E.?x"),
        ("/%2e%2e%2e/%2ea", "/.../.a"),
        ("/%2e%2e;x=1/", "/%2E%2E;x=1/"),
        ("/%2e%2e\\a", "/%2E%2E\\a"),
        ("/%2e%2e%2fa", "/%2E%2E%2Fa"),
        ("/%5c%2e%5ca", "/%5C%2E%5Ca"),
        ("/../%41", "/../A"),
    ] {
        assert_eq!(normal(text), wanted, "{text}");
    }
}

#[test]
fn invalid_escapes_are_kept() {
    for (text, wanted) in [
        ("/%zz%41", "/%zzA"),
        ("/%", "/%"),
        ("/%4", "/%4"),
        ("/%%34%31", "/%%341"),
        ("/%4%31", "/%4%31"),
        ("/%%7e%34", "/%~4"),
        ("/%4g%31", "/%4g1"),
    ] {
        assert_eq!(normal(text), wanted, "{text}");
        assert_eq!(normal(wanted), wanted, "{text}");
    }
}

/// The path as read by a server that decodes escapes once.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().iter().copied();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        let digits: Vec<u8> = bytes.clone().take(2).collect();
        let escape = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
        if byte == b'%' && escape {
            let digits = std::str::from_utf8(&digits).unwrap();
            out.push(u8::from_str_radix(digits, 16).unwrap());
            bytes.nth(1);
        } else {
            out.push(byte);
        }
    }
    out
}

proptest! {
    #[test]
    fn the_normal_form_is_stable_and_means_the_same(text in "/[%./;a2-7eEfF\\\\~]{0,16}") {
        let once = normal(&text);
        prop_assert_eq!(normal(&once), &once[..]);
        prop_assert_eq!(decoded(&once), decoded(&text));
        let dots = |text: &str| {
            let segments = text.split('/').filter(|s| matches!(*s, "." | ".."));
            segments.count()
        };
        prop_assert_eq!(dots(&once), dots(&text));
    }
}

#[test]
fn an_escape_is_found_wherever_it_is() {
    for before in 0..20 {
        for after in 0..20 {
            for filler in ["a", "$", "&"] {
                let (before, after) = (filler.repeat(before), filler.repeat(after));
                let text = format!("{before}%41{after}");
                assert_eq!(normal(&text), format!("{before}A{after}"));
            }
        }
    }
}
