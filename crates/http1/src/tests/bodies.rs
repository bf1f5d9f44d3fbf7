//! Tests of bodies: chunked coding in both directions, and every framing with any split of the
//! input.

use foxy_base::Rng;
use proptest::prelude::*;

use super::{attacks, owned_fields};
use crate::chunked::{
    CHUNK_END, LAST_CHUNK, chunk_header, is_trailer_allowed, parse_trailers, write_last_chunk,
};
use crate::{BodyFraming, BodyReader, BodyStep, FieldSlots, Limits, Reject};

/// The result of reading a body.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Read {
    data: Vec<u8>,
    trailers: Vec<u8>,
    /// Number of bytes after the body.
    rest: usize,
}

/// Reads `text`, which arrives in pieces that end at `ends`. Bytes that are not consumed are kept, as on a
/// connection.
fn read(
    framing: BodyFraming,
    text: &[u8],
    ends: &[usize],
    limits: &Limits,
) -> Result<Option<Read>, Reject> {
    let mut reader = BodyReader::new(framing, limits);
    let (mut at, mut data) = (0, Vec::new());
    for &end in ends.iter().chain([&text.len()]) {
        loop {
            let input = &text[at..end.max(at)];
            match reader.step(input)? {
                BodyStep::Data {
                    consumed,
                    data: part,
                } => {
                    assert!(!part.is_empty() && part.end <= consumed);
                    data.extend_from_slice(&input[part]);
                    at += consumed;
                }
                BodyStep::NeedMore { consumed } => {
                    at += consumed;
                    break;
                }
                BodyStep::End { consumed, trailers } => {
                    let trailers = input[trailers].to_vec();
                    assert!(reader.is_done());
                    let rest = text.len() - at - consumed;
                    return Ok(Some(Read {
                        data,
                        trailers,
                        rest,
                    }));
                }
            }
        }
    }
    Ok(None)
}

fn read_whole(text: &[u8]) -> Result<Option<Read>, Reject> {
    read(BodyFraming::Chunked, text, &[], &Limits::default())
}

fn sorted(cuts: &[usize], len: usize) -> Vec<usize> {
    let mut ends: Vec<_> = cuts.iter().map(|c| c % (len + 1)).collect();
    ends.sort_unstable();
    ends
}

#[test]
fn chunk_attacks_are_refused() {
    for attack in attacks(include_str!("attacks/chunks.txt")) {
        let (name, text) = (attack.name, attack.bytes);
        assert_eq!(read_whole(&text).err(), Some(attack.want), "{name}");
        let every_byte: Vec<_> = (0..text.len()).collect();
        let slowly = read(BodyFraming::Chunked, &text, &every_byte, &Limits::default());
        assert_eq!(slowly.err(), Some(attack.want), "{name}, byte by byte");
    }
}

#[test]
fn chunks_are_read() {
    let text = b"5;name=\"v\"\r\nhello\r\n0000000000000001\r\n \r\nA;\tb\r\n0123456789\r\n000;x\r\nX: y\r\nZ:\r\n\r\nGET /";
    let read = read_whole(text).unwrap().unwrap();
    assert_eq!(read.data, b"hello 0123456789");
    assert_eq!(read.trailers, b"X: y\r\nZ:\r\n\r\n");
    assert_eq!(read.rest, b"GET /".len());
    let huge = read_whole(b"7fffffffffffffff\r\nx").unwrap();
    assert_eq!(huge, None, "the largest size is legal, and more must come");
}

#[test]
fn chunk_lines_extensions_and_trailers_are_bounded() {
    let limits = Limits {
        chunk_line_bytes: 20,
        chunk_extension_bytes: 30,
        trailer_bytes: 40,
        trailer_fields: 2,
        ..Limits::default()
    };
    let outcome = |text: String| read(BodyFraming::Chunked, text.as_bytes(), &[], &limits);
    // The line consists of size, semicolon, extension, CR and LF.
    assert!(outcome(format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(16))).is_ok());
    let long = outcome(format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(17)));
    assert_eq!(long, Err(Reject::CHUNK_LINE_TOO_LONG));
    assert!(outcome(format!("{}0\r\n\r\n", "1;eeeeeeeeee\r\nx\r\n".repeat(3))).is_ok());
    let many = outcome(format!("{}0\r\n\r\n", "1;eeeeeeeeee\r\nx\r\n".repeat(4)));
    assert_eq!(many, Err(Reject::CHUNK_LINE_TOO_LONG));
    assert!(outcome(format!("0\r\nA: {}\r\n\r\n", "v".repeat(33))).is_ok());
    let large = outcome(format!("0\r\nA: {}\r\n\r\n", "v".repeat(34)));
    assert_eq!(large, Err(Reject::TRAILERS_TOO_LARGE));
    let endless = outcome(format!("0\r\nA: {}", "v".repeat(37)));
    assert_eq!(
        endless,
        Err(Reject::TRAILERS_TOO_LARGE),
        "at the limit, none can follow"
    );
    let mut slots = FieldSlots::new();
    assert!(parse_trailers(b"A:\r\nB:\r\n\r\n", &mut slots, &limits).is_ok());
    let third = parse_trailers(b"A:\r\nB:\r\nC:\r\n\r\n", &mut slots, &limits);
    assert_eq!(third.err(), Some(Reject::TRAILERS_TOO_LARGE));
}

#[test]
fn trailers_are_checked_and_filtered() {
    let mut slots = FieldSlots::new();
    let limits = Limits::default();
    let section = b"X-Sum: 1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nHost: b\r\nSet-Cookie: c\r\nAuthorization: d\r\nExpires: 0\r\n\r\n";
    let view = parse_trailers(section, &mut slots, &limits).unwrap();
    assert_eq!(owned_fields(&view), [(b"X-Sum".to_vec(), b"1".to_vec())]);
    assert!(!is_trailer_allowed(b"connection") && is_trailer_allowed(b"Server-Timing"));
    let refused = [
        (&b"A : b\r\n\r\n"[..], Reject::SPACE_BEFORE_COLON),
        (b"A: b\r\n c\r\n\r\n", Reject::OBS_FOLD),
        (b"A: b\rc\r\n\r\n", Reject::BARE_CR),
        (b"A: \0\r\n\r\n", Reject::NUL_BYTE),
        (b"A\r\n\r\n", Reject::BAD_FIELD),
        (b"A: b\r\n", Reject::BAD_FIELD),
    ];
    for (section, want) in refused {
        assert_eq!(
            parse_trailers(section, &mut slots, &limits).err(),
            Some(want),
            "{section:?}"
        );
    }
    assert_eq!(
        parse_trailers(b"", &mut slots, &limits)
            .unwrap()
            .iter()
            .count(),
        0
    );
}

#[test]
fn sizes_are_written_in_hexadecimal() {
    assert_eq!(chunk_header(1).as_bytes(), b"1\r\n");
    assert_eq!(chunk_header(0x1f0).as_bytes(), b"1f0\r\n");
    assert_eq!(chunk_header(u64::MAX).as_bytes(), b"ffffffffffffffff\r\n");
    let mut out = Vec::new();
    write_last_chunk::<[(&str, &str)]>(&[], &mut out);
    assert_eq!(out, LAST_CHUNK);
}

#[test]
fn a_body_that_stops_early_is_truncated() {
    let end = |framing, text: &[u8]| {
        let mut reader = BodyReader::new(framing, &Limits::default());
        let mut at = 0;
        while let BodyStep::Data { consumed, .. } = reader.step(&text[at..]).unwrap() {
            at += consumed;
        }
        (reader.end_of_input(), reader.remaining())
    };
    let cut = Err(Reject::TRUNCATED_BODY);
    assert_eq!(end(BodyFraming::Length(3), b"ab"), (cut, Some(1)));
    assert_eq!(end(BodyFraming::Length(3), b"abc"), (Ok(()), Some(0)));
    assert_eq!(end(BodyFraming::None, b""), (Ok(()), Some(0)));
    assert_eq!(end(BodyFraming::UntilClose, b"ab"), (Ok(()), None));
    let whole = b"2\r\nab\r\n0\r\n\r\n";
    for len in 0..whole.len() {
        assert_eq!(end(BodyFraming::Chunked, &whole[..len]).0, cut, "{len}");
    }
    assert_eq!(end(BodyFraming::Chunked, whole).0, Ok(()));
}

fn chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..60), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_encoded_is_decoded_however_it_arrives(
        chunks in chunks(),
        trailers in proptest::collection::vec(("X-[a-z]{1,8}", "[a-z]{0,8}"), 0..4),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut text = Vec::new();
        for chunk in &chunks {
            text.extend_from_slice(chunk_header(chunk.len() as u64).as_bytes());
            text.extend_from_slice(chunk);
            text.extend_from_slice(CHUNK_END);
        }
        let pairs: Vec<_> = trailers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        write_last_chunk(&pairs[..], &mut text);
        text.extend_from_slice(b"next");
        let limits = Limits::default();
        let got = read(BodyFraming::Chunked, &text, &sorted(&cuts, text.len()), &limits).unwrap().unwrap();
        prop_assert_eq!(&got.data, &chunks.concat());
        prop_assert_eq!(got.rest, 4);
        let mut slots = FieldSlots::new();
        let view = parse_trailers(&got.trailers, &mut slots, &limits).unwrap();
        let want: Vec<_> = trailers.iter().map(|(n, v)| (n.clone().into_bytes(), v.clone().into_bytes())).collect();
        prop_assert_eq!(owned_fields(&view), want);
    }

    #[test]
    fn any_input_means_the_same_however_it_arrives(
        seed: u64,
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
        length in 0u64..80,
    ) {
        let text = damaged_chunks(seed);
        let limits = Limits { chunk_line_bytes: 30, chunk_extension_bytes: 40, trailer_bytes: 30, ..Limits::default() };
        let framings = [BodyFraming::Chunked, BodyFraming::Length(length), BodyFraming::UntilClose, BodyFraming::None];
        for framing in framings {
            let whole = read(framing, &text, &[], &limits);
            let pieces = read(framing, &text, &sorted(&cuts, text.len()), &limits);
            prop_assert_eq!(&pieces, &whole);
            let every_byte: Vec<_> = (0..text.len()).collect();
            prop_assert_eq!(&read(framing, &text, &every_byte, &limits), &whole);
        }
    }
}

/// A chunked body with a few bytes changed, removed or added.
fn damaged_chunks(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut text =
        b"5\r\nhello\r\n1a;ext=\"x\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nX-Sum: 1\r\n\r\nmore"
            .to_vec();
    for _ in 0..rng.below(4) {
        let at = rng.below(text.len() as u64) as usize;
        let byte = b"\r\n0f; \0x"[rng.below(8) as usize];
        match rng.below(3) {
            0 => text[at] = byte,
            1 => text.insert(at, byte),
            _ => drop(text.remove(at)),
        }
    }
    text
}
