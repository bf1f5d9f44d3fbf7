//! Ranges from an origin whose parts are wrong.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{LEN, bytes, check, range, resolve};
use crate::common::{Foxy, Origin};

/// An origin whose 206 answer is wrong in one way.
fn liar(lie: impl Fn(u64, u64) -> (String, Vec<u8>) + Send + Sync + 'static) -> Origin {
    let first = AtomicBool::new(true);
    Origin::start(move |asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v0\"\r\n";
        let range = asked.field("Range").and_then(|r| r.strip_prefix("bytes="));
        let Some((from, to)) = range.and_then(|range| resolve(range, LEN)) else {
            asked.reply("200 OK", fields, bytes(0, 0, LEN));
            return true;
        };
        let (said, body) = if first.swap(false, Ordering::SeqCst) {
            (format!("bytes {from}-{}/{LEN}", to - 1), bytes(0, from, to))
        } else {
            lie(from, to)
        };
        let fields = format!("{fields}Content-Range: {said}\r\n");
        asked.reply("206 Partial Content", &fields, body);
        true
    })
}

#[test]
fn wrong_parts_are_never_taken_for_right_ones() {
    type Lie = fn(u64, u64) -> (String, Vec<u8>);
    let lies: [(&str, Lie); 5] = [
        ("elsewhere", |from, to| {
            let (from, to) = (from + 5, to + 5);
            (format!("bytes {from}-{}/{LEN}", to - 1), bytes(0, from, to))
        }),
        ("longer than said", |from, to| {
            (
                format!("bytes {from}-{}/{LEN}", to - 1),
                bytes(0, from, to + 500),
            )
        }),
        ("shorter than said", |from, to| {
            (
                format!("bytes {from}-{}/{LEN}", to - 1),
                bytes(0, from, to - 500),
            )
        }),
        ("nonsense", |from, to| {
            ("bytes 9-2/1".into(), bytes(0, from, to))
        }),
        ("text between parts", |from, to| {
            let kind = "Content-Type: multipart/byteranges; boundary=x";
            let said = format!("bytes {from}-{}/{LEN}\r\n{kind}", to - 1);
            (said, vec![b'-'; (to - from) as usize])
        }),
    ];
    for (name, lie) in lies {
        let (foxy, origin) = (Foxy::forward(), liar(lie));
        check(&range(&foxy, &origin, "0-9"), 0, 0, 10);
        let other = range(&foxy, &origin, "1600000-1600009");
        let said = other.field("Content-Range").map(str::to_owned);
        let honest = said.as_deref() == Some(&*format!("bytes 1600000-1600009/{LEN}"));
        // Foxy passes some answers on with the origin's own head, and does not store them: answers without
        // body bytes, and answers with several parts.
        let passed_on =
            other.field("Content-Length") == Some("0") || other.field("Content-Type").is_some();
        if other.status == 206 && other.whole && honest && !passed_on {
            assert!(other.body == bytes(0, 1_600_000, 1_600_010), "{name}");
        }
        check(&range(&foxy, &origin, "0-9"), 0, 0, 10);
    }
}

#[test]
fn a_part_that_is_shorter_than_asked_for_is_gone_on_with() {
    let origin = liar(|from, to| {
        let to = to.min(from + 300_000);
        (format!("bytes {from}-{}/{LEN}", to - 1), bytes(0, from, to))
    });
    let foxy = Foxy::forward();
    check(&range(&foxy, &origin, "0-9"), 0, 0, 10);
    check(
        &range(&foxy, &origin, "500000-1200000"),
        0,
        500_000,
        1_200_001,
    );
}
