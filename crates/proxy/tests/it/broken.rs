//! Truncated messages, endless heads, and fields that are too long for a record.

use std::io::{ErrorKind, Read as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Answer, Foxy, Origin, until};
use foxy_proxy::{Config, Limits, Role, Timeouts};

/// Sends a POST whose chunked body is exactly this text, which may be invalid.
fn post(foxy: &Foxy, origin: &Origin, body: &str) -> Answer {
    let to = origin.authority();
    let mut client = foxy.connect();
    client.send(format!(
        "POST http://{to}/ HTTP/1.1\r\nHost: {to}\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
    ));
    client.answer_to("POST")
}

/// Reads the chunked body of a request to its end, and then answers.
fn read_all(asked: &mut crate::common::Asked) -> bool {
    loop {
        match &asked.client.line()[..] {
            "" => return false,
            "0\r\n" => break,
            _ => {}
        }
    }
    while asked.client.line().len() > 2 {}
    asked.reply("200 OK", "", "read");
    true
}

#[test]
fn broken_chunking_in_a_request_is_answered() {
    let foxy = Foxy::forward();
    let origin = Origin::start(read_all);
    assert_eq!(
        post(&foxy, &origin, "1\r\na\r\n0\r\nX: 1\r\n\r\n").text(),
        "read"
    );
    for (body, reason) in [
        ("g\r\n", "bad-chunk-size"),
        ("-1\r\na\r\n", "bad-chunk-size"),
        ("1\na\r\n0\r\n\r\n", "bare-lf"),
        ("1\r\nab\r\n0\r\n\r\n", "bad-chunk-end"),
        ("1\r\na\r\n\r\n", "bad-chunk-size"),
        ("1;\x01\r\na\r\n0\r\n\r\n", "bad-chunk-extension"),
        ("1\r\na\r\n0\r\nno colon\r\n\r\n", "bad-field"),
        ("1\r\na\r\n0\r\nX : 1\r\n\r\n", "space-before-colon"),
        ("1\r\na\r\n0\r\nX: 1\r\n y\r\n\r\n", "obs-fold"),
    ] {
        let answer = post(&foxy, &origin, body);
        assert_eq!(answer.status, 400, "{body:?}: {answer:?}");
        assert!(answer.text().contains(reason), "{body:?}: {answer:?}");
        assert_eq!(answer.field("Connection"), Some("close"));
    }
}

#[test]
fn an_answer_that_has_begun_is_not_followed_by_another() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        asked.raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegin");
        asked.client.to_end();
        false
    });
    let to = origin.authority();
    let mut client = foxy.connect();
    client.send(format!(
        "POST http://{to}/ HTTP/1.1\r\nHost: {to}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    assert!(client.head().starts_with("HTTP/1.1 200 "));
    assert_eq!(client.exactly(5), b"begin");
    client.send("zz\r\n");
    assert_eq!(client.to_end(), b"");
}

#[test]
fn an_answer_with_a_broken_trailer_section_is_neither_whole_nor_stored() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let trailers = match asked.path() {
            "/colon" => "no colon\r\n",
            "/fold" => "X: 1\r\n y\r\n",
            _ => "X: 1\r\n",
        };
        asked.raw(format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nwhole\r\n0\r\n{trailers}\r\n"
        ));
        true
    });
    for path in ["/colon", "/fold"] {
        for _ in 0..2 {
            let answer = foxy.get(&origin, path);
            assert_eq!((answer.status, answer.whole), (200, false), "{answer:?}");
            assert!(answer.cache().contains("uri-miss"), "{answer:?}");
        }
    }
    assert!(foxy.get(&origin, "/right").whole);
    assert!(foxy.get(&origin, "/right").cache().contains("memory-hit"));
}

#[test]
fn interim_answers_without_end_are_an_error() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let count = if asked.path() == "/few" { 32 } else { 33 };
        for _ in 0..count {
            asked.raw("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        }
        asked.reply("200 OK", "", "at last");
        true
    });
    let to = origin.authority();
    for method in ["GET", "POST", "HEAD"] {
        for (path, status) in [("/few", 200), ("/many", 502)] {
            for version in ["1.0", "1.1"] {
                let mut client = foxy.connect();
                client.send(format!(
                    "{method} http://{to}{path} HTTP/{version}\r\nHost: {to}\r\n\r\n"
                ));
                let answer = client.answer_to(method);
                assert_eq!(answer.status, status, "{method} {path} {version}");
            }
        }
    }
    let logged = foxy.logged();
    assert!(
        logged
            .iter()
            .any(|line| line.contains("502 too-many-interim")),
        "{logged:?}"
    );
}

#[test]
fn interim_answers_are_no_sign_of_life() {
    let timeouts = Timeouts {
        first_byte: Duration::from_millis(250),
        ..Timeouts::default()
    };
    let config = Config {
        timeouts,
        ..Config::default()
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    // Each interim head arrives less than the time limit after the previous head. But the final head arrives
    // after the time limit.
    let origin = Origin::start(|asked| {
        for _ in 0..30 {
            asked.raw("HTTP/1.1 102 Processing\r\n\r\n");
            std::thread::sleep(Duration::from_millis(200));
        }
        asked.reply("200 OK", "", "at last");
        true
    });
    for method in ["GET", "HEAD"] {
        let to = origin.authority();
        let mut client = foxy.connect();
        client.send(format!(
            "{method} http://{to}/ HTTP/1.1\r\nHost: {to}\r\n\r\n"
        ));
        assert_eq!(client.answer_to(method).status, 504);
    }
}

#[test]
fn a_field_longer_than_a_record_can_hold_passes_unstored() {
    let config = Config {
        limits: Limits {
            head_bytes: 1 << 20,
            ..Limits::default()
        },
        ..Config::default()
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    let long = "x".repeat(70_000);
    let sent = long.clone();
    let origin = Origin::start(move |asked| {
        let fields = format!("Cache-Control: max-age=60\r\nX-Long: {sent}\r\nX-After: 1\r\n");
        asked.reply("200 OK", &fields, "body");
        true
    });
    for _ in 0..2 {
        let answer = foxy.get(&origin, "/");
        assert_eq!((answer.status, &answer.text()[..]), (200, "body"));
        assert_eq!(answer.field("X-Long"), Some(&long[..]));
        assert_eq!(answer.field("X-After"), Some("1"));
        let cache = answer.cache();
        assert!(
            cache.contains("uri-miss") && cache.contains("field-too-large"),
            "{cache}"
        );
    }
}

/// An HTTP/1.0 client takes the end of the connection for the end of the body. So if the body is truncated,
/// Foxy must end the connection by a reset.
#[test]
fn a_body_that_ends_with_the_connection_and_is_cut_ends_by_a_reset() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        asked.client.send(format!("{head}5\r\nhello\r\n"));
        false
    });
    // The answer to GET comes from a fill (a shared fetch). POST bypasses the cache.
    for request in ["GET", "POST"] {
        let mut client = foxy.connect();
        let to = origin.authority();
        let length = "Content-Length: 0";
        client.send(format!(
            "{request} http://{to}/ HTTP/1.0\r\nHost: {to}\r\n{length}\r\n\r\n"
        ));
        let mut answer = Vec::new();
        let end = client.stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let reset = end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
        assert!(reset, "{request}: an orderly end after {text:?}");
    }
}

/// The origin sends nothing more, and the client has closed its sending side. So Foxy gives up and ends the
/// connection to the client. It does this by a reset, because the client may still read, and must not take
/// the received part for the complete body.
#[test]
fn a_half_closed_client_does_not_take_a_part_for_the_whole() {
    let foxy = Foxy::forward();
    let done = Arc::new(AtomicBool::new(false));
    let silent = Arc::clone(&done);
    let origin = Origin::start(move |asked| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        asked.client.send(format!("{head}5\r\nhello\r\n"));
        until(|| silent.load(Ordering::SeqCst));
        false
    });
    let mut client = foxy.connect();
    let to = origin.authority();
    client.send(format!("GET http://{to}/ HTTP/1.0\r\nHost: {to}\r\n\r\n"));
    client.stream.shutdown(Shutdown::Write).unwrap();
    let end = client.stream.read_to_end(&mut Vec::new());
    done.store(true, Ordering::SeqCst);
    let reset = end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
    assert!(reset, "an orderly end");
}
