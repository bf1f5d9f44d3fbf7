//! Names of origins. If name servers are slow, fail or answer nonsense, only the requests for these names
//! fail, and each failed request gets a clear answer.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, SystemClock};
use foxy_bench::{Phase, PhaseKind, TestResolver, Zone};

use crate::clients::process::Foxy;
use crate::clients::web::{self, Response};

fn name_server(kind: PhaseKind, address: Ipv4Addr) -> TestResolver {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let zone = Zone {
        addresses: vec![address.into()],
        ttl: 60,
    };
    let phase = Phase { kind, lasts: None };
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    TestResolver::start(any, zone, vec![phase], &clock).expect("a name server")
}

fn get(foxy: &Foxy, url: &str) -> String {
    let mut stream = TcpStream::connect(foxy.proxy).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a limit");
    let host = url.split('/').nth(2).expect("a host");
    write!(stream, "GET {url} HTTP/1.0\r\nHost: {host}\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn the_configured_name_server_is_asked_once_for_many_requests() {
    let origin = web::serve(|_| Response::cacheable("text/plain", "hello")).unwrap();
    let names = name_server(
        PhaseKind::Slow(Duration::from_millis(100)),
        Ipv4Addr::LOCALHOST,
    );
    let foxy = Foxy::asking(&[names.address()]);
    for n in 0..5 {
        let url = format!("http://origin.example:{}/{n}", origin.port());
        let answer = get(&foxy, &url);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The name server gets at most one question for each of the two kinds of address (A and AAAA).
    assert!((1..=2).contains(&names.asked()), "{}", names.asked());
}

#[test]
fn a_name_server_that_fails_is_a_clear_error_for_its_names_alone() {
    let origin = web::serve(|_| Response::cacheable("text/plain", "hello")).unwrap();
    let kinds = [
        PhaseKind::Silent,
        PhaseKind::Fail,
        PhaseKind::Refuse,
        PhaseKind::Unknown,
        PhaseKind::Empty,
        PhaseKind::Circle,
        PhaseKind::Stranger,
        PhaseKind::Garbage,
        PhaseKind::Torn,
    ];
    // The requests run at the same time, because some of them have to wait until a lookup times out.
    std::thread::scope(|scope| {
        for kind in kinds {
            let port = origin.port();
            scope.spawn(move || {
                let names = name_server(kind, Ipv4Addr::LOCALHOST);
                let foxy = Foxy::asking(&[names.address()]);
                let answer = get(&foxy, &format!("http://origin.example:{port}/"));
                let status = answer.split(' ').nth(1).unwrap_or_default();
                let nothing = [PhaseKind::Unknown, PhaseKind::Empty, PhaseKind::Circle];
                let unknown = nothing.contains(&kind);
                let expected = if unknown {
                    ("502", "origin-name-unknown")
                } else {
                    ("503", "name-service-unavailable")
                };
                assert_eq!(status, expected.0, "{kind:?}: {answer}");
                assert!(answer.contains(expected.1), "{kind:?}: {answer}");
                assert!(names.asked() > 0, "{kind:?}");
                let other = get(&foxy, &format!("http://127.0.0.1:{port}/"));
                assert!(other.starts_with("HTTP/1.1 200"), "{kind:?}: {other}");
            });
        }
    });
}

#[test]
fn a_second_name_server_answers_when_the_first_is_silent() {
    let origin = web::serve(|_| Response::cacheable("text/plain", "hello")).unwrap();
    let silent = name_server(PhaseKind::Silent, Ipv4Addr::LOCALHOST);
    let good = name_server(PhaseKind::Good, Ipv4Addr::LOCALHOST);
    let foxy = Foxy::asking(&[silent.address(), good.address()]);
    let answer = get(&foxy, &format!("http://origin.example:{}/", origin.port()));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(good.asked() > 0);
}
