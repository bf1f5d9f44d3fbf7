//! The order of versions of an object. The answer that arrives last may be the older version, because its
//! request was sent first (RFC 9111 section 4). If both answers have a Date, the answer with the later Date
//! is the newer version.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Foxy, Origin, until};

const RELOAD: &str = "Cache-Control: no-cache\r\n";

fn wait_for(flag: &AtomicBool) {
    until(|| flag.load(Ordering::SeqCst));
}

/// Sends two reloads (requests with `no-cache`) that overlap. The slow reload is sent first and answered
/// last. The answer to the slow reload has the Date `slow_date`, and all other answers have the Date noon.
/// Returns the answer to a request after both reloads.
fn crossing(slow_date: &'static str) -> (crate::common::Answer, usize) {
    let (first_asked, release) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (asked_flag, released) = (first_asked.clone(), release.clone());
    let origin = Origin::start(move |asked| {
        let slow = asked.field("X-Speed") == Some("slow");
        if slow {
            asked_flag.store(true, Ordering::SeqCst);
            wait_for(&released);
        }
        let (body, time) = if slow {
            ("one", slow_date)
        } else {
            ("two", "12:00:00")
        };
        let fields = format!(
            "ETag: \"{body}\"\r\nDate: Fri, 20 Nov 2026 {time} GMT\r\nCache-Control: max-age=600\r\n"
        );
        asked.reply("200 OK", &fields, body);
        true
    });
    let foxy = Foxy::start(foxy_proxy::Role::Forward, foxy_proxy::Config::default(), 2);
    // A fresh object is stored first. A reload of a fresh object always starts a separate fetch. Without a
    // stored object, the two reloads could share one fetch.
    foxy.get(&origin, "/");
    std::thread::scope(|scope| {
        let slow =
            scope.spawn(|| foxy.get_with(&origin, "/", &format!("{RELOAD}X-Speed: slow\r\n")));
        wait_for(&first_asked);
        let quick = foxy.get_with(&origin, "/", RELOAD);
        assert_eq!(quick.text(), "two");
        release.store(true, Ordering::SeqCst);
        let slow = slow.join().unwrap();
        assert_eq!(slow.text(), "one", "its own answer: {}", slow.head);
    });
    let asked = origin.asked();
    let now = foxy.get(&origin, "/");
    (now, origin.asked() - asked)
}

#[test]
fn a_late_answer_neither_replaces_nor_is_stored() {
    let (now, asked) = crossing("11:59:59");
    assert_eq!((now.text().as_str(), asked), ("two", 0), "{}", now.head);
    assert!(now.cache().contains("; hit"), "{}", now.cache());
}

#[test]
fn the_origin_is_asked_after_answers_of_unclear_order() {
    let (now, asked) = crossing("12:00:00");
    assert_eq!((now.text().as_str(), asked), ("two", 1), "{}", now.head);
}

#[test]
fn a_late_answer_that_was_made_later_is_the_newer_one() {
    let (now, asked) = crossing("12:00:01");
    assert_eq!((now.text().as_str(), asked), ("one", 0), "{}", now.head);
}

#[test]
fn a_late_304_does_not_bring_an_older_version_back() {
    let (first_asked, release) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (asked_flag, released) = (first_asked.clone(), release.clone());
    let origin = Origin::start(move |asked| {
        match asked.field("X-Speed") {
            Some("slow") => {
                asked_flag.store(true, Ordering::SeqCst);
                wait_for(&released);
                assert_eq!(asked.field("If-None-Match"), Some("\"one\""));
                asked.raw("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\n\r\n");
            }
            Some("quick") => {
                asked.reply(
                    "200 OK",
                    "ETag: \"two\"\r\nCache-Control: max-age=600\r\n",
                    "two",
                );
            }
            _ => asked.reply(
                "200 OK",
                "ETag: \"one\"\r\nCache-Control: max-age=60\r\n",
                "one",
            ),
        }
        true
    });
    let foxy = Foxy::start(foxy_proxy::Role::Forward, foxy_proxy::Config::default(), 2);
    foxy.get(&origin, "/");
    std::thread::scope(|scope| {
        let slow =
            scope.spawn(|| foxy.get_with(&origin, "/", &format!("{RELOAD}X-Speed: slow\r\n")));
        wait_for(&first_asked);
        let quick = foxy.get_with(&origin, "/", &format!("{RELOAD}X-Speed: quick\r\n"));
        assert_eq!(quick.text(), "two");
        release.store(true, Ordering::SeqCst);
        assert_eq!(slow.join().unwrap().text(), "one");
    });
    let now = foxy.get(&origin, "/");
    assert_eq!(now.text(), "two", "{}", now.head);
}

/// A request for the complete object fetches only the bytes after the stored prefix.
#[test]
fn a_late_rest_of_an_older_version_is_not_stored() {
    let (first_asked, release) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (asked_flag, released) = (first_asked.clone(), release.clone());
    let origin = Origin::start(move |asked| {
        let version = |etag: &str, time: &str| {
            format!(
                "ETag: \"{etag}\"\r\nDate: Fri, 20 Nov 2026 {time} GMT\r\nCache-Control: public, max-age=600\r\n"
            )
        };
        let part = |range: &str| {
            format!(
                "{}Content-Range: bytes {range}/8\r\n",
                version("one", "11:59:59")
            )
        };
        if asked.field("X-Speed") == Some("quick") {
            asked.reply("200 OK", &version("two", "12:00:00"), "two");
            return true;
        }
        match asked.field("Range") {
            Some("bytes=4-") => {
                asked_flag.store(true, Ordering::SeqCst);
                wait_for(&released);
                asked.reply("206 Partial Content", &part("4-7"), "4567");
            }
            // Foxy asks for a wider range than the client, and gets a shorter part.
            _ => asked.reply("206 Partial Content", &part("0-3"), "0123"),
        }
        true
    });
    let foxy = Foxy::start(foxy_proxy::Role::Forward, foxy_proxy::Config::default(), 2);
    foxy.get_with(&origin, "/", "Range: bytes=0-3\r\n");
    std::thread::scope(|scope| {
        // A request with credentials waits for its own answer.
        let slow = scope.spawn(|| foxy.get_with(&origin, "/", "Authorization: x\r\n"));
        wait_for(&first_asked);
        let quick = foxy.get_with(&origin, "/", &format!("{RELOAD}X-Speed: quick\r\n"));
        assert_eq!(quick.text(), "two");
        release.store(true, Ordering::SeqCst);
        let slow = slow.join().unwrap();
        assert_eq!(slow.text(), "01234567");
        let cache = slow.cache();
        assert!(cache.contains("detail=newer-answer"), "{cache}");
    });
    assert_eq!(foxy.get(&origin, "/").text(), "two");
}

#[test]
fn a_later_request_does_not_join_an_older_question() {
    let (first_asked, release) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (asked_flag, released) = (first_asked.clone(), release.clone());
    let origin = Origin::start(move |asked| {
        let slow = asked.field("X-Speed") == Some("slow");
        if slow {
            asked_flag.store(true, Ordering::SeqCst);
            wait_for(&released);
        }
        let body = if slow { "one" } else { "two" };
        let fields = format!("ETag: \"{body}\"\r\nCache-Control: public, max-age=600\r\n");
        asked.reply("200 OK", &fields, body);
        true
    });
    let foxy = Foxy::start(foxy_proxy::Role::Forward, foxy_proxy::Config::default(), 2);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| foxy.get_with(&origin, "/", "X-Speed: slow\r\n"));
        wait_for(&first_asked);
        // A request with credentials does not join another fetch, but its answer may be used for other
        // requests.
        let quick = foxy.get_with(&origin, "/", "Authorization: x\r\n");
        assert_eq!(quick.text(), "two");
        let later = foxy.get(&origin, "/");
        assert_eq!(
            later.text(),
            "two",
            "what was served whole does not go back"
        );
        release.store(true, Ordering::SeqCst);
        assert_eq!(slow.join().unwrap().text(), "one");
    });
    assert_eq!(foxy.get(&origin, "/").text(), "two");
}

/// The state of each request to a test origin, by number of the request. `asked` is true when the request has
/// arrived. `may` is true when the origin may answer it.
#[derive(Default)]
struct Steps {
    asked: [AtomicBool; 3],
    may: [AtomicBool; 3],
}

impl Steps {
    fn hold(&self, n: usize) {
        self.asked[n].store(true, Ordering::SeqCst);
        wait_for(&self.may[n]);
    }
}

#[test]
fn an_answer_asked_anew_after_a_change_supersedes_what_came_before_it() {
    const CHECK: usize = 0;
    const SECOND: usize = 1;
    const ANEW: usize = 2;
    let steps = Arc::new(Steps::default());
    let held = steps.clone();
    let origin = Origin::start(move |asked| {
        let body = match (asked.field("X-Speed"), asked.field("If-None-Match")) {
            (Some("slow"), Some(_)) => {
                held.hold(CHECK);
                asked.raw("HTTP/1.1 304 Not Modified\r\nETag: \"one\"\r\n\r\n");
                return true;
            }
            (Some("slow"), None) => {
                held.hold(ANEW);
                "three"
            }
            (Some(_), _) => {
                held.hold(SECOND);
                "two"
            }
            (None, _) if held.may[ANEW].load(Ordering::SeqCst) => "three",
            (None, _) => "one",
        };
        let fields = format!("ETag: \"{body}\"\r\nCache-Control: max-age=600\r\n");
        asked.reply("200 OK", &fields, body);
        true
    });
    let foxy = Foxy::start(foxy_proxy::Role::Forward, foxy_proxy::Config::default(), 2);
    foxy.get(&origin, "/");
    let (foxy, origin) = (&foxy, &origin);
    std::thread::scope(|scope| {
        let slow =
            scope.spawn(|| foxy.get_with(origin, "/", &format!("{RELOAD}X-Speed: slow\r\n")));
        wait_for(&steps.asked[CHECK]);
        let to = origin.authority();
        let put = format!("PUT http://{to}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(foxy.ask(&put).status, 200);
        let second = scope.spawn(|| foxy.get_with(origin, "/", "X-Speed: usual\r\n"));
        wait_for(&steps.asked[SECOND]);
        // The change has invalidated the version that the 304 confirms. So the complete object is fetched.
        steps.may[CHECK].store(true, Ordering::SeqCst);
        wait_for(&steps.asked[ANEW]);
        steps.may[SECOND].store(true, Ordering::SeqCst);
        assert_eq!(second.join().unwrap().text(), "two");
        steps.may[ANEW].store(true, Ordering::SeqCst);
        assert_eq!(slow.join().unwrap().text(), "three");
    });
    assert_eq!(foxy.get(origin, "/").text(), "three");
}
