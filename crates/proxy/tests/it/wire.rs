//! Bodies, tunnels and faults, on real sockets.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Client, Foxy, Origin, until};
use foxy_proxy::{Config, Event, Role, Site};

fn url(origin: &Origin, path: &str) -> String {
    format!("http://{}{path}", origin.authority())
}

#[test]
fn chunked_bodies_keep_their_trailers_both_ways() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let mut answer = String::new();
        let mut line = asked.client.line();
        while line != "0\r\n" {
            answer += &line;
            line = asked.client.line();
        }
        answer += &asked.client.line();
        asked.client.line();
        let body = answer.replace("\r\n", "|");
        asked.raw(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n{:x}\r\n{body}\r\n0\r\nX-Sum: 7\r\n\r\n",
            body.len()
        ));
        true
    });
    let mut client = foxy.connect();
    let to = url(&origin, "/c");
    for _ in 0..2 {
        client.send(format!(
            "POST {to} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
        ));
        client.send("2;ext=1\r\nde\r\n0\r\nX-Up: 1\r\n\r\n");
        let answer = client.answer();
        assert!(
            answer.text().contains("abc|") && answer.text().contains("de|"),
            "{answer:?}"
        );
        assert!(answer.text().contains("X-Up: 1|"), "{answer:?}");
        assert_eq!(answer.field("X-Sum"), Some("7"));
    }
    assert_eq!(origin.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn a_client_that_expects_100_gets_it_from_the_origin() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        if asked.path() == "/no" {
            asked.reply("417 Expectation Failed", "", "no");
            return false;
        }
        assert_eq!(asked.field("Expect"), Some("100-continue"));
        asked.raw("HTTP/1.1 100 Continue\r\n\r\n");
        let body = asked.client.exactly(5);
        asked.reply("200 OK", "", body);
        true
    });
    let mut client = foxy.connect();
    let fields = "Host: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    client.send(format!("PUT {} HTTP/1.1\r\n{fields}", url(&origin, "/yes")));
    assert!(client.head().starts_with("HTTP/1.1 100 "));
    client.send("hello");
    assert_eq!(client.answer().text(), "hello");
    client.send(format!("PUT {} HTTP/1.1\r\n{fields}", url(&origin, "/no")));
    let refused = client.answer();
    assert_eq!(refused.status, 417);
    assert_eq!(refused.field("Connection"), Some("close"));
}

#[test]
fn early_hints_are_passed_on() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        asked.raw("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", "page");
        true
    });
    let mut client = foxy.connect();
    client.send(format!(
        "GET {} HTTP/1.1\r\nHost: x\r\n\r\n",
        url(&origin, "/")
    ));
    let hints = client.head();
    assert!(
        hints.starts_with("HTTP/1.1 103 ") && hints.contains("Link: </a.css>"),
        "{hints}"
    );
    assert_eq!(client.answer().text(), "page");
}

#[test]
fn a_tunnel_carries_bytes_both_ways_to_permitted_ports_only() {
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = echo.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = echo.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let mut config = Config::default();
    config.access.connect_ports = vec![port];
    let foxy = Foxy::start(Role::Forward, config, 1);
    let mut client = foxy.connect();
    client.send(format!(
        "CONNECT origin.test:{port} HTTP/1.1\r\nHost: x\r\n\r\nfirst "
    ));
    assert!(client.head().starts_with("HTTP/1.1 200 "));
    client.send("second");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.to_end(), b"first second");
    let refused = foxy.ask("CONNECT origin.test:25 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("connect-port"));
}

#[test]
fn a_websocket_is_upgraded() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        assert_eq!(asked.field("Upgrade"), Some("websocket"));
        asked.raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi ");
        let heard = asked.client.exactly(4);
        asked.raw(heard);
        false
    });
    let mut client = foxy.connect();
    let to = url(&origin, "/ws");
    client.send(format!(
        "GET {to} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nping"
    ));
    let head = client.head();
    assert!(
        head.starts_with("HTTP/1.1 101 ") && head.contains("Upgrade: websocket"),
        "{head}"
    );
    assert_eq!(client.to_end(), b"hi ping");
}

#[test]
fn twenty_clients_make_one_request() {
    let foxy = Foxy::start(Role::Forward, Config::default(), 2);
    let origin = Origin::start(|asked| {
        std::thread::sleep(Duration::from_millis(300));
        asked.reply(
            "200 OK",
            "Cache-Control: max-age=60\r\n",
            vec![b'x'; 100_000],
        );
        true
    });
    let to = url(&origin, "/shared");
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let (to, addr) = (to.clone(), foxy.addr);
            std::thread::spawn(move || {
                let mut client = Client::to(addr);
                client.send(format!("GET {to} HTTP/1.1\r\nHost: x\r\n\r\n"));
                client.answer().body.len()
            })
        })
        .collect();
    for client in clients {
        assert_eq!(client.join().unwrap(), 100_000);
    }
    assert_eq!(origin.asked(), 1);
}

#[test]
fn a_truncated_answer_is_neither_whole_nor_stored() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        match asked.path() {
            "/length" => asked.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\nshort"),
            _ => asked.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"),
        }
        false
    });
    for path in ["/length", "/chunked"] {
        for n in 1..=2 {
            let answer = foxy.get(&origin, path);
            assert_eq!(
                (answer.status, answer.whole),
                (200, false),
                "{path} {n}: {answer:?}"
            );
        }
        until(|| foxy.proxy.fills() == 0);
        // The received bytes are not stored as a part of the object either, because no validator identifies
        // their version.
        assert!(foxy.stored(&origin, path).is_none(), "{path}");
    }
    assert_eq!(origin.asked(), 4);
}

#[test]
fn the_rest_is_fetched_by_range_when_the_validator_is_strong() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        if asked.field("Range") == Some("bytes=5-9") {
            assert_eq!(asked.field("If-Range"), Some("\"s\""));
            asked.reply(
                "206 Partial Content",
                "ETag: \"s\"\r\nContent-Range: bytes 5-9/10\r\n",
                "56789",
            );
            return true;
        }
        asked.raw("HTTP/1.1 200 OK\r\nETag: \"s\"\r\nContent-Length: 10\r\n\r\n01234");
        false
    });
    let answer = foxy.get(&origin, "/r");
    assert!(answer.whole);
    assert_eq!(answer.text(), "0123456789");
}

/// The origin truncates its answer in the middle of a part.
#[test]
fn the_rest_of_a_part_is_fetched_by_range_when_the_validator_is_strong() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let rest = match asked.field("Range") {
            Some("bytes=2-7") => false,
            Some("bytes=5-7") => true,
            other => panic!("{other:?}"),
        };
        if rest {
            assert_eq!(asked.field("If-Range"), Some("\"s\""));
            let of = if asked.path() == "/r" { "10" } else { "11" };
            let fields = format!("ETag: \"s\"\r\nContent-Range: bytes 5-7/{of}\r\n");
            asked.reply("206 Partial Content", &fields, "567");
            return true;
        }
        asked.raw(
            "HTTP/1.1 206 Partial Content\r\nETag: \"s\"\r\nContent-Range: bytes 2-7/10\r\n\
             Content-Length: 6\r\n\r\n234",
        );
        false
    });
    let part = "Range: bytes=2-7\r\nCache-Control: no-store\r\n";
    let answer = foxy.get_with(&origin, "/r", part);
    assert_eq!((answer.status, answer.whole), (206, true));
    assert_eq!(answer.text(), "234567");
    // If the Content-Range of the rest contains a different total length, the rest does not belong to the
    // same body.
    let answer = foxy.get_with(&origin, "/other", part);
    assert_eq!((&*answer.text(), answer.whole), ("234", false));
}

#[test]
fn nonsense_from_the_origin_is_a_502() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        match asked.path() {
            "/garbage" => asked.raw("SSH-2.0-nonsense\r\n\r\n"),
            "/both" => asked
                .raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "/fold" => asked.raw("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"),
            "/upgrade" => asked.raw(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
            ),
            _ => {}
        }
        false
    });
    for path in ["/garbage", "/both", "/fold", "/upgrade", "/silence"] {
        assert_eq!(foxy.get(&origin, path).status, 502, "{path}");
    }
    assert_eq!(
        foxy.ask("GET http://nowhere.test/ HTTP/1.1\r\nHost: x\r\n\r\n")
            .status,
        502
    );
    assert_eq!(
        foxy.ask("GET http://metadata.test/ HTTP/1.1\r\nHost: x\r\n\r\n")
            .status,
        403
    );
}

#[test]
fn an_origin_that_never_answers_is_a_504() {
    let mut config = Config::default();
    config.timeouts.first_byte = Duration::from_millis(250);
    let foxy = Foxy::start(Role::Forward, config, 1);
    let origin = Origin::start(|asked| {
        asked.client.to_end();
        false
    });
    assert_eq!(foxy.get(&origin, "/").status, 504);
}

#[test]
fn silent_clients_are_answered_408_and_idle_ones_closed() {
    let mut config = Config::default();
    config.timeouts.head = Duration::from_millis(250);
    config.timeouts.idle = Duration::from_millis(250);
    let foxy = Foxy::start(Role::Forward, config, 1);
    let mut slow = foxy.connect();
    slow.send("GET http://origin.test/ HT");
    assert_eq!(slow.answer().status, 408);
    assert!(foxy.connect().to_end().is_empty());
}

#[test]
fn smuggling_is_refused_and_the_connection_closed() {
    let foxy = Foxy::forward();
    let get = "GET http://origin.test/ HTTP/1.1\r\n";
    let post = "POST http://origin.test/ HTTP/1.1\r\nHost: x\r\n";
    for (request, status) in [
        (format!("{get}Host: a\nX: y\r\n\r\n"), 400),
        (format!("{get}Host: a\r\nHost: b\r\n\r\n"), 400),
        (format!("{get}\r\n"), 400),
        (format!("{get}Host: a\r\nX: y\r\n folded\r\n\r\n"), 400),
        (format!("{get}Host: a\r\nX : y\r\n\r\n"), 400),
        (
            format!("{post}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            400,
        ),
        (format!("{post}Content-Length: 5, 5\r\n\r\n"), 400),
        (format!("{post}Content-Length: +5\r\n\r\n"), 400),
        (
            format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n"),
            501,
        ),
        (
            format!("{get}Host: a\r\nX: {}\r\n\r\n", "y".repeat(70_000)),
            431,
        ),
        (
            format!(
                "GET http://origin.test/{} HTTP/1.1\r\nHost: a\r\n\r\n",
                "y".repeat(20_000)
            ),
            414,
        ),
        (
            "GET http://origin.test/ HTTP/2.0\r\nHost: a\r\n\r\n".into(),
            505,
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n".into(), 400),
        ("\u{16}\u{3}\u{1}".into(), 400),
    ] {
        let mut client = foxy.connect();
        client.send(&request);
        let answer = client.answer();
        let shown = &request[..request.len().min(100)];
        assert_eq!(answer.status, status, "{shown:?}: {answer:?}");
        if status != 400 || !shown.starts_with("GET / ") {
            assert_eq!(answer.field("Connection"), Some("close"), "{shown:?}");
            assert!(client.to_end().is_empty(), "{shown:?}");
        }
    }
}

#[test]
fn a_client_that_leaves_does_not_harm_the_others() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        asked.raw(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 20\r\n\r\n0123456789",
        );
        std::thread::sleep(Duration::from_millis(300));
        asked.raw("0123456789");
        true
    });
    let to = url(&origin, "/left");
    let mut leaves = foxy.connect();
    leaves.send(format!("GET {to} HTTP/1.1\r\nHost: x\r\n\r\n"));
    leaves.head();
    let mut stays = foxy.connect();
    stays.send(format!("GET {to} HTTP/1.1\r\nHost: x\r\n\r\n"));
    stays.head();
    drop(leaves);
    assert_eq!(stays.exactly(20).len(), 20);
    assert_eq!(origin.asked(), 1);
}

#[test]
fn pipelined_requests_and_http_10_are_served() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        asked.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        true
    });
    let to = url(&origin, "/p");
    let one = format!("GET {to} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut client = foxy.connect();
    client.send(one.repeat(5));
    for _ in 0..5 {
        assert_eq!(client.answer().text(), "abc");
    }
    let mut old = foxy.connect();
    old.send(format!("GET {} HTTP/1.0\r\n\r\n", url(&origin, "/new")));
    let answer = old.answer();
    assert_eq!(
        (answer.text().as_str(), answer.field("Transfer-Encoding")),
        ("abc", None)
    );
}

#[test]
fn a_site_serves_its_own_origin_in_its_own_partition() {
    let origin = Origin::start(|asked| {
        let host = asked.field("Host").unwrap_or_default().to_owned();
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", host);
        true
    });
    let site = Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        ..Site::default()
    };
    let foxy = Foxy::start(Role::Site(site), Config::default(), 1);
    for _ in 0..2 {
        let got = foxy.ask("GET /x HTTP/1.1\r\nHost: public.test\r\n\r\n");
        assert_eq!(got.text(), origin.addr.to_string());
    }
    assert_eq!(origin.asked(), 1);
}

#[test]
fn a_dead_pooled_connection_is_replaced() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        asked.reply("200 OK", "Cache-Control: no-store\r\n", "x");
        // According to the answer, the connection stays open for another request. But the origin closes it
        // shortly afterwards.
        std::thread::sleep(Duration::from_millis(50));
        false
    });
    for _ in 0..5 {
        assert_eq!(foxy.get(&origin, "/d").status, 200);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_long_uncacheable_body_passes_and_a_slow_reader_does_not_hold_others_back() {
    const LEN: usize = 24 << 20;
    let mut config = Config::default();
    config.fill.lag = Duration::from_secs(1);
    config.fill.window = 256 << 10;
    let foxy = Foxy::start(Role::Forward, config, 1);
    let both = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&both);
    let whole: Vec<u8> = (0..LEN).map(|i| (i / 4096) as u8).collect();
    let origin = Origin::start(move |asked| {
        match asked.field("Range").and_then(|r| r.strip_prefix("bytes=")) {
            Some(range) => {
                let from: usize = range.split('-').next().unwrap().parse().unwrap();
                let fields = format!("ETag: \"s\"\r\nContent-Range: bytes {range}/{LEN}\r\n");
                asked.reply("206 Partial Content", &fields, &whole[from..]);
            }
            None => {
                let fields = "ETag: \"s\"\r\nCache-Control: max-age=60\r\n";
                // The origin sends its answer only after the second client has joined the fetch.
                until(|| seen.load(Ordering::SeqCst));
                asked.reply("200 OK", fields, &whole);
            }
        }
        true
    });
    let to = url(&origin, "/big");
    let mut slow = foxy.connect();
    slow.send(format!("GET {to} HTTP/1.1\r\nHost: x\r\n\r\n"));
    until(|| origin.asked() == 1);
    let mut fast = foxy.connect();
    fast.send(format!("GET {to} HTTP/1.1\r\nHost: x\r\n\r\n"));
    foxy.counts(Event::Followers, 1);
    both.store(true, Ordering::SeqCst);
    let got = fast.answer();
    assert!(got.whole && got.body.len() == LEN);
    assert!(foxy.proxy.fill_bytes() <= 64 << 20);
    let late = slow.answer();
    assert!(late.whole && late.body == got.body, "it goes on by itself");
    assert_eq!(origin.asked(), 2);
}
