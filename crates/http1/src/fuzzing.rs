//! Invariants that hold for any input bytes, as functions for fuzzers and seeded tests. Each
//! function panics if an invariant is violated.

use foxy_base::{FieldsIter, first, values};

use crate::{
    BodyFraming, BodyReader, BodyStep, Escapes, FieldSlots, HeadScanner, Limits, Method,
    RequestHead, ResponseHead, Scheme, Version, write,
};

/// Reads a request. Returns true if it was accepted.
pub fn request_head(text: &[u8]) -> bool {
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    match RequestHead::parse(text, &mut scanner, &mut slots, &Limits::default()) {
        Ok(Some(head)) => {
            check_request(text, &head);
            read_body(head.framing(), &text[head.len()..]);
            true
        }
        Ok(None) | Err(_) => false,
    }
}

/// Reads a response. Returns true if it was accepted.
pub fn response_head(text: &[u8]) -> bool {
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    match ResponseHead::parse(text, &mut scanner, &mut slots, &Limits::default()) {
        Ok(Some(head)) => {
            check_response(text, &head);
            read_body(head.framing(Method::Get), &text[head.len()..]);
            true
        }
        Ok(None) => false,
        Err(reject) => {
            assert_eq!(reject.status, 502);
            false
        }
    }
}

/// Reads a chunked body in one piece, and again byte by byte. The results must agree.
pub fn chunked(text: &[u8]) {
    read_body(BodyFraming::Chunked, text);
    let mut reader = BodyReader::new(BodyFraming::Chunked, &Limits::default());
    let whole = decoded(&mut reader, text, text.len());
    let mut reader = BodyReader::new(BodyFraming::Chunked, &Limits::default());
    assert_eq!(decoded(&mut reader, text, 1), whole);
}

/// Returns the bytes of a body that arrives in pieces, and the reason if it is refused.
fn decoded(reader: &mut BodyReader, text: &[u8], piece: usize) -> (Vec<u8>, Option<&'static str>) {
    let (mut from, mut to, mut out) = (0, 0, Vec::new());
    loop {
        match reader.step(&text[from..to]) {
            Ok(BodyStep::Data { consumed, data }) => {
                out.extend_from_slice(&text[from..to][data]);
                from += consumed;
            }
            Ok(BodyStep::NeedMore { consumed }) => {
                from += consumed;
                if to == text.len() {
                    let end = reader.end_of_input();
                    return (out, end.err().map(|reject| reject.reason));
                }
                to = (to + piece).min(text.len());
            }
            Ok(BodyStep::End { .. }) => return (out, None),
            Err(reject) => return (out, Some(reject.reason)),
        }
    }
}

/// Checks that all lines of the head end with CRLF, and that no byte could be read as another line
/// end.
fn assert_clean(head: &[u8]) {
    assert!(head.ends_with(b"\r\n\r\n"));
    for line in head[..head.len() - 2].split_inclusive(|b| *b == b'\n') {
        let text = line.strip_suffix(b"\r\n").expect("CRLF");
        assert!(!text.iter().any(|b| matches!(b, b'\r' | 0)), "{text:?}");
        assert!(!matches!(text.first(), Some(b' ' | b'\t')), "{text:?}");
    }
}

/// Checks the invariants of an accepted request.
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
            let said = first(head, "content-length").and_then(|v| std::str::from_utf8(v).ok());
            assert_eq!(said.and_then(|said| said.parse().ok()), Some(n));
        }
        BodyFraming::Chunked => {
            assert_eq!((lengths, codings, head.version()), (0, 1, Version::Http11));
        }
        other => panic!("requests have no framing {other:?}"),
    }
    rewrite_request(head);
}

/// Checks that the forwarded head can be read again and has the same meaning.
fn rewrite_request(head: &RequestHead<'_>) {
    let mut out = Vec::new();
    let mut target = Vec::new();
    let Some(url) = head.url(Scheme::Http) else {
        return;
    };
    head.target()
        .write_origin_form(head.method(), Escapes::Normal, &mut target);
    write::request_line(&mut out, head.method_text(), &target, Version::Http11);
    out.extend_from_slice(b"Host: ");
    url.authority.write_normalised(url.scheme, &mut out);
    out.extend_from_slice(b"\r\n");
    write::fields(&mut out, head.forward_fields());
    write::end(&mut out);
    let mut want = Vec::new();
    url.write_normalised(&mut want);
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let again = RequestHead::parse(&out, &mut scanner, &mut slots, &Limits::default());
    let text = String::from_utf8_lossy(&out);
    let again = again.unwrap_or_else(|reject| panic!("{reject}: {text:?}"));
    let again = again.expect("a whole head");
    assert_eq!(again.len(), out.len());
    assert_eq!(again.method_text(), head.method_text());
    assert_eq!(
        first(&again, "content-length"),
        first(head, "content-length")
    );
    if !head.target().path.is_empty() {
        let url = again.url(head.target().scheme.unwrap_or(Scheme::Http));
        let mut again = Vec::new();
        url.expect("a URL").write_normalised(&mut again);
        assert_eq!(again, want);
    }
}

/// Checks the invariants of an accepted response.
fn check_response(text: &[u8], head: &ResponseHead<'_>) {
    assert_clean(&text[..head.len()]);
    assert!((100..=999).contains(&head.status()));
    let mut out = Vec::new();
    write::status_line_with(&mut out, head.status(), head.reason());
    write::fields(&mut out, head.forward_fields());
    write::end(&mut out);
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let again = ResponseHead::parse(&out, &mut scanner, &mut slots, &Limits::default());
    let again = again.expect("it passed before").expect("a whole head");
    assert_eq!(again.status(), head.status());
    assert!(head.forward_fields().eq(FieldsIter::new(&again)));
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
                let limits = Limits::default();
                let fields = crate::chunked::parse_trailers(section, &mut slots, &limits);
                let fields = fields.expect("what is complete can be read");
                for (name, _) in fields.iter() {
                    assert!(crate::chunked::is_trailer_allowed(name));
                }
                return;
            }
            Err(reject) => {
                assert!(matches!(reject.status, 400 | 431));
                return;
            }
        }
    }
}
