//! Tests of heads: a head is written and read again. The end of a head is found even if its bytes arrive in
//! random pieces.

use foxy_base::{WallTime, first};
use proptest::prelude::*;

use super::{owned_fields, with_request, with_response};
use crate::{
    DateCache, FieldSlots, HeadScanner, Limits, Reject, RequestHead, ResponseHead, Version, write,
};

type OwnedFields = Vec<(Vec<u8>, Vec<u8>)>;

fn token() -> impl Strategy<Value = Vec<u8>> {
    proptest::string::bytes_regex("[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}").unwrap()
}

/// Names without a meaning for framing; names with such a meaning have their own tests.
fn name() -> impl Strategy<Value = Vec<u8>> {
    token().prop_map(|mut t| {
        t.splice(0..0, *b"X-");
        t
    })
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    proptest::string::bytes_regex(r"(?-u)([!-~\x80-\xff]([ \t!-~\x80-\xff]{0,30}[!-~\x80-\xff])?)?")
        .unwrap()
}

fn some_fields() -> impl Strategy<Value = OwnedFields> {
    proptest::collection::vec((name(), value()), 0..20)
}

fn write_fields(out: &mut Vec<u8>, fields: &OwnedFields) {
    for (name, value) in fields {
        write::field(out, name, value);
    }
    write::end(out);
}

/// The result of a scanner for `text`, which arrives in pieces that are cut at `cuts`. It is the first result
/// that does not request more bytes.
fn scan_in_pieces(
    text: &[u8],
    cuts: &[usize],
    limits: &Limits,
    request: bool,
) -> Result<Option<usize>, Reject> {
    let mut scanner = HeadScanner::new();
    let mut ends: Vec<_> = cuts.iter().map(|c| c % (text.len() + 1)).collect();
    ends.push(text.len());
    ends.sort_unstable();
    for end in ends {
        let answer = if request {
            scanner.request(&text[..end], limits)
        } else {
            scanner.response(&text[..end], limits)
        };
        if answer != Ok(None) {
            return answer;
        }
    }
    Ok(None)
}

/// Text that often resembles the end of a head.
fn nearly_a_head() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\r\n".to_vec()),
        1 => Just(b"\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b"\r\n\r\n".to_vec()),
        3 => Just(b"GET / HTTP/1.1\r\n".to_vec()),
        3 => Just(b"HTTP/1.1 200\r\n".to_vec()),
        6 => Just(b"Name: value\r\n".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..10),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_written_request_is_read_back(method in token(), path in "/[!\"$-~]{0,40}", fields in some_fields()) {
        prop_assume!(!matches!(&method[..], b"CONNECT"));
        let mut text = Vec::new();
        write::request_line(&mut text, &method, path.as_bytes(), Version::Http11);
        write::field(&mut text, b"Host", b"example.com");
        write_fields(&mut text, &fields);
        let whole = text.len();
        text.extend_from_slice(b"body");
        with_request(&text, |head| {
            assert_eq!(head.len(), whole);
            assert_eq!(head.method_text(), method);
            assert_eq!(head.target_text(), path.as_bytes());
            assert_eq!(head.version(), Version::Http11);
            let read = owned_fields(&head);
            assert_eq!(read[0], (b"Host".to_vec(), b"example.com".to_vec()));
            assert_eq!(read[1..], fields);
        }).unwrap();
    }

    #[test]
    fn a_written_response_is_read_back(status in 100u16..=999, reason in "[ -~]{0,20}", fields in some_fields()) {
        let mut text = Vec::new();
        write::status_line_with(&mut text, status, reason.as_bytes());
        write_fields(&mut text, &fields);
        with_response(&text, |head| {
            assert_eq!(head.len(), text.len());
            assert_eq!((head.status(), head.reason()), (status, reason.as_bytes()));
            assert_eq!(owned_fields(&head), fields);
        }).unwrap();
    }

    #[test]
    fn the_end_of_a_head_does_not_depend_on_how_it_arrives(
        text in nearly_a_head(),
        cuts in proptest::collection::vec(any::<usize>(), 0..8),
        head_bytes in 1usize..120,
        target_bytes in 1usize..40,
        fields in 0usize..6,
        request: bool,
    ) {
        let limits = Limits { head_bytes, target_bytes, fields, ..Limits::default() };
        let whole = scan_in_pieces(&text, &[], &limits, request);
        prop_assert_eq!(scan_in_pieces(&text, &cuts, &limits, request), whole);
        let every_byte: Vec<_> = (0..text.len()).collect();
        prop_assert_eq!(scan_in_pieces(&text, &every_byte, &limits, request), whole);
    }

    #[test]
    fn dates_are_what_httpdate_prints(ms in -10_000_000_000i64..300_000_000_000_000) {
        let mut cache = DateCache::new();
        let secs = WallTime(ms).secs().clamp(0, 253_402_300_799);
        let want = httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs as u64));
        prop_assert_eq!(cache.get(WallTime(ms)).as_slice(), want.as_bytes());
        prop_assert_eq!(cache.get(WallTime(ms)).as_slice(), want.as_bytes());
    }
}

#[test]
fn bytes_past_the_limit_change_nothing() {
    let limits = Limits {
        head_bytes: 2,
        ..Limits::default()
    };
    for cuts in [&[][..], &[2]] {
        let answer = scan_in_pieces(b"\r\n\r\n", cuts, &limits, true);
        assert_eq!(answer, Err(Reject::BAD_METHOD));
    }
}

#[test]
fn a_head_is_parsed_once_it_is_there_and_its_parts_survive_the_move_of_the_buffer() {
    let text = b"GET http://h/x HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\nGET / HTTP/1.1\r\n";
    let whole = text.len() - b"GET / HTTP/1.1\r\n".len();
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let limits = Limits::default();
    for end in 0..whole {
        let head = RequestHead::parse(&text[..end], &mut scanner, &mut slots, &limits).unwrap();
        assert!(head.is_none(), "{end}");
    }
    let parts = RequestHead::parse(text, &mut scanner, &mut slots, &limits)
        .unwrap()
        .unwrap()
        .parts();
    let moved = text.to_vec();
    let head = parts.head(&moved, &slots);
    assert_eq!(head.len(), whole);
    assert_eq!(head.target_text(), b"http://h/x");
    assert_eq!(first(&head, "x-a"), Some(&b"1"[..]));
    // The scanner is ready for the next head on the connection.
    let rest = &text[whole..];
    assert!(
        RequestHead::parse(rest, &mut scanner, &mut slots, &limits)
            .unwrap()
            .is_none()
    );
}

#[test]
fn offsets_count_the_empty_line_before_a_request() {
    let text = b"\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n";
    with_request(text, |head| {
        assert_eq!(head.len(), text.len());
        assert_eq!(
            (head.method_text(), head.target_text()),
            (&b"GET"[..], &b"/x"[..])
        );
        assert_eq!(first(&head, "host"), Some(&b"h"[..]));
    })
    .unwrap();
}

#[test]
fn status_lines_of_sloppy_origins_are_understood() {
    let read = |line: &[u8]| {
        let text = [line, b"\r\n\r\n"].concat();
        with_response(&text, |head| (head.status(), head.reason().to_vec()))
    };
    assert_eq!(read(b"HTTP/1.1 200 OK"), Ok((200, b"OK".to_vec())));
    assert_eq!(read(b"HTTP/1.1 200 "), Ok((200, vec![])));
    assert_eq!(read(b"HTTP/1.0 200"), Ok((200, vec![])));
    assert_eq!(read(b"HTTP/1.1 999 x"), Ok((999, b"x".to_vec())));
    assert_eq!(read(b"HTTP/1.1 404 \xe9t\xe9"), Ok((404, vec![])));
    assert_eq!(read(b"HTTP/1.1 404 a\tb"), Ok((404, b"a\tb".to_vec())));
}

#[test]
fn fields_that_mean_nothing_in_a_response_do_not_get_it_refused() {
    let text = b"HTTP/1.1 200 OK\r\nHost: a\r\nHost: b\r\nExpect: x\r\nContent-Length: 1\r\n\r\n";
    assert_eq!(
        with_response(text, |head| head.fields().iter().count()),
        Ok(4)
    );
}

#[test]
fn heads_are_written_without_leftovers() {
    let mut out = Vec::new();
    write::status_line(&mut out, 404);
    write::number_field(&mut out, b"Content-Length", u64::MAX);
    write::fields(&mut out, [(&b"A"[..], &b"b"[..])]);
    write::all_fields(&mut out, &[("C", "d")][..]);
    write::end(&mut out);
    assert_eq!(
        out,
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 18446744073709551615\r\nA: b\r\nC: d\r\n\r\n"
    );
    out.clear();
    write::status_line(&mut out, 799);
    assert_eq!(out, b"HTTP/1.1 799 \r\n");
}

#[test]
fn slots_stop_growing() {
    let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(100));
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let mut places = Vec::new();
    for _ in 0..3 {
        let limits = Limits::default();
        let head = ResponseHead::parse(text.as_bytes(), &mut scanner, &mut slots, &limits);
        assert_eq!(head.unwrap().unwrap().fields().iter().count(), 100);
        places.push(slots.spans().as_ptr());
    }
    assert_eq!(places[1], places[0], "the second head needed new memory");
    assert_eq!(places[2], places[0]);
}
