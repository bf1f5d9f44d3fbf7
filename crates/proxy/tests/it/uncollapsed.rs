//! Requests that are not collapsed: they do not join a running fetch of another request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Asked, Client, Foxy, Origin, until};

const BODY: &[u8] = b"0123456789";
const FIELDS: &str = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";

/// An origin that waits for `open`, and then answers a request for one range, with or without a condition.
/// Foxy usually requests a wider range than the client. So a client can state a range in the field `X-Part`,
/// and the origin then sends exactly this range.
fn gated(open: &Arc<AtomicBool>) -> Origin {
    let open = Arc::clone(open);
    Origin::start(move |asked: &mut Asked| {
        while !open.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let fits = asked.field("If-Range").is_none_or(|tag| tag == "\"v1\"");
        let range = asked.field("X-Part").or(asked.field("Range"));
        let range = range.filter(|_| fits);
        let Some((from, to)) = range.map(span) else {
            asked.reply("200 OK", FIELDS, BODY);
            return true;
        };
        let fields = format!("{FIELDS}Content-Range: bytes {from}-{}/10\r\n", to - 1);
        asked.reply("206 Partial Content", &fields, &BODY[from..to]);
        true
    })
}

/// Returns the offset of the first byte of a range, and the offset after its last byte.
fn span(range: &str) -> (usize, usize) {
    let (from, to) = range.trim_start_matches("bytes=").split_once('-').unwrap();
    match (from.parse(), to.parse::<usize>()) {
        (Ok(from), Ok(to)) => (from, (to + 1).min(BODY.len())),
        (Ok(from), Err(_)) => (from, BODY.len()),
        (Err(_), Ok(last)) => (BODY.len() - last, BODY.len()),
        _ => panic!("{range}"),
    }
}

/// Sends one request with the fields `before`, and then two requests at the same time. Returns the answers to
/// these two requests.
fn together(before: &str, first: &str, second: &str) -> [(u16, String); 2] {
    let open = Arc::new(AtomicBool::new(true));
    let (foxy, origin) = (Foxy::forward(), gated(&open));
    if !before.is_empty() {
        assert_eq!(foxy.get_with(&origin, "/a", before).status, 206);
        until(|| foxy.proxy.fills() == 0);
    }
    open.store(false, Ordering::SeqCst);
    let asked = origin.asked();
    let ask = |fields: &str| -> Client {
        let mut client = foxy.connect();
        let to = origin.authority();
        client.send(format!(
            "GET http://{to}/a HTTP/1.1\r\nHost: x\r\n{fields}\r\n"
        ));
        client
    };
    let one = ask(first);
    until(|| origin.asked() > asked);
    let two = ask(second);
    until(|| foxy.proxy.fills() == 2 || foxy.proxy.followers() == 2);
    open.store(true, Ordering::SeqCst);
    [one, two].map(|mut client| {
        let answer = client.answer();
        (answer.status, answer.text())
    })
}

#[test]
fn ranges_that_are_asked_for_as_they_are_are_not_shared() {
    let of = |range: &str| format!("Range: bytes={range}\r\nX-Part: bytes={range}\r\n");
    // The first request shows Foxy that this origin does not send wider ranges.
    let [three, two] = together(&of("0-1"), &of("3-5"), &of("7-8"));
    assert_eq!(three, (206, "345".to_owned()));
    assert_eq!(two, (206, "78".to_owned()));
}

#[test]
fn a_range_of_another_version_is_not_taken_for_one_of_the_clients() {
    let range = "Range: bytes=2-4\r\n";
    let [plain, other] = together("", range, &format!("{range}If-Range: \"v0\"\r\n"));
    assert_eq!(plain, (206, "234".to_owned()));
    assert_eq!(other, (200, "0123456789".to_owned()));
}

#[test]
fn a_range_that_ends_beyond_what_was_fetched_for_another_is_not_cut_short() {
    let of = |range: &str, part: &str| format!("Range: bytes={range}\r\nX-Part: bytes={part}\r\n");
    let [first, second] = together("", &of("0-1", "0-3"), &of("2-6", "2-6"));
    assert_eq!(first, (206, "01".to_owned()));
    assert_eq!(second, (206, "23456".to_owned()));
    let [_, inside] = together("", &of("0-1", "0-3"), &of("2-3", "7-8"));
    assert_eq!(inside, (206, "23".to_owned()));
}

/// The client requests four bytes, and Foxy requests all ten bytes.
#[test]
fn a_client_that_has_its_part_is_done_before_the_fetch() {
    let open = Arc::new(AtomicBool::new(false));
    let (foxy, opened) = (Foxy::forward(), Arc::clone(&open));
    let origin = Origin::start(move |asked: &mut Asked| {
        if asked.path() == "/b" {
            asked.reply("200 OK", FIELDS, "b");
            return true;
        }
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\n{FIELDS}Content-Range: bytes 0-9/10\r\nContent-Length: 10\r\n\r\n"
        );
        asked.raw(head);
        asked.raw(&BODY[..5]);
        while !opened.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        asked.raw(&BODY[5..]);
        true
    });
    let mut client = foxy.connect();
    let mut get = |path: &str, fields: &str| {
        let to = origin.authority();
        client.send(format!(
            "GET http://{to}{path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"
        ));
        let answer = client.answer();
        (answer.status, answer.text())
    };
    assert_eq!(get("/a", "Range: bytes=0-3\r\n"), (206, "0123".to_owned()));
    assert_eq!(
        get("/b", ""),
        (200, "b".to_owned()),
        "before the rest comes"
    );
    open.store(true, Ordering::SeqCst);
    until(|| foxy.proxy.fills() == 0);
    assert_eq!(get("/a", "Range: bytes=5-8\r\n"), (206, "5678".to_owned()));
    assert_eq!(origin.asked(), 2, "the rest was stored");
}
