//! Origins that use TLS: handshakes, checks of certificates, and the same answers as over plain connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::common::tls::{Authority, Front, Made, Manner};
use crate::common::{Answer, Foxy, Origin};
use foxy_proxy::{Config, Event, Role, Site, UpstreamConfig};
use foxy_tls::{OriginOptions, OriginTls};
use rcgen::date_time_ymd;
use socket2::SockRef;

fn config(tls: OriginTls) -> Config {
    let mut config = Config {
        upstream: UpstreamConfig {
            tls,
            ..UpstreamConfig::default()
        },
        ..Config::default()
    };
    config.timeouts.connect = Duration::from_secs(20);
    config
}

fn forward(authority: &Authority) -> Foxy {
    Foxy::start(Role::Forward, config(authority.trusted()), 1)
}

fn get(foxy: &Foxy, host: &str, port: u16, path: &str, fields: &str) -> Answer {
    foxy.ask(&format!(
        "GET https://{host}:{port}{path} HTTP/1.1\r\nHost: {host}:{port}\r\n{fields}\r\n"
    ))
}

fn of(foxy: &Foxy, front: &Front, path: &str, fields: &str) -> Answer {
    get(foxy, "origin.test", front.addr.port(), path, fields)
}

fn good(authority: &Authority) -> Made {
    authority.certificate(&["origin.test"], |_| {})
}

fn body(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i % 251) as u8).collect()
}

const FRESH: &str = "Cache-Control: max-age=60\r\n";

/// An origin whose answer depends on the path and not on the connection.
fn pages() -> Origin {
    Origin::start(|asked| {
        let etag = "ETag: \"v1\"\r\n";
        let large = body(500_000);
        match asked.path() {
            "/small" => asked.reply("200 OK", FRESH, "small"),
            "/private" => asked.reply("200 OK", "Cache-Control: no-store\r\n", "private"),
            "/old" if asked.field("If-None-Match").is_some() => {
                asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{etag}{FRESH}\r\n"));
            }
            "/old" => asked.reply(
                "200 OK",
                &format!("{etag}Cache-Control: max-age=1\r\n"),
                "old",
            ),
            "/large" => asked.reply("200 OK", &format!("{etag}{FRESH}"), large),
            "/chunked" => {
                asked.raw(format!(
                    "HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n"
                ));
                for piece in large[..200_000].chunks(9_999) {
                    asked.raw(format!("{:x}\r\n", piece.len()));
                    asked.raw(piece);
                    asked.raw("\r\n");
                }
                asked.raw("0\r\n\r\n");
            }
            "/end" => {
                asked.raw(format!("HTTP/1.1 200 OK\r\n{FRESH}\r\nto the end"));
                return false;
            }
            "/close" => {
                asked.reply(
                    "200 OK",
                    "Cache-Control: no-store\r\nConnection: close\r\n",
                    "bye",
                );
                return false;
            }
            _ => asked.reply("200 OK", FRESH, asked.head.clone()),
        }
        true
    })
}

#[test]
fn an_answer_over_tls_is_the_same_as_over_a_plain_connection() {
    let authority = Authority::new();
    let origin = pages();
    for manner in [
        Manner::default(),
        Manner {
            drips: true,
            ..Manner::default()
        },
    ] {
        let front = Front::start(authority.server(&good(&authority)), origin.addr, manner);
        let foxy = forward(&authority);
        let plain = Foxy::forward();
        let paths: &[(&str, &str)] = match manner.drips {
            true => &[("/small", ""), ("/chunked", "")],
            false => &[
                ("/small", ""),
                ("/large", ""),
                ("/large", "Range: bytes=100000-399999\r\n"),
                ("/large", "Range: bytes=-5\r\n"),
                ("/chunked", ""),
                ("/end", ""),
            ],
        };
        for (path, fields) in paths {
            for expected in ["fwd=", "hit"] {
                let there = plain.get_with(&origin, path, fields);
                let here = of(&foxy, &front, path, fields);
                assert_eq!((here.status, here.whole), (there.status, true), "{path}");
                assert!(here.body == there.body, "{path} {fields}");
                assert_eq!(here.field("Content-Range"), there.field("Content-Range"));
                if fields.is_empty() {
                    assert!(here.cache().contains(expected), "{path}: {}", here.cache());
                }
            }
        }
    }
}

#[test]
fn stored_answers_are_validated_over_tls() {
    let authority = Authority::new();
    let origin = pages();
    let front = Front::start(
        authority.server(&good(&authority)),
        origin.addr,
        Manner::default(),
    );
    let foxy = forward(&authority);
    assert_eq!(of(&foxy, &front, "/old", "").text(), "old");
    foxy.clock.advance(Duration::from_secs(5));
    assert_eq!(of(&foxy, &front, "/old", "").text(), "old");
    assert_eq!(origin.asked(), 2);
    let hit = of(&foxy, &front, "/old", "");
    assert!(hit.cache().contains("; hit"), "{}", hit.cache());
}

#[test]
fn a_connection_is_used_again_and_a_session_is_continued() {
    let authority = Authority::new();
    let origin = pages();
    let front = Front::start(
        authority.server(&good(&authority)),
        origin.addr,
        Manner::default(),
    );
    let foxy = forward(&authority);
    let handshakes = || {
        let counted = |count: &std::sync::atomic::AtomicUsize| {
            count.load(std::sync::atomic::Ordering::SeqCst)
        };
        (counted(&front.full), counted(&front.resumed))
    };
    for _ in 0..4 {
        assert_eq!(of(&foxy, &front, "/private", "").text(), "private");
    }
    assert_eq!(handshakes(), (1, 0));
    for _ in 0..3 {
        assert_eq!(of(&foxy, &front, "/close", "").text(), "bye");
    }
    assert_eq!(
        handshakes(),
        (1, 2),
        "the first one used the pooled connection"
    );
    let counted = |event| foxy.proxy.totals().event(event);
    assert_eq!(counted(Event::UpstreamHandshakes), 3);
    assert_eq!(counted(Event::UpstreamResumed), 2);
}

/// Checks that the answer is an error page with this reason, that the request has not reached the origin, and
/// that no object is stored.
fn refused(foxy: &Foxy, origin: &Origin, answer: &Answer, status: u16, reason: &str) {
    assert_eq!(answer.status, status, "{reason}: {}", answer.text());
    assert!(
        answer.text().contains(reason),
        "{reason}: {}",
        answer.text()
    );
    assert!(
        answer.cache().contains(reason),
        "{reason}: {}",
        answer.cache()
    );
    // Foxy writes the log record after the answer, so the test waits for it.
    let last = loop {
        match foxy.logged().pop() {
            Some(line) => break line,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert!(last.contains(reason), "{last}");
    assert_eq!(origin.asked(), 0, "{reason}");
    assert_eq!(foxy.engine.stats().ram_objects, 0, "{reason}");
}

#[test]
fn nothing_is_sent_to_an_origin_that_fails_a_check() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let origin = pages();
    let expired = |params: &mut rcgen::CertificateParams| {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    };
    let early = |params: &mut rcgen::CertificateParams| {
        params.not_before = date_time_ymd(4000, 1, 1);
    };
    let own = rcgen::generate_simple_self_signed(["origin.test".to_owned()]).unwrap();
    let own = Made {
        certificate: own.cert.pem(),
        key: own.signing_key.serialize_pem(),
    };
    let names = &["origin.test"];
    for (made, reason) in [
        (
            authority.certificate(names, expired),
            "origin-certificate-expired",
        ),
        (
            authority.certificate(names, early),
            "origin-certificate-not-yet-valid",
        ),
        (
            authority.certificate(&["other.test"], |_| {}),
            "origin-certificate-name",
        ),
        (
            stranger.certificate(names, |_| {}),
            "origin-certificate-issuer",
        ),
        (own, "origin-certificate-issuer"),
    ] {
        let front = Front::start(authority.server(&made), origin.addr, Manner::default());
        let foxy = forward(&authority);
        for _ in 0..2 {
            let answer = of(&foxy, &front, "/small", "");
            refused(&foxy, &origin, &answer, 502, reason);
        }
    }
}

/// Starts a server that calls `act` for each connection.
fn peer(act: impl Fn(&mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            act(&mut stream);
        }
    });
    addr
}

#[test]
fn peers_that_do_not_speak_tls_are_named_for_what_they_do() {
    let authority = Authority::new();
    let origin = pages();
    let hello = |stream: &mut TcpStream| {
        let _ = stream.read(&mut [0; 4096]);
    };
    // A ServerHello of TLS 1.0, and the alert of a server that accepts only older versions.
    let mut old = vec![22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
    old.extend([7; 32]);
    old.extend([0, 0xc0, 0x13, 0]);
    let say = |bytes: Vec<u8>| {
        peer(move |stream| {
            hello(stream);
            let _ = stream.write_all(&bytes);
            let _ = stream.read(&mut [0; 4096]);
        })
    };
    let resets = peer(move |stream| {
        hello(stream);
        SockRef::from(&*stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    });
    for (addr, reason) in [
        (say(old), "origin-tls-version"),
        (say(vec![21, 3, 1, 0, 2, 2, 70]), "origin-tls-version"),
        (say(vec![21, 3, 3, 0, 2, 2, 40]), "origin-tls-handshake"),
        (
            say(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            "origin-tls-handshake",
        ),
        (say(body(5000)), "origin-tls-handshake"),
        (resets, "origin-tls-handshake"),
        (peer(|_| {}), "origin-tls-handshake"),
    ] {
        let foxy = forward(&authority);
        let answer = get(&foxy, "origin.test", addr.port(), "/small", "");
        refused(&foxy, &origin, &answer, 502, reason);
    }
}

#[test]
fn a_handshake_without_end_counts_to_the_time_to_connect() {
    let authority = Authority::new();
    let origin = pages();
    let held = std::sync::Mutex::new(Vec::new());
    let addr = peer(move |stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(&[22, 3, 3, 0, 90, 2]);
        held.lock().unwrap().push(stream.try_clone().unwrap());
    });
    let mut config = config(authority.trusted());
    config.timeouts.connect = Duration::from_millis(300);
    let foxy = Foxy::start(Role::Forward, config, 1);
    let answer = get(&foxy, "origin.test", addr.port(), "/small", "");
    refused(&foxy, &origin, &answer, 504, "origin-connect-timeout");
}

#[test]
fn an_end_that_is_not_announced_truncates_the_answer() {
    let authority = Authority::new();
    let origin = pages();
    for (truncates, hit) in [(false, true), (true, false)] {
        let manner = Manner {
            truncates,
            ..Manner::default()
        };
        let front = Front::start(authority.server(&good(&authority)), origin.addr, manner);
        let foxy = forward(&authority);
        let first = of(&foxy, &front, "/end", "");
        assert_eq!(first.whole, !truncates, "{}", first.head);
        let again = of(&foxy, &front, "/end", "");
        assert_eq!(again.cache().contains("; hit"), hit, "{}", again.cache());
        // If chunks or a length mark the end of the body, it does not matter that TLS does not announce the
        // end of the connection.
        assert!(of(&foxy, &front, "/chunked", "").whole);
        assert!(of(&foxy, &front, "/chunked", "").cache().contains("; hit"));
    }
}

#[test]
fn guard_and_ports_apply_as_for_plain_requests() {
    let foxy = Foxy::forward();
    for (host, port, reason) in [
        ("metadata.test", 443, "destination-special-address"),
        ("origin.test", 25, "port-not-allowed"),
    ] {
        let answer = get(&foxy, host, port, "/", "");
        assert_eq!(answer.status, 403, "{host}:{port}");
        assert!(answer.text().contains(reason), "{}", answer.text());
    }
}

#[test]
fn a_site_has_its_own_authority_name_and_certificate() {
    let authority = Authority::new();
    let origin = pages();
    let made = authority.certificate(&["inside.test"], |_| {});
    let front = Front::start(
        authority.strict_server(&made),
        origin.addr,
        Manner::default(),
    );
    let own = authority.files("own", &authority.certificate(&["foxy.test"], |_| {}));
    let ask = |options: OriginOptions| {
        let site = Site {
            name: "shop".into(),
            host: "origin.test".into(),
            port: front.addr.port(),
            tls: Some(authority.trusted_with(options)),
            ..Site::default()
        };
        let foxy = Foxy::start(Role::Site(site), Config::default(), 1);
        foxy.ask("GET /echo HTTP/1.1\r\nHost: public.test\r\n\r\n")
    };
    let name = Some("inside.test".to_owned());
    let whole = OriginOptions {
        certificate: Some(own),
        name: name.clone(),
        ..OriginOptions::default()
    };
    let answer = ask(whole);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let host = format!("Host: {}\r\n", front.authority());
    assert!(answer.text().contains(&host), "{}", answer.text());
    let unnamed = ask(OriginOptions::default());
    assert!(
        unnamed.text().contains("origin-certificate-name"),
        "{}",
        unnamed.text()
    );
    let asked = origin.asked();
    let without = ask(OriginOptions {
        name,
        ..OriginOptions::default()
    });
    assert_eq!(without.status, 502, "the origin wants a certificate");
    assert_eq!(origin.asked(), asked);
}

#[test]
fn sessions_are_entered_in_the_ledger() {
    let authority = Authority::new();
    let origin = pages();
    let front = Front::start(
        authority.server(&good(&authority)),
        origin.addr,
        Manner::default(),
    );
    let foxy = forward(&authority);
    of(&foxy, &front, "/private", "");
    let held = foxy.proxy.memory_used(foxy_proxy::Use::Connections);
    assert!(held >= 12 << 10, "the pooled connection: {held}");
}
