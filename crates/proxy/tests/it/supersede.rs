//! Answers from the origin that must not replace the stored answer, such as errors and partial answers (RFC
//! 9111 sections 3.3 and 4.3).

use std::time::Duration;

use crate::common::{Answer, Asked, Foxy, Origin};
use foxy_store::Lookup;

const FIELDS: &str = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
const AGAIN: &str = "Cache-Control: no-cache\r\n";

/// Returns a body of 600,000 bytes, which is stored in fragments.
fn body() -> Vec<u8> {
    (0..600_000u32).map(|i| (i % 253) as u8).collect()
}

/// Answers conditional requests, ranges and HEAD correctly, and sends errors if the path requests them.
fn serve(asked: &mut Asked) -> bool {
    let whole = match asked.path() {
        "/large" => body(),
        _ => b"0123456789".to_vec(),
    };
    let length = whole.len();
    if let Some(status) = asked.field("X-Status").map(str::to_owned) {
        let body = if asked.head.starts_with("HEAD") {
            ""
        } else {
            "error"
        };
        asked.reply(&status, "Cache-Control: no-store\r\n", body);
    } else if asked.field("If-Match").is_some_and(|tag| tag != "\"v1\"") {
        asked.reply("412 Precondition Failed", "", "no");
    } else if asked.field("If-None-Match") == Some("\"v1\"") {
        asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{FIELDS}\r\n"));
    } else if asked.head.starts_with("HEAD") {
        asked.raw(format!(
            "HTTP/1.1 200 OK\r\n{FIELDS}Content-Length: {length}\r\n\r\n"
        ));
    } else if let Some(range) = asked.field("Range").and_then(|r| r.strip_prefix("bytes=")) {
        let (from, to) = range.split_once('-').unwrap_or_default();
        let (from, to): (usize, usize) =
            (from.parse().unwrap_or(0), to.parse().unwrap_or(length - 1));
        let to = to.min(length - 1);
        if from >= length {
            let fields = format!("Content-Range: bytes */{length}\r\n");
            asked.reply("416 Range Not Satisfiable", &fields, "");
            return true;
        }
        let fields = format!("{FIELDS}Content-Range: bytes {from}-{to}/{length}\r\n");
        asked.reply("206 Partial Content", &fields, &whole[from..=to]);
    } else {
        asked.reply("200 OK", FIELDS, whole);
    }
    true
}

fn ask(foxy: &Foxy, origin: &Origin, method: &str, path: &str, fields: &str) -> Answer {
    let mut client = foxy.connect();
    let to = origin.authority();
    client.send(format!(
        "{method} http://{to}{path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"
    ));
    client.answer_to(method)
}

#[test]
fn parts_heads_conditions_and_errors_remove_no_whole_object() {
    let (foxy, origin) = (Foxy::forward(), Origin::start(serve));
    for path in ["/small", "/large"] {
        for (method, fields, status) in [
            ("GET", "Range: bytes=2-4\r\n", 206),
            ("GET", "Range: bytes=900000-\r\n", 416),
            ("GET", "If-None-Match: \"v1\"\r\n", 304),
            ("GET", "If-Match: \"v0\"\r\n", 412),
            ("GET", "X-Status: 503 Service Unavailable\r\n", 503),
            ("HEAD", "", 200),
            ("HEAD", "X-Status: 404 Not Found\r\n", 404),
            ("HEAD", "X-Status: 503 Service Unavailable\r\n", 503),
        ] {
            // The object expires, and a GET makes it fresh again. So the previous round has no effect on this
            // round.
            foxy.clock.advance(Duration::from_secs(61));
            foxy.get(&origin, path);
            let before = foxy.stored(&origin, path).expect("stored whole");
            let (shown, asked) = (format!("{method} {path} {fields:?}"), origin.asked());
            let answer = ask(&foxy, &origin, method, path, &format!("{fields}{AGAIN}"));
            assert_eq!(answer.status, status, "{shown}: {answer:?}");
            assert!(origin.asked() > asked, "{shown} went to the origin");
            let after = foxy.stored(&origin, path).expect("still stored");
            assert_eq!(after.meta().version, before.meta().version, "{shown}");
            let hit = foxy.get(&origin, path);
            assert!(hit.cache().contains("; hit"), "{shown}: {}", hit.head);
            assert!(hit.whole && hit.status == 200, "{shown}");
        }
    }
}

#[test]
fn a_part_of_what_is_stored_with_a_hole_does_not_remove_the_rest() {
    let (foxy, origin) = (Foxy::forward(), Origin::start(serve));
    foxy.get(&origin, "/large");
    let head = foxy.stored(&origin, "/large").expect("stored");
    let Lookup::Memory(hole) = foxy.engine.reads().fragment_lookup(&head, 0) else {
        panic!("a fragment");
    };
    foxy.engine.supersede(hole.hash(), hole.key());
    for _ in 0..2 {
        let part = foxy.get_with(&origin, "/large", "Range: bytes=100-199\r\n");
        assert!(part.status == 206 && part.body == body()[100..200]);
        assert_eq!(origin.asked(), 2, "the hole is filled at once");
        let rest = foxy.get_with(&origin, "/large", "Range: bytes=400000-400099\r\n");
        assert!(rest.status == 206 && rest.body == body()[400_000..400_100]);
        assert_eq!(origin.asked(), 2, "{}", rest.head);
    }
}

#[test]
fn head_and_ranges_of_what_is_unknown_leave_nothing_wrong() {
    let (foxy, origin) = (Foxy::forward(), Origin::start(serve));
    assert_eq!(ask(&foxy, &origin, "HEAD", "/small", "").status, 200);
    assert!(foxy.stored(&origin, "/small").is_none());
    let part = foxy.get_with(&origin, "/small", "Range: bytes=2-4\r\n");
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    let whole = foxy.get(&origin, "/small");
    assert_eq!((whole.status, whole.text().as_str()), (200, "0123456789"));
}
