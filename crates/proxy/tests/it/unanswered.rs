//! Requests that the origin does not answer. An unsafe request such as POST still invalidates its URL. HEAD
//! gets the same answer as GET. Stale answers are used while an origin cannot be reached.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use foxy_proxy::Event;

use crate::common::{Answer, Asked, Client, Foxy, Origin, until};

/// An origin that sends a storable answer to GET, and closes the connection for any other method.
fn silent() -> Origin {
    Origin::start(|asked| {
        if asked.head.starts_with("GET") {
            let fields =
                "Cache-Control: max-age=60, stale-if-error=600\r\nETag: \"a\"\r\nVary: Accept\r\n";
            asked.reply("200 OK", fields, "body");
            return true;
        }
        false
    })
}

fn url(origin: &Origin) -> String {
    format!("http://{}/x", origin.authority())
}

#[test]
fn an_unsafe_request_without_an_answer_forgets_its_url() {
    for (method, body) in [
        ("POST", "Content-Length: 3\r\n\r\nabc"),
        (
            "POST",
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        ("PUT", "Content-Length: 0\r\n\r\n"),
        ("DELETE", "\r\n"),
        ("PATCH", "Content-Length: 3\r\n\r\nabc"),
        ("FROBNICATE", "\r\n"),
    ] {
        let (foxy, origin) = (Foxy::forward(), silent());
        foxy.get(&origin, "/x");
        assert!(foxy.stored(&origin, "/x").is_some());
        let sent = foxy.ask(&format!(
            "{method} {} HTTP/1.1\r\nHost: x\r\n{body}",
            url(&origin)
        ));
        assert_eq!(sent.status, 502, "{method}");
        assert!(foxy.stored(&origin, "/x").is_none(), "{method}");
        let before = origin.asked();
        let get = foxy.get_with(&origin, "/x", "Cache-Control: max-stale\r\n");
        assert_eq!((get.status, origin.asked()), (200, before + 1), "{method}");
    }
}

#[test]
fn an_unsafe_request_whose_client_leaves_forgets_its_url() {
    let (foxy, origin) = (Foxy::forward(), silent());
    foxy.get(&origin, "/x");
    let mut client = foxy.connect();
    client.send(format!(
        "POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this",
        url(&origin)
    ));
    drop(client);
    until(|| foxy.stored(&origin, "/x").is_none());
}

#[test]
fn a_safe_request_and_one_that_reached_nobody_forget_nothing() {
    let (foxy, origin) = (Foxy::forward(), silent());
    foxy.get(&origin, "/x");
    let sent = foxy.ask(&format!(
        "REPORT {} HTTP/1.1\r\nHost: x\r\n\r\n",
        url(&origin)
    ));
    assert_eq!(sent.status, 502);
    assert!(foxy.stored(&origin, "/x").is_some());
    // An origin that answers once and then disappears.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let once = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        let mut client = Client::of(stream);
        client.head();
        let text = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
        client.stream.write_all(text.as_bytes()).unwrap();
    });
    let at = format!("http://origin.test:{port}/x");
    let get = || foxy.ask(&format!("GET {at} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(get().status, 200);
    once.join().unwrap();
    let post = foxy.ask(&format!(
        "POST {at} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
    ));
    assert_eq!(post.status, 502);
    assert_eq!(get().status, 200, "the origin never heard of it");
}

/// An origin that answers normally while `status` is 200. If `status` is 0, the origin does not answer. Any
/// other value is the status of an error, with which the origin answers.
fn failing(control: &'static str) -> (Origin, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(200));
    let now = Arc::clone(&status);
    let origin = Origin::start(move |asked: &mut Asked| match now.load(Ordering::SeqCst) {
        200 => {
            let fields = format!("Cache-Control: {control}\r\nETag: \"a\"\r\n");
            asked.reply("200 OK", &fields, "0123456789");
            true
        }
        0 => false,
        status => {
            asked.raw(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n"));
            true
        }
    });
    (origin, status)
}

fn ask(foxy: &Foxy, origin: &Origin, method: &str, fields: &str) -> Answer {
    let mut client = foxy.connect();
    client.send(format!(
        "{method} {} HTTP/1.1\r\nHost: x\r\n{fields}\r\n",
        url(origin)
    ));
    client.answer_to(method)
}

#[test]
fn a_head_gets_what_get_gets_while_the_origin_fails() {
    for (control, fields, failure, expected) in [
        ("max-age=10", "", 0, 200),
        ("max-age=10", "If-None-Match: \"a\"\r\n", 0, 304),
        ("max-age=10, must-revalidate", "", 0, 0),
        ("max-age=10, stale-if-error=600", "", 503, 200),
        (
            "max-age=10, stale-if-error=600",
            "If-None-Match: \"a\"\r\n",
            500,
            304,
        ),
        ("max-age=10, stale-if-error=600", "", 404, 404),
        (
            "max-age=10, stale-if-error=600, must-revalidate",
            "",
            503,
            503,
        ),
    ] {
        let (foxy, (origin, status)) = (Foxy::forward(), failing(control));
        assert_eq!(ask(&foxy, &origin, "GET", "").text(), "0123456789");
        foxy.clock.advance(Duration::from_secs(20));
        status.store(failure, Ordering::SeqCst);
        let head = ask(&foxy, &origin, "HEAD", fields);
        let get = ask(&foxy, &origin, "GET", fields);
        assert_eq!(head.status, get.status, "{control} {failure}");
        if expected != 0 {
            assert_eq!(head.status, expected, "{control} {failure}");
        }
        for name in ["Age", "ETag"] {
            assert_eq!(head.field(name), get.field(name), "{control} {failure}");
        }
    }
}

#[test]
fn what_can_be_served_stale_does_not_wait_again_for_an_origin_out_of_reach() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"a\"\r\nConnection: close\r\n";
        asked.reply("200 OK", fields, "old");
        false
    });
    let port = origin.addr.port();
    let ask = |method: &str, path: &str, fields: &str| {
        let mut client = foxy.connect();
        client.send(format!(
            "{method} http://lost.test:{port}{path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"
        ));
        client.answer_to(method)
    };
    let is_stale = |answer: &Answer| answer.cache().contains("hit-on-error");
    let lookups = || foxy.proxy.totals().event(Event::DnsLookups);
    let seconds = |n| foxy.clock.advance(Duration::from_secs(n));
    assert_eq!(ask("GET", "/s", "").status, 200);
    seconds(100);
    // The first request waits nine seconds for the name servers. Foxy remembers this failure for three times
    // as long. So for the next 27 s, other requests with a stale answer do not wait, although the name cache
    // forgets the failure after one second.
    for method in ["GET", "GET", "HEAD", "GET"] {
        assert!(is_stale(&ask(method, "/s", "")), "{method}");
        assert_eq!(lookups(), 2, "{method}");
        seconds(2);
    }
    // The name servers are asked again for a request without a stale answer, and for a request that forbids
    // stale answers.
    assert_eq!(ask("GET", "/other", "").status, 503);
    assert_eq!(lookups(), 3);
    seconds(2);
    assert_eq!(ask("GET", "/s", "Cache-Control: no-cache\r\n").status, 503);
    assert_eq!(lookups(), 4);
    seconds(28);
    assert!(is_stale(&ask("GET", "/s", "")));
    assert_eq!(lookups(), 5);
    // As soon as one request has reached the origin, all requests are sent to the origin again.
    seconds(2);
    assert!(is_stale(&ask("GET", "/s", "")));
    assert_eq!(ask("GET", "/other", "").status, 200);
    assert_eq!(lookups(), 6);
    let asked = origin.asked();
    assert!(!is_stale(&ask("GET", "/s", "")));
    assert_eq!(origin.asked(), asked + 1);
}
