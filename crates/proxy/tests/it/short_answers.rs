//! Origins that answer a range request with fewer bytes than requested, or with other content. The client
//! still gets the requested bytes, and later requests for the URL still succeed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Answer, Asked, Foxy, Origin};

const LEN: u64 = 2_000_000;
const FIELDS: &str = "Cache-Control: max-age=60\r\nETag: \"v0\"\r\n";

fn bytes(from: u64, to: u64) -> Vec<u8> {
    let byte = |at: u64| ((at * 7 + at / 251) % 253) as u8;
    (from..to).map(byte).collect()
}

/// Returns the range that a request to the origin contains.
fn asked_for(asked: &Asked) -> Option<(u64, u64)> {
    let range = asked.field("Range")?.strip_prefix("bytes=")?;
    let (from, to) = range.split_once('-')?;
    let to = to.parse().map_or(LEN, |to: u64| (to + 1).min(LEN));
    Some((from.parse().ok()?, to))
}

fn part(asked: &mut Asked, from: u64, to: u64) {
    let range = format!("{FIELDS}Content-Range: bytes {from}-{}/{LEN}\r\n", to - 1);
    asked.reply("206 Partial Content", &range, bytes(from, to));
}

fn range(foxy: &Foxy, origin: &Origin, range: &str) -> Answer {
    foxy.get_with(origin, "/film", &format!("Range: bytes={range}\r\n"))
}

fn check(answer: &Answer, from: u64, to: u64) {
    let said = format!("bytes {from}-{}/{LEN}", to - 1);
    assert_eq!(
        answer.field("Content-Range"),
        Some(&*said),
        "{}",
        answer.head
    );
    assert!(answer.whole && answer.body == bytes(from, to));
}

#[test]
fn an_origin_that_gives_little_is_asked_on_until_all_is_there() {
    for most in [50_000u64, 240_000, 700_001] {
        let origin = Origin::start(move |asked| {
            match asked_for(asked) {
                Some((from, to)) => part(asked, from, to.min(from + most)),
                None => asked.reply("200 OK", FIELDS, bytes(0, LEN)),
            }
            true
        });
        let foxy = Foxy::forward();
        check(
            &range(&foxy, &origin, "1000000-1000099"),
            1_000_000,
            1_000_100,
        );
        let whole = foxy.get(&origin, "/film");
        assert!(whole.whole && whole.body == bytes(0, LEN), "{most}");
        check(&range(&foxy, &origin, "5-1999999"), 5, LEN);
        let before = origin.asked();
        let hit = foxy.get(&origin, "/film");
        assert!(hit.body == bytes(0, LEN) && hit.cache().contains("hit"));
        assert_eq!(origin.asked(), before, "all of it is stored");
    }
}

#[test]
fn a_body_that_breaks_is_gone_on_with_by_ranges() {
    let origin = Origin::start(|asked| {
        let Some((from, to)) = asked_for(asked) else {
            asked.reply("200 OK", FIELDS, bytes(0, LEN));
            return true;
        };
        asked.raw(format!(
            "HTTP/1.1 206 Partial Content\r\n{FIELDS}Content-Range: bytes {from}-{}/{LEN}\r\nContent-Length: {}\r\n\r\n",
            to - 1,
            to - from
        ));
        let end = to.min(from + 300_000);
        asked.raw(bytes(from, end));
        end == to
    });
    let foxy = Foxy::forward();
    check(&range(&foxy, &origin, "0-9"), 0, 10);
    let whole = foxy.get(&origin, "/film");
    assert!(whole.whole && whole.body == bytes(0, LEN));
}

#[test]
fn a_gap_that_cannot_be_fetched_cuts_one_answer_and_not_the_next() {
    // The origin answers only ranges that begin at the start of a fragment, and sends only the first bytes of
    // a range. To a request for the rest of a fragment, it sends a wrong answer.
    let unit = Arc::new(Mutex::new(1));
    let known = Arc::clone(&unit);
    let origin = Origin::start(move |asked| {
        match asked_for(asked) {
            Some((from, to)) if from % *known.lock().unwrap() == 0 => {
                part(asked, from, to.min(from + 50_000));
            }
            Some(_) => {
                let wrong = format!("{FIELDS}Content-Range: bytes 9-2/1\r\n");
                asked.reply("206 Partial Content", &wrong, "nonsense");
            }
            None => asked.reply("200 OK", FIELDS, bytes(0, LEN)),
        }
        true
    });
    let foxy = Foxy::forward();
    *unit.lock().unwrap() = u64::from(foxy.engine.fragment_bytes());
    check(&range(&foxy, &origin, "0-9"), 0, 10);
    let first = foxy.get(&origin, "/film");
    assert!(
        !first.whole || first.body == bytes(0, LEN),
        "truncated, not short"
    );
    for _ in 0..2 {
        let whole = foxy.get(&origin, "/film");
        assert!(whole.whole && whole.body == bytes(0, LEN), "{}", whole.head);
    }
}

#[test]
fn a_widened_range_that_comes_back_wrong_is_asked_for_exactly() {
    type Lie = fn(&mut Asked, u64, u64);
    let lies: [(&str, Lie); 5] = [
        ("no Content-Range", |asked, from, to| {
            asked.reply("206 Partial Content", FIELDS, bytes(from, to));
        }),
        ("nonsense", |asked, from, to| {
            let fields = format!("{FIELDS}Content-Range: bytes 9-2/1\r\n");
            asked.reply("206 Partial Content", &fields, bytes(from, to));
        }),
        ("elsewhere", |asked, _, _| part(asked, 5, 200_005)),
        ("a length that contradicts it", |asked, from, to| {
            let fields = format!("{FIELDS}Content-Range: bytes {from}-{}/{LEN}\r\n", to - 1);
            asked.reply("206 Partial Content", &fields, bytes(from, to - 700));
        }),
        ("two of them", |asked, from, to| {
            let one = format!("Content-Range: bytes {from}-{}/{LEN}\r\n", to - 1);
            let fields = format!("{FIELDS}{one}Content-Range: bytes 0-9/10\r\n");
            asked.reply("206 Partial Content", &fields, bytes(from, to));
        }),
    ];
    for (name, lie) in lies {
        let wide = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&wide);
        let origin = Origin::start(move |asked| {
            match asked_for(asked) {
                Some((from, to)) if to - from == 100 => part(asked, from, to),
                Some((from, to)) => {
                    count.fetch_add(1, Ordering::SeqCst);
                    lie(asked, from, to);
                }
                None => asked.reply("200 OK", FIELDS, bytes(0, LEN)),
            }
            true
        });
        let foxy = Foxy::forward();
        for from in [1_000_000u64, 1_200_000, 1_000_050] {
            let answer = range(&foxy, &origin, &format!("{from}-{}", from + 99));
            assert_eq!(answer.status, 206, "{name}: {}", answer.head);
            check(&answer, from, from + 100);
        }
        assert_eq!(wide.load(Ordering::SeqCst), 1, "{name}: remembered");
        let whole = foxy.get(&origin, "/film");
        assert!(whole.whole && whole.body == bytes(0, LEN), "{name}");
    }
}
