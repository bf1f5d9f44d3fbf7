//! Tests of every log format, bad lines, compression and detection.

use super::*;
use std::io::Write;

const SQUID: &str = "882769200.123 456 10.0.0.1 TCP_MISS/200 250 GET http://a/b.gif - DIRECT/a -\n";

fn reader(bytes: &[u8]) -> Result<Reader, TraceError> {
    Reader::new(
        "t".as_ref(),
        Box::new(std::io::Cursor::new(bytes.to_vec())),
        Options::default(),
    )
}

#[test]
fn compression_is_told_by_content() {
    let plain = SQUID.repeat(3);
    let zst = zstd::encode_all(plain.as_bytes(), 1).unwrap();
    let mut xz = xz2::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(plain.as_bytes()).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(plain.as_bytes()).unwrap();
    for bytes in [
        plain.clone().into_bytes(),
        zst,
        xz.finish().unwrap(),
        gz.finish().unwrap(),
    ] {
        let reader = reader(&bytes).unwrap();
        assert_eq!(reader.format(), Format::Squid);
        assert_eq!(reader.map(|r| r.unwrap().size).sum::<u64>(), 750);
    }
}

#[test]
fn every_text_format_is_detected() {
    for (text, format) in [
        (SQUID.to_owned(), Format::Squid),
        ("h - - [01/Jul/1995:00:00:01 -0400] \"GET / HTTP/1.0\" 200 5\n".to_owned(), Format::Apache),
        ("h [30:00:00:02] \"GET / HTTP/1.0\" 200 5\n".to_owned(), Format::Apache),
        (
            "#Version: 1.0\n#Fields: date time cs-method cs-uri-stem sc-status sc-bytes\n\
             2026-11-23 00:00:01 GET / 200 5\n"
                .to_owned(),
            Format::W3c,
        ),
        ("{\"url\":\"/\",\"size\":5,\"status\":200}\n".to_owned(), Format::Json),
        ("1 7 68\n2 8 70\n".to_owned(), Format::Webcachesim),
        ("host\ttime\tmethod\turl\tresponse\tbytes\na\t1\tGET\t/\t200\t5\nb\t2\tGET\t/\t200\t5\n"
            .to_owned(), Format::Tsv),
        ("h - - [01/Jul/1995:00:00:01 -0400] \"GET http://a/ HTTP/1.0\" 200 5 200 5 - - 1 1 1 1 0 \
            DIRECT FIN FIN WRITTEN\n".to_owned(), Format::Netscape2),
        ("841284000250000 10 20 7 5000 0 200 GET http 8 80 html 8 9 3 77\n".to_owned(),
            Format::DecText),
    ] {
        let reader = reader(text.as_bytes()).unwrap();
        assert_eq!(reader.format(), format);
        assert!(reader.map(Result::unwrap).count() >= 1, "{format}");
    }
    assert!(matches!(
        reader(b"hello\nworld\n"),
        Err(TraceError::Unknown { .. })
    ));
    assert!(matches!(reader(b""), Err(TraceError::Empty { .. })));
}

#[test]
fn bad_lines_are_counted_with_their_numbers() {
    let text = format!(
        "{SQUID}garbage\n\n# comment\n{SQUID}{}\n{SQUID}",
        "x".repeat(200_000)
    );
    let mut reader = reader(text.as_bytes()).unwrap();
    let good = reader.by_ref().map(Result::unwrap).count();
    assert_eq!(good, 3);
    let bad = reader.bad();
    let lines: Vec<_> = bad.first.iter().map(|b| (b.line, b.reason)).collect();
    assert_eq!(
        (bad.count, lines),
        (2, vec![(2, "time is not a number"), (6, "line too long")])
    );
}

#[test]
fn a_wrong_format_is_given_up() {
    let text = format!("{}{}", SQUID.repeat(100), "garbage\n".repeat(5000));
    let results: Vec<_> = reader(text.as_bytes()).unwrap().collect();
    let error = results.last().unwrap().as_ref().unwrap_err();
    assert!(
        matches!(error, TraceError::Hopeless { line: 101, .. }),
        "{error}"
    );
}

#[test]
fn urls_and_progress_come_along() {
    use std::sync::{Arc, Mutex};
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = seen.clone();
    let options = Options {
        progress: Some(Box::new(move |p| into.lock().unwrap().push(p))),
        ..Options::default()
    };
    let text = SQUID.repeat(20_000);
    let input = Box::new(std::io::Cursor::new(text.clone().into_bytes()));
    let mut reader = Reader::new("t".as_ref(), input, options).unwrap();
    reader.next().unwrap().unwrap();
    assert_eq!(reader.url(), Some(&b"http://a/b.gif"[..]));
    assert_eq!(reader.count(), 19_999);
    let seen = seen.lock().unwrap();
    let last = seen.last().unwrap();
    assert_eq!(
        (seen.len(), last.requests, last.bytes),
        (2, 20_000, text.len() as u64)
    );
}
