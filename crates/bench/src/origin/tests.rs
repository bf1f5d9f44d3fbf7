//! Tests of the origin over real sockets: bodies, the settings in URLs (knobs), ranges, counters.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use foxy_base::SystemClock;

use super::*;
use crate::Identity;

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

fn origin(config: OriginConfig) -> Origin {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Origin::start(OriginConfig { listen, ..config }, &clock()).unwrap()
}

/// Sends `text` and reads to the end of the connection.
fn ask(origin: &Origin, text: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A connection that was cut on purpose may end with a reset.
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn body(answer: &[u8]) -> &[u8] {
    let at = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    &answer[at + 4..]
}

#[test]
fn bodies_are_as_the_generator_says() {
    let origin = origin(OriginConfig::default());
    let answer = ask(
        &origin,
        "GET /o/3?s=200000&v=2 HTTP/1.0\r\nHost: 127.0.0.1:1\r\n\r\n",
    );
    let identity = Identity {
        host: b"127.0.0.1",
        id: 3,
        version: 2,
        size: 200_000,
    };
    assert_eq!(body(&answer).len(), 200_000);
    assert_eq!(identity.key().check(0, body(&answer)), Ok(()));
    let part = ask(
        &origin,
        "GET /o/3?s=200000&v=2 HTTP/1.0\r\nHost: 127.0.0.1\r\nRange: bytes=100001-100099\r\n\r\n",
    );
    assert_eq!(body(&part).len(), 99);
    assert_eq!(identity.key().check(100_001, body(&part)), Ok(()));
    let counters = origin.counters();
    assert_eq!(
        (counters.requests, counters.ok, counters.partial),
        (2, 1, 1)
    );
    assert_eq!(counters.bytes, 200_099);
}

#[test]
fn pipelined_requests_uploads_and_counters() {
    let origin = origin(OriginConfig {
        threads: 2,
        ..OriginConfig::default()
    });
    let answer = ask(
        &origin,
        "POST /o/1?s=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\
         POST /o/1?s=1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
         GET /nothing HTTP/1.1\r\n\r\n\
         GET /__counters HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    let text = String::from_utf8_lossy(&answer);
    assert_eq!(text.matches("HTTP/1.1 200").count(), 3);
    let json = text.rsplit("\r\n\r\n").next().unwrap();
    let counters = parse_counters(json.as_bytes()).unwrap();
    assert_eq!((counters.requests, counters.received), (3, 8));
    assert_eq!((counters.client_errors, counters.connections), (1, 1));
    assert!(String::from_utf8_lossy(&ask(&origin, "x\r\n\r\n")).starts_with("HTTP/1.1 400"));
}

#[test]
fn misbehaves_on_demand() {
    let origin = origin(OriginConfig::default());
    let get = |url: &str| ask(&origin, &format!("GET {url} HTTP/1.0\r\nHost: h\r\n\r\n"));
    assert_eq!(body(&get("/o/1?s=1000&d=10")).len(), 10);
    assert_eq!(body(&get("/o/1?s=1000&f=10")).len(), 1000);
    assert!(get("/o/1?s=5&st=404").starts_with(b"HTTP/1.1 404"));
    let chunked = get("/o/1?s=70000&c=1");
    assert!(chunked.ends_with(b"\r\n0\r\n\r\n"));
    assert_eq!(
        body(&get("/o/1?s=100&c=1&d=50")).len(),
        "32\r\n\r\n".len() + 50
    );
    let clock = SystemClock::default();
    let start = clock.mono();
    assert_eq!(body(&get("/o/1?s=100&l=60")).len(), 100);
    assert_eq!(body(&get("/o/1?s=1000&b=10000")).len(), 1000);
    // The first of these two answers has a latency of 60 ms. The second answer has 1000 bytes at 10 kB/s, and
    // takes only 50 ms, because no pause follows the last 500 bytes.
    assert!(clock.mono().since(start) >= Duration::from_millis(60 + 50));
    assert_eq!(origin.counters().broken, 2);
}
