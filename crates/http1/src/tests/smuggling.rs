//! Tests of every known attack on framing and routing, by name, with the codec's result.

use super::{attacks, request_parts, with_request, with_response};
use crate::{BodyFraming, Limits, Method, Reject};

/// Replaces `{H}` by a valid Host line, so that each case contains only its own error.
fn expand(text: &str) -> Vec<u8> {
    text.replace("{H}", "Host: a\r\n").into_bytes()
}

#[test]
fn request_attacks_are_refused() {
    for attack in attacks(include_str!("attacks/requests.txt")) {
        let text = String::from_utf8_lossy(&attack.bytes);
        let got = request_parts(&attack.bytes).err();
        assert_eq!(got, Some(attack.want), "{}: {text}", attack.name);
    }
}

/// Refusals that are not in the tables, because they need more bytes than a row, or the end of a connection.
/// Other tests check these refusals.
const ELSEWHERE: &[Reject] = &[
    Reject::HEAD_TOO_LARGE,
    Reject::TOO_MANY_FIELDS,
    Reject::TARGET_TOO_LONG,
    Reject::TOO_MANY_CONNECTION_OPTIONS,
    Reject::CHUNK_LINE_TOO_LONG,
    Reject::TRAILERS_TOO_LARGE,
    Reject::TRUNCATED_BODY,
];

#[test]
fn every_refusal_has_an_attack() {
    let tables = [
        include_str!("attacks/requests.txt"),
        include_str!("attacks/responses.txt"),
        include_str!("attacks/chunks.txt"),
    ];
    let shown: Vec<_> = tables
        .into_iter()
        .flat_map(attacks)
        .map(|a| a.want)
        .collect();
    for reject in Reject::ALL {
        assert!(
            shown.contains(reject) || ELSEWHERE.contains(reject),
            "{reject} is never provoked"
        );
    }
}

#[test]
fn response_attacks_are_refused_as_bad_gateway() {
    for attack in attacks(include_str!("attacks/responses.txt")) {
        let got = with_response(&attack.bytes, |_| ()).err();
        assert_eq!(got, Some(attack.want.of_response()), "{}", attack.name);
    }
}

#[test]
fn target_that_is_not_utf8_is_refused_like_any_other_outside_ascii() {
    let text = b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(request_parts(text).err(), Some(Reject::BAD_TARGET));
}

#[test]
fn what_looks_odd_but_has_one_reading_passes() {
    let cases = [
        "\r\nGET / HTTP/1.1\r\n{H}\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHOST:a\r\n\r\n",
        "GET /?a=%zz|{}\"<>^`\\ HTTP/1.1\r\n{H}\r\n",
        "GET //b/../c HTTP/1.1\r\n{H}\r\n",
        "GET / HTTP/1.1\r\n{H}X:\r\nY: \u{e4}\t z \t\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n",
        "we!rd-Method / HTTP/1.1\r\n{H}\r\n",
        "GET / HTTP/1.0\r\nExpect: anything\r\n\r\n",
        "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 0\r\n\r\n",
    ];
    for text in cases {
        assert_eq!(request_parts(&expand(text)).err(), None, "{text:?}");
    }
    let cases = [
        (
            "POST / HTTP/1.1\r\n{H}Content-Length: \t5 \r\n\r\n",
            BodyFraming::Length(5),
        ),
        (
            "POST / HTTP/1.1\r\n{H}Content-Length: 005\r\n\r\n",
            BodyFraming::Length(5),
        ),
        (
            "POST / HTTP/1.1\r\n{H}Content-Length: 9223372036854775807\r\n\r\n",
            BodyFraming::Length(i64::MAX as u64),
        ),
        (
            "POST / HTTP/1.1\r\n{H}Transfer-Encoding: \t Chunked\r\n\r\n",
            BodyFraming::Chunked,
        ),
        ("GET / HTTP/1.1\r\n{H}\r\n", BodyFraming::None),
    ];
    for (text, want) in cases {
        assert_eq!(
            request_parts(&expand(text)).map(|p| p.framing()),
            Ok(want),
            "{text:?}"
        );
    }
}

#[test]
fn limits_are_inclusive_and_have_their_own_status() {
    let request = |target: usize, fields: usize, filler: usize| {
        let more = "A: b\r\n".repeat(fields);
        let text = format!(
            "GET /{} HTTP/1.1\r\nHost: a\r\n{more}Z: {}\r\n\r\n",
            "x".repeat(target - 1),
            "z".repeat(filler)
        );
        request_parts(text.as_bytes()).err()
    };
    let limits = Limits::default();
    assert_eq!(request(limits.target_bytes, 0, 0), None);
    assert_eq!(
        request(limits.target_bytes + 1, 0, 0),
        Some(Reject::TARGET_TOO_LONG)
    );
    assert_eq!(
        request(limits.target_bytes * 3, 0, 0),
        Some(Reject::TARGET_TOO_LONG)
    );
    assert_eq!(request(1, limits.fields - 2, 0), None);
    assert_eq!(
        request(1, limits.fields - 1, 0),
        Some(Reject::TOO_MANY_FIELDS)
    );
    let around = "GET / HTTP/1.1\r\nHost: a\r\nZ: \r\n\r\n".len();
    assert_eq!(request(1, 0, limits.head_bytes - around), None);
    assert_eq!(
        request(1, 0, limits.head_bytes - around + 1),
        Some(Reject::HEAD_TOO_LARGE)
    );
    let options = |n: usize| {
        let text = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: {}\r\n\r\n",
            vec!["x"; n].join(",")
        );
        request_parts(text.as_bytes()).err()
    };
    assert_eq!(options(limits.connection_options), None);
    assert_eq!(
        options(limits.connection_options + 1),
        Some(Reject::TOO_MANY_CONNECTION_OPTIONS)
    );
}

#[test]
fn a_first_line_without_end_is_refused_before_it_fills_the_buffer() {
    let mut text = b"GET /".to_vec();
    text.resize(20_000, b'x');
    assert_eq!(request_parts(&text).err(), Some(Reject::TARGET_TOO_LONG));
    assert_eq!(
        request_parts(&[b'x'; 20_000]).err(),
        Some(Reject::BAD_METHOD)
    );
}

#[test]
fn method_of_a_request_is_known_by_its_exact_spelling() {
    let method = |name: &str| {
        with_request(
            format!("{name} / HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes(),
            |h| (h.method(), h.method_text().to_vec()),
        )
        .unwrap()
    };
    assert_eq!(method("GET"), (Method::Get, b"GET".to_vec()));
    assert_eq!(method("get"), (Method::Other, b"get".to_vec()));
    assert_eq!(method("PURGE").0, Method::Purge);
}
