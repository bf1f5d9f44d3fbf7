//! Stored parts of objects, which come from range requests and truncated answers. They are reused, combined
//! and completed. Parts of different versions are never mixed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Asked, Foxy, Origin, until};
use foxy_proxy::{Config, Role, Token};

const BODY: &str = "0123456789ABCDEFGHIJ";

/// An origin that serves ranges of [`BODY`] with the current ETag and remembers the ranges that it sent. Foxy
/// usually requests a wider range than the client. So a client can repeat its range in the field `X-Part`,
/// and the origin then sends exactly this range.
fn ranged(etag: Arc<Mutex<String>>) -> (Origin, Arc<Mutex<Vec<String>>>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let origin = Origin::start(move |asked| {
        let etag = etag.lock().unwrap().clone();
        let range = asked.field("X-Part").or(asked.field("Range"));
        let range = range.unwrap_or("whole").to_owned();
        let if_range = asked.field("If-Range").map(str::to_owned);
        seen.lock().unwrap().push(range.clone());
        let fields = format!("Cache-Control: max-age=60\r\nETag: {etag}\r\n");
        let same = if_range.is_none_or(|tag| tag == etag);
        match range.strip_prefix("bytes=").filter(|_| same) {
            Some(range) => part(asked, range, &fields),
            None => asked.reply("200 OK", &fields, BODY),
        }
        true
    });
    (origin, log)
}

fn part(asked: &mut Asked, range: &str, fields: &str) {
    let (from, to) = range.split_once('-').unwrap();
    let from: usize = from.parse().unwrap();
    let to = to.parse().map_or(BODY.len(), |to: usize| to + 1);
    let range = format!(
        "{fields}Content-Range: bytes {from}-{}/{}\r\n",
        to - 1,
        BODY.len()
    );
    asked.reply("206 Partial Content", &range, &BODY[from..to]);
}

fn tag(text: &str) -> Arc<Mutex<String>> {
    Arc::new(Mutex::new(text.to_owned()))
}

fn range(foxy: &Foxy, origin: &Origin, range: &str) -> (u16, String, String) {
    let answer = foxy.get_with(
        origin,
        "/x",
        &format!("Range: bytes={range}\r\nX-Part: bytes={range}\r\n"),
    );
    let said = answer.field("Content-Range").unwrap_or_default().to_owned();
    (answer.status, answer.text(), said)
}

#[test]
fn a_stored_part_answers_ranges_inside_it_and_others_grow_it() {
    let foxy = Foxy::forward();
    let (origin, log) = ranged(tag("\"v1\""));
    let first = range(&foxy, &origin, "2-9");
    assert_eq!(first, (206, "23456789".into(), "bytes 2-9/20".into()));
    let inside = range(&foxy, &origin, "4-5");
    assert_eq!(inside, (206, "45".into(), "bytes 4-5/20".into()));
    assert_eq!(origin.asked(), 1);
    // There is no gap between the two parts, so they become one part.
    range(&foxy, &origin, "10-14");
    assert_eq!(range(&foxy, &origin, "8-12").1, "89ABC");
    assert_eq!(*log.lock().unwrap(), ["bytes=2-9", "bytes=10-14"]);
}

/// The body of a multipart answer has text between its parts. So a Content-Range in the head of such an
/// answer says nothing about the bytes. A correct origin does not send it.
#[test]
fn a_range_in_the_head_of_several_parts_is_ignored() {
    let origin = Origin::start(|asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
        let kind = "Content-Type: multipart/byteranges; boundary=x\r\n";
        match asked.field("Range") {
            Some("bytes=8-") => {
                let head = format!("{fields}{kind}Content-Range: bytes 8-19/20\r\n");
                asked.reply("206 Partial Content", &head, "--x\r\n\r\n8--x-");
            }
            Some(_) if asked.path() == "/parts" => {
                let head = format!("{fields}{kind}Content-Range: bytes 0-7/20\r\n");
                asked.reply("206 Partial Content", &head, "--x\r\n\r\n0");
            }
            Some(_) => part(asked, "0-7", fields),
            None => asked.reply("200 OK", fields, BODY),
        }
        true
    });
    let foxy = Foxy::forward();
    for _ in 0..2 {
        let asked = origin.asked();
        let got = foxy.get_with(&origin, "/parts", "Range: bytes=0-7\r\n");
        assert_eq!(got.status, 206);
        assert!(origin.asked() > asked, "it is stored");
    }
    // Foxy stores a prefix, and then requests the rest of the object. The rest arrives as such a multipart
    // answer. Foxy ignores this answer too, and requests the complete object.
    range(&foxy, &origin, "0-7");
    let asked = origin.asked();
    let whole = foxy.get(&origin, "/x");
    assert_eq!((whole.text().as_str(), origin.asked()), (BODY, asked + 2));
}

#[test]
fn a_stored_prefix_is_completed_by_asking_for_the_rest() {
    let foxy = Foxy::forward();
    let (origin, log) = ranged(tag("\"v1\""));
    range(&foxy, &origin, "0-7");
    let whole = foxy.get(&origin, "/x");
    assert_eq!((whole.status, whole.text().as_str()), (200, BODY));
    assert_eq!(whole.field("Content-Range"), None);
    assert_eq!(whole.field("Content-Length"), Some("20"));
    assert!(whole.cache().contains("fwd=partial"), "{whole:?}");
    let hit = foxy.get(&origin, "/x");
    assert_eq!((hit.status, hit.text().as_str()), (200, BODY));
    assert!(hit.cache().contains("hit"), "{hit:?}");
    assert_eq!(*log.lock().unwrap(), ["bytes=0-7", "bytes=8-"]);
}

#[test]
fn ranges_that_make_all_of_it_make_the_whole() {
    let foxy = Foxy::forward();
    let (origin, _) = ranged(tag("\"v1\""));
    range(&foxy, &origin, "10-19");
    range(&foxy, &origin, "0-9");
    assert_eq!(foxy.get(&origin, "/x").text(), BODY);
    assert_eq!(origin.asked(), 2);
}

#[test]
fn versions_are_never_mixed() {
    let etag = tag("\"v1\"");
    let foxy = Foxy::forward();
    let (origin, log) = ranged(etag.clone());
    range(&foxy, &origin, "0-7");
    *etag.lock().unwrap() = "\"v2\"".into();
    // A part of another version arrives. Foxy drops the stored part, because the two parts must not be
    // combined.
    range(&foxy, &origin, "8-9");
    range(&foxy, &origin, "6-7");
    assert_eq!(log.lock().unwrap().len(), 3);
    // The stored prefix is of an old version. So the condition of If-Range is false, and the origin sends the
    // complete body.
    range(&foxy, &origin, "0-3");
    *etag.lock().unwrap() = "\"v3\"".into();
    let whole = foxy.get(&origin, "/x");
    assert_eq!(
        (whole.text().as_str(), whole.field("ETag")),
        (BODY, Some("\"v3\""))
    );
}

#[test]
fn parts_without_a_strong_validator_are_not_combined() {
    let foxy = Foxy::forward();
    let (origin, log) = ranged(tag("W/\"v1\""));
    range(&foxy, &origin, "0-7");
    range(&foxy, &origin, "8-9");
    assert_eq!(range(&foxy, &origin, "8-9").1, "89");
    range(&foxy, &origin, "6-7");
    assert_eq!(foxy.get(&origin, "/x").text(), BODY);
    assert_eq!(
        *log.lock().unwrap(),
        ["bytes=0-7", "bytes=8-9", "bytes=6-7", "whole"]
    );
}

#[test]
fn an_origin_that_answers_with_another_part_is_asked_for_the_whole() {
    let foxy = Foxy::forward();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let origin = Origin::start(move |asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => part(asked, "0-7", fields),
            1 => part(asked, "9-19", fields),
            _ => asked.reply("200 OK", fields, BODY),
        }
        true
    });
    range(&foxy, &origin, "0-7");
    assert_eq!(foxy.get(&origin, "/x").text(), BODY);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[test]
fn a_body_that_breaks_off_is_continued_at_once() {
    let foxy = Foxy::forward();
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let origin = Origin::start(move |asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
        let range = asked.field("Range").unwrap_or("whole").to_owned();
        seen.lock().unwrap().push(range.clone());
        match range.strip_prefix("bytes=") {
            Some(range) => part(asked, range, fields),
            None => {
                let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 20\r\n\r\n");
                asked.raw(head + &BODY[..12]);
                return false;
            }
        }
        true
    });
    // After the truncated answer, the same fetch requests the rest. So the client and the store get the
    // complete body.
    assert_eq!(foxy.get(&origin, "/x").text(), BODY);
    let whole = foxy.get(&origin, "/x");
    assert_eq!((whole.status, whole.text().as_str()), (200, BODY));
    assert!(whole.cache().contains("; hit"), "{}", whole.cache());
    assert_eq!(*log.lock().unwrap(), ["whole", "bytes=12-19"]);
}

#[test]
fn a_body_that_cannot_be_continued_at_once_is_completed_later() {
    let foxy = Foxy::forward();
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let origin = Origin::start(move |asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
        let range = asked.field("Range").unwrap_or("whole").to_owned();
        let mut log = seen.lock().unwrap();
        log.push(range.clone());
        match (log.len(), range.strip_prefix("bytes=")) {
            (5.., Some(range)) => part(asked, range, fields),
            (1, None) => {
                let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 20\r\n\r\n");
                asked.raw(head + &BODY[..12]);
                return false;
            }
            _ => return false,
        }
        true
    });
    let cut = foxy.get(&origin, "/x");
    assert!(!cut.whole && cut.text() == BODY[..12], "{cut:?}");
    let whole = foxy.get(&origin, "/x");
    assert_eq!((whole.status, whole.text().as_str()), (200, BODY));
    let log = log.lock().unwrap();
    assert_eq!(
        (log[0].as_str(), log.last().unwrap().as_str()),
        ("whole", "bytes=12-")
    );
}

#[test]
fn a_purge_takes_parts_too_and_head_is_not_answered_from_one() {
    let foxy = Foxy::forward();
    let (origin, _) = ranged(tag("\"v1\""));
    range(&foxy, &origin, "0-7");
    let url = format!("http://{}/x", origin.authority());
    let mut client = foxy.connect();
    client.send(format!("HEAD {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(client.answer_to("HEAD").field("Content-Length"), Some("20"));
    assert_eq!(origin.asked(), 2);
    client.send(format!("DELETE {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    client.answer();
    range(&foxy, &origin, "0-7");
    assert_eq!(origin.asked(), 4);
}

#[test]
fn a_part_shorter_than_announced_is_passed_on_with_its_real_length() {
    let origin = Origin::start(|asked| {
        // According to Content-Range, the part has six bytes. According to Content-Length, it has five.
        let fields = "Cache-Control: max-age=60\r\nContent-Range: bytes 4-9/10\r\n";
        asked.reply("206 Partial Content", fields, "45678");
        true
    });
    let foxy = Foxy::forward();
    let answer = foxy.get_with(&origin, "/x", "Range: bytes=-5\r\n");
    assert_eq!((answer.status, answer.text()), (206, "45678".to_owned()));
    assert!(answer.whole);
    assert_eq!(answer.field("Content-Range"), Some("bytes 4-9/10"));
    assert_eq!(origin.asked(), 1, "it was the client's own question");
    // The received bytes begin at byte 4, as Content-Range states. So they are stored as a part.
    let answer = foxy.get_with(&origin, "/x", "Range: bytes=6-8\r\n");
    assert_eq!((answer.status, answer.text()), (206, "678".to_owned()));
    assert_eq!(origin.asked(), 1);
}

#[test]
fn a_purge_covers_the_old_bytes_of_a_part_that_grows() {
    const TOKEN: &str = "0123456789abcdef0123";
    let open = Arc::new(AtomicBool::new(false));
    let held = Arc::clone(&open);
    let origin = Origin::start(move |asked| {
        while asked.path() == "/held" && !held.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
        match asked.field("X-Part").map(str::to_owned) {
            Some(range) => part(asked, range.trim_start_matches("bytes="), fields),
            None => asked.reply("200 OK", fields, BODY),
        }
        true
    });
    let mut config = Config::default();
    config.access.token = Token::new(TOKEN);
    config.upstream.origin_concurrency = 1;
    let foxy = Foxy::start(Role::Forward, config, 1);
    let to = origin.authority();
    assert_eq!(range(&foxy, &origin, "2-9").1, "23456789");
    let mut holds = foxy.connect();
    holds.send(format!("GET http://{to}/held HTTP/1.1\r\nHost: x\r\n\r\n"));
    until(|| origin.asked() == 2);
    // This request has found the stored part. It waits, because only one request to the origin may be under
    // way.
    let mut grows = foxy.connect();
    grows.send(format!(
        "GET http://{to}/x HTTP/1.1\r\nHost: x\r\nRange: bytes=10-14\r\nX-Part: bytes=10-14\r\n\r\n"
    ));
    until(|| foxy.proxy.followers() == 2);
    let purged = foxy.ask(&format!(
        "PURGE http://{to}/ HTTP/1.1\r\nHost: x\r\nX-Foxy-Token: {TOKEN}\r\nX-Purge-Method: all\r\n\r\n"
    ));
    assert_eq!(purged.status, 200, "{}", purged.head);
    open.store(true, Ordering::SeqCst);
    assert_eq!(holds.answer().text(), BODY);
    assert_eq!(grows.answer().text(), "ABCDE");
    until(|| foxy.proxy.fills() == 0);
    let asked = origin.asked();
    assert_eq!(range(&foxy, &origin, "4-5").1, "45");
    assert_eq!(origin.asked(), asked + 1, "the purged bytes were fetched");
}
