//! Seeded mutation fuzzing: valid messages are damaged at random, and whatever still passes must
//! hold the codec's promises. One seed replays a run; it is in every failure message.

use foxy_base::{Rng, first, values};

use super::{owned_fields, with_request, with_response};
use crate::{
    BodyFraming, BodyReader, BodyStep, FieldSlots, HeadScanner, Limits, Method, RequestHead,
    ResponseHead, Scheme, Version, write,
};

const SEEDS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n",
    b"GET http://user.example:8080/a/b?c=d HTTP/1.1\r\nHost: x\r\nConnection: close, te\r\nTE: trailers\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
    b"PUT /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
    b"OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-a\r\nX-A: 1\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.0 304 Not Modified\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n",
];

/// Pieces that matter to parsers.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"#",
    b"@",
    b"%00",
    b"//",
    b"*",
    b"Host: b\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 6\r\n",
    b"content-length:0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"transfer-encoding: gzip\r\n",
    b"Connection: host\r\n",
    b"HTTP/1.0",
    b"HTTP/1.1",
    b"HTTP/2.0",
    b"\xff",
    b"\x7f",
    b"0x",
    b"+",
    b"-1",
    b"\r\n ",
    b"\r\n\r\n",
];

fn mutate(rng: &mut Rng) -> Vec<u8> {
    let mut text = SEEDS[rng.below(SEEDS.len() as u64) as usize].to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(text.len() as u64 + 1) as usize;
        let end = (at + rng.below(8) as usize).min(text.len());
        let word = WORDS[rng.below(WORDS.len() as u64) as usize];
        match rng.below(6) {
            0 if at < text.len() => text[at] ^= 1 << rng.below(8),
            1 => drop(text.drain(at..end)),
            2 => drop(text.splice(at..end, word.iter().copied())),
            3 => {
                let copy = text[at..end].to_vec();
                drop(text.splice(at..at, copy));
            }
            4 => insert_line(&mut text, word, rng),
            _ => drop(text.splice(at..at, word.iter().copied())),
        }
    }
    text
}

/// Puts `word` where a field line begins: the damage that is most likely to be understood.
fn insert_line(text: &mut Vec<u8>, word: &[u8], rng: &mut Rng) {
    let lines: Vec<_> = text
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| *pair == b"\r\n")
        .map(|(at, _)| at + 2)
        .collect();
    if let Some(at) = lines.get(rng.below(lines.len() as u64) as usize) {
        text.splice(*at..*at, word.iter().copied());
    }
}

/// The head has lines ended by CRLF alone, and no byte that could be read as another end.
fn assert_clean(head: &[u8]) {
    assert!(head.ends_with(b"\r\n\r\n"));
    for line in head[..head.len() - 2].split_inclusive(|b| *b == b'\n') {
        let text = line.strip_suffix(b"\r\n").expect("CRLF");
        assert!(!text.iter().any(|b| matches!(b, b'\r' | 0)), "{text:?}");
        assert!(!matches!(text.first(), Some(b' ' | b'\t')), "{text:?}");
    }
}

/// Promises about a request that passed.
fn check_request(text: &[u8], head: &RequestHead<'_>) {
    assert_clean(&text[..head.len()]);
    assert!(values(head, "host").count() <= 1);
    assert!(head.version() == Version::Http10 || values(head, "host").count() == 1);
    let (lengths, codings) = (
        values(head, "content-length").count(),
        values(head, "transfer-encoding").count(),
    );
    match head.framing() {
        BodyFraming::None => assert_eq!((lengths, codings), (0, 0)),
        BodyFraming::Length(n) => {
            assert_eq!((lengths, codings), (1, 0));
            let said = std::str::from_utf8(first(head, "content-length").unwrap()).unwrap();
            assert_eq!(said.parse(), Ok(n));
        }
        BodyFraming::Chunked => {
            assert_eq!((lengths, codings, head.version()), (0, 1, Version::Http11));
        }
        other => panic!("requests have no framing {other:?}"),
    }
    rewrite_request(head);
}

/// What is sent on is a head again, with the same meaning.
fn rewrite_request(head: &RequestHead<'_>) {
    let mut out = Vec::new();
    let mut target = Vec::new();
    let Some(url) = head.url(Scheme::Http) else {
        return;
    };
    head.target().write_origin_form(head.method(), &mut target);
    write::request_line(&mut out, head.method_text(), &target, Version::Http11);
    out.extend_from_slice(b"Host: ");
    url.authority.write_normalised(url.scheme, &mut out);
    out.extend_from_slice(b"\r\n");
    write::fields(&mut out, head.forward_fields());
    write::end(&mut out);
    let mut want = Vec::new();
    url.write_normalised(&mut want);
    with_request(&out, |again| {
        assert_eq!(again.len(), out.len());
        assert_eq!(again.method_text(), head.method_text());
        assert_eq!(
            first(&again, "content-length"),
            first(head, "content-length")
        );
        if !head.target().path.is_empty() {
            let mut url = Vec::new();
            again
                .url(head.target().scheme.unwrap_or(Scheme::Http))
                .unwrap()
                .write_normalised(&mut url);
            assert_eq!(url, want);
        }
    })
    .unwrap_or_else(|reject| panic!("{reject}: {:?}", String::from_utf8_lossy(&out)));
}

/// Promises about a response that passed.
fn check_response(text: &[u8], head: &ResponseHead<'_>) {
    assert_clean(&text[..head.len()]);
    assert!((100..=999).contains(&head.status()));
    let mut out = Vec::new();
    write::status_line_with(&mut out, head.status(), head.reason());
    write::fields(&mut out, head.forward_fields());
    write::end(&mut out);
    let want: Vec<_> = head
        .forward_fields()
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect();
    with_response(&out, |again| {
        assert_eq!(again.status(), head.status());
        assert_eq!(owned_fields(&again), want);
    })
    .unwrap();
}

fn read_body(framing: BodyFraming, mut input: &[u8]) {
    let mut reader = BodyReader::new(framing, &Limits::default());
    loop {
        match reader.step(input) {
            Ok(BodyStep::Data { consumed, data }) => {
                assert!(!data.is_empty() && data.end <= consumed && consumed <= input.len());
                input = &input[consumed..];
            }
            Ok(BodyStep::NeedMore { consumed }) => {
                assert!(consumed <= input.len());
                return;
            }
            Ok(BodyStep::End { consumed, trailers }) => {
                assert!(trailers.end <= consumed && consumed <= input.len());
                let mut slots = FieldSlots::new();
                let section = &input[trailers];
                let _ = crate::chunked::parse_trailers(section, &mut slots, &Limits::default());
                return;
            }
            Err(reject) => {
                assert!(matches!(reject.status, 400 | 431));
                return;
            }
        }
    }
}

/// Whether the text passed as a request or a response.
fn check(text: &[u8]) -> bool {
    let limits = Limits::default();
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let mut passed = false;
    if let Ok(Some(head)) = RequestHead::parse(text, &mut scanner, &mut slots, &limits) {
        check_request(text, &head);
        read_body(head.framing(), &text[head.len()..]);
        passed = true;
    }
    scanner.reset();
    match ResponseHead::parse(text, &mut scanner, &mut slots, &limits) {
        Ok(Some(head)) => {
            check_response(text, &head);
            read_body(head.framing(Method::Get), &text[head.len()..]);
            passed = true;
        }
        Ok(None) => {}
        Err(reject) => assert_eq!(reject.status, 502),
    }
    passed
}

#[test]
fn damaged_messages_are_refused_or_keep_every_promise() {
    let rounds = 400_000u64;
    let mut passed = 0;
    for seed in 0..rounds {
        let text = mutate(&mut Rng::new(seed));
        let outcome = std::panic::catch_unwind(|| check(&text));
        match outcome {
            Ok(ok) => passed += u64::from(ok),
            Err(_) => panic!("seed {seed}: {:?}", String::from_utf8_lossy(&text)),
        }
    }
    // Both answers must be frequent, or the test looks at one side alone.
    assert!(
        (rounds / 20..rounds * 19 / 20).contains(&passed),
        "{passed} of {rounds} passed"
    );
}

#[test]
fn noise_never_panics() {
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let mut text: Vec<u8> = (0..rng.below(60)).map(|_| rng.next_u64() as u8).collect();
        check(&text);
        text.splice(0..0, *b"GET / HTTP/1.1\r\nHost: a\r\n");
        text.extend_from_slice(b"\r\n\r\n");
        check(&text);
        read_body(BodyFraming::Chunked, &text);
    }
}
