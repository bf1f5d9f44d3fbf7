//! The first request for a page (the leader) starts a fetch, and other requests (followers) wait for it. If
//! this fetch fails but the origin can answer the followers, they must get good answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Answer, Asked, Foxy, Gate, Origin, until};

const PAGE: &str = "0123456789abcdefghij";
const FIELDS: &str = "ETag: \"v1\"\r\nCache-Control: max-age=60\r\n";

/// Sends the complete answer, or the rest that a range requests.
fn good(asked: &mut Asked) -> bool {
    let range = asked.field("Range").and_then(|r| r.strip_prefix("bytes="));
    let from = range.and_then(|r| r.split('-').next()?.parse::<usize>().ok());
    match from {
        Some(from) => {
            let fields = format!(
                "{FIELDS}Content-Range: bytes {from}-{}/{}\r\n",
                PAGE.len() - 1,
                PAGE.len()
            );
            asked.reply("206 Partial Content", &fields, &PAGE[from..]);
        }
        None => asked.reply("200 OK", FIELDS, PAGE),
    }
    true
}

/// Sends a request and `followers` more requests for the same page. When all of them wait, `bad` answers the
/// first request that has reached the origin. The origin gives good answers to all other requests.
fn crowd(followers: usize, bad: fn(&mut Asked)) -> (Vec<Answer>, usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let waiting = Arc::new(AtomicUsize::new(0));
    let (first, all) = (count, waiting.clone());
    let origin = Origin::start(move |asked| {
        if first.fetch_add(1, Ordering::SeqCst) > 0 {
            return good(asked);
        }
        while all.load(Ordering::SeqCst) <= followers {
            std::thread::sleep(Duration::from_millis(1));
        }
        bad(asked);
        false
    });
    let foxy = Foxy::forward();
    let answers = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..=followers)
            .map(|n| {
                let one = scope.spawn(|| foxy.get(&origin, "/"));
                while foxy.proxy.followers() <= n {
                    std::thread::sleep(Duration::from_millis(1));
                }
                waiting.fetch_add(1, Ordering::SeqCst);
                one
            })
            .collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    (answers, origin.asked())
}

fn all_whole(answers: &[Answer]) {
    for answer in answers {
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, PAGE),
            "{}",
            answer.head
        );
        assert!(answer.whole);
    }
}

#[test]
fn a_connection_that_fails_before_the_head_is_tried_once_more_for_all() {
    for bad in [
        (|_: &mut Asked| {}) as fn(&mut Asked),
        |asked| asked.raw("HTTP/1.1 200 OK\r\nCache-Con"),
        |asked| asked.raw("not http at all\r\n\r\n"),
    ] {
        let (answers, asked) = crowd(5, bad);
        assert_eq!(
            answers[0].status, 502,
            "the leader's own: {}",
            answers[0].head
        );
        all_whole(&answers[1..]);
        assert_eq!(asked, 2, "one retry for the crowd");
    }
}

#[test]
fn an_origin_that_is_gone_is_asked_twice_for_a_crowd() {
    let gate = Gate::default();
    let held = gate.clone();
    let origin = Origin::start(move |_| {
        held.wait();
        false
    });
    let foxy = Foxy::forward();
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| assert_eq!(foxy.get(&origin, "/").status, 502));
        }
        until(|| foxy.proxy.followers() == 10);
        gate.open();
    });
    assert!(origin.asked() <= 4, "{}", origin.asked());
}

#[test]
fn a_silent_origin_is_asked_by_another_and_all_take_the_first_head() {
    for bad in [
        (|_: &mut Asked| std::thread::sleep(Duration::from_secs(15))) as fn(&mut Asked),
        |asked| {
            for _ in 0..15 {
                asked.raw("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
                std::thread::sleep(Duration::from_secs(1));
            }
        },
    ] {
        let (answers, asked) = crowd(5, bad);
        all_whole(&answers);
        assert_eq!(asked, 2, "one of them has asked too");
    }
}

#[test]
fn a_body_that_breaks_off_is_continued_for_all_by_one_range() {
    for bad in [
        (|asked: &mut Asked| {
            asked.raw(format!(
                "HTTP/1.1 200 OK\r\n{FIELDS}Content-Length: 20\r\n\r\n0123456"
            ));
        }) as fn(&mut Asked),
        |asked| {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n";
            asked.raw(format!("{head}{FIELDS}\r\n0123456"));
            // The origin is silent from this byte on.
            std::thread::sleep(Duration::from_secs(15));
        },
        |asked| {
            asked.raw(format!(
                "HTTP/1.1 200 OK\r\n{FIELDS}Transfer-Encoding: chunked\r\n\r\n"
            ));
            asked.raw("7\r\n0123456\r\n");
        },
    ] {
        let (answers, asked) = crowd(5, bad);
        all_whole(&answers);
        assert_eq!(asked, 2, "one range for all");
    }
}

#[test]
fn a_body_of_another_version_does_not_continue_a_broken_one() {
    let origin = Origin::start(|asked| {
        if asked.field("Range").is_some() {
            let fields = "ETag: \"v2\"\r\nContent-Range: bytes 7-19/20\r\n";
            asked.reply("206 Partial Content", fields, "-------------");
        } else {
            asked.raw(format!(
                "HTTP/1.1 200 OK\r\n{FIELDS}Content-Length: 20\r\n\r\n0123456"
            ));
        }
        false
    });
    let got = Foxy::forward().get(&origin, "/");
    assert!(!got.whole && got.text() == "0123456", "{got:?}");
}

#[test]
fn followers_of_an_error_get_its_status_and_not_its_page() {
    let count = Arc::new(AtomicUsize::new(0));
    let all = count.clone();
    let origin = Origin::start(move |asked| {
        while all.load(Ordering::SeqCst) < 5 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let fields = "Retry-After: 7\r\nSet-Cookie: s=1\r\nCache-Control: no-store\r\n";
        asked.reply("503 Service Unavailable", fields, "page of the first");
        true
    });
    let foxy = Foxy::forward();
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..5)
            .map(|n| {
                let one = scope.spawn(|| foxy.get(&origin, "/"));
                while foxy.proxy.followers() <= n {
                    std::thread::sleep(Duration::from_millis(1));
                }
                count.fetch_add(1, Ordering::SeqCst);
                one
            })
            .collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(origin.asked(), 1, "they spare the origin");
    assert_eq!(answers[0].text(), "page of the first");
    for other in &answers[1..] {
        assert_eq!((other.status, other.field("Retry-After")), (503, Some("7")));
        assert!(!other.text().contains("first") && other.field("Set-Cookie").is_none());
    }
}
