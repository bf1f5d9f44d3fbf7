//! Connections that end at awkward moments, in one or both directions, and clients that read slowly.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Client, Foxy, Origin, until};
use foxy_proxy::{Config, Event, Role};

const PLAIN: &str = "Cache-Control: no-store\r\n";

fn get(origin: &Origin, path: &str) -> String {
    let to = origin.authority();
    format!("GET http://{to}{path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

fn post(origin: &Origin, path: &str, length: usize) -> String {
    let to = origin.authority();
    format!("POST http://{to}{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n")
}

#[test]
fn an_origin_that_closes_between_requests_is_asked_on_a_new_connection() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        if asked.head.starts_with("POST") {
            asked.client.exactly(3);
        }
        asked.reply("200 OK", PLAIN, "x");
        false
    });
    let mut client = foxy.connect();
    for n in 1..=6 {
        // Foxy must not send a POST twice. So the POST succeeds only if Foxy has already noticed that the
        // origin has closed the pooled connection.
        if n % 2 == 0 {
            client.send(post(&origin, "/p", 3) + "abc");
        } else {
            client.send(get(&origin, "/g"));
        }
        assert_eq!(client.answer().status, 200, "{n}");
        until(|| origin.closed() == n);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(origin.asked(), 6);
    assert_eq!(origin.connections.load(Ordering::SeqCst), 6);
}

#[test]
fn a_request_that_changes_something_is_not_sent_twice() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| match asked.path() {
        "/first" => {
            asked.reply("200 OK", PLAIN, "x");
            true
        }
        // The origin reads the request and closes the connection.
        _ => false,
    });
    let mut client = foxy.connect();
    client.send(get(&origin, "/first"));
    assert_eq!(client.answer().status, 200);
    client.send(post(&origin, "/second", 0));
    assert_eq!(client.answer().status, 502);
    assert_eq!(origin.asked(), 2);
    // Foxy sends a request with an idempotent method a second time.
    let mut client = foxy.connect();
    client.send(get(&origin, "/first"));
    assert_eq!(client.answer().status, 200);
    client.send(get(&origin, "/third"));
    assert_eq!(client.answer().status, 502);
    assert_eq!(origin.asked(), 5);
}

#[test]
fn an_origin_that_half_closes_ends_its_answer_and_is_not_used_again() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        match asked.path() {
            "/length" => asked.reply("200 OK", PLAIN, "body"),
            _ => asked.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nbody"),
        }
        asked.client.stream.shutdown(Shutdown::Write).unwrap();
        asked.client.to_end();
        false
    });
    for (n, path) in ["/length", "/length", "/close"].into_iter().enumerate() {
        let answer = foxy.get(&origin, path);
        assert!(
            answer.whole && answer.text() == "body",
            "{path}: {answer:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(origin.connections.load(Ordering::SeqCst), n + 1);
    }
    assert!(foxy.get(&origin, "/close").cache().contains("memory-hit"));
}

#[test]
fn an_early_refusal_of_a_long_upload_reaches_the_client() {
    const LENGTH: usize = 40 << 20;
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        asked.reply("413 Content Too Large", "Connection: close\r\n", "no");
        // The origin accepts no more bytes, and closes the connection after a while.
        std::thread::sleep(Duration::from_millis(300));
        false
    });
    let mut client = foxy.connect();
    client.send(post(&origin, "/up", LENGTH));
    let mut sending = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let piece = vec![b'x'; 1 << 16];
        for _ in 0..LENGTH / piece.len() {
            if sending.write_all(&piece).is_err() {
                return false;
            }
        }
        true
    });
    // Foxy reads the complete upload, although it has already sent the answer. If Foxy closed the connection
    // while bytes are unread, a reset could remove the answer.
    assert!(sender.join().unwrap(), "the upload was taken");
    let answer = client.answer();
    assert_eq!((answer.status, answer.text().as_str()), (413, "no"));
    assert_eq!(answer.field("Connection"), Some("close"));
    assert!(client.to_end().is_empty());
}

#[test]
fn a_client_that_has_said_all_it_wants_to_say_is_answered() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let body = match asked.head.starts_with("POST") {
            true => asked.client.exactly(5),
            false => b"slow".to_vec(),
        };
        std::thread::sleep(Duration::from_millis(200));
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", body);
        true
    });
    for (request, expected) in [
        (get(&origin, "/a"), "slow"),
        (get(&origin, "/a"), "slow"),
        (post(&origin, "/b", 5) + "hello", "hello"),
    ] {
        let mut client = foxy.connect();
        client.send(request);
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.answer().text(), expected);
        assert!(client.to_end().is_empty());
    }
}

#[test]
fn pipelined_requests_before_a_fin_are_all_answered() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let path = asked.path().to_owned();
        std::thread::sleep(Duration::from_millis(20));
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", path);
        true
    });
    let paths = ["/1", "/2", "/1", "/3", "/2"];
    let mut client = foxy.connect();
    client.send(paths.map(|path| get(&origin, path)).concat());
    client.stream.shutdown(Shutdown::Write).unwrap();
    for path in paths {
        assert_eq!(client.answer().text(), path);
    }
    assert!(client.to_end().is_empty());
    assert_eq!(origin.asked(), 3);
}

/// An origin that sends 64 MiB as fast as it can, and counts the sent bytes.
fn firehose(fields: &'static str) -> (Origin, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let origin = Origin::start(move |asked| {
        let length = 64 << 20;
        asked.raw(format!(
            "HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n"
        ));
        let piece = vec![b'x'; 1 << 16];
        for _ in 0..length / piece.len() {
            if asked.client.stream.write_all(&piece).is_err() {
                return false;
            }
            count.fetch_add(piece.len(), Ordering::SeqCst);
        }
        true
    });
    (origin, sent)
}

#[test]
fn a_slow_reader_slows_its_origin_down_and_memory_stays_bounded() {
    for fields in [PLAIN, "Cache-Control: max-age=60\r\n"] {
        let mut config = Config::default();
        config.fill.window = 1 << 20;
        config.fill.memory = 4 << 20;
        let foxy = Foxy::start(Role::Forward, config, 1);
        let (origin, sent) = firehose(fields);
        let mut client = Client::to(foxy.addr);
        client.send(get(&origin, "/slow"));
        let mut piece = [0; 1024];
        // The client reads about 10 KB/s.
        for _ in 0..10 {
            assert!(client.stream.read(&mut piece).unwrap() > 0);
            std::thread::sleep(Duration::from_millis(100));
            assert!(foxy.proxy.fill_bytes() <= 4 << 20);
        }
        let sent = sent.load(Ordering::SeqCst);
        // The limit is large enough for the fetch's window (buffer), the bytes of a small object, and the
        // socket buffers on both sides.
        assert!(sent < 24 << 20, "{sent} bytes were taken from the origin");
        assert_eq!(foxy.proxy.totals().event(Event::Aborted), 0);
        drop(client);
        // After the client has left, its fill ends.
        until(|| foxy.proxy.connections() + foxy.proxy.fills() == 0);
    }
}
