//! The PROXY protocol, by which a proxy in front of Foxy names the client of a connection. Only trusted
//! proxies may do so. Access lists, limits and forwarding fields then use the address of the named client.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Answer, Foxy, NOON, Origin};
use foxy_base::{ManualClock, WallTime};
use foxy_proxy::{Access, Config, Event, Limits, Role, Serves, Site};
use foxy_store::{Engine, EngineConfig};

/// Starts a site whose access list, limits and forwarding fields depend on the client.
fn start(trusted: &str, origin: &Origin) -> Foxy {
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
    let engine = Engine::new(EngineConfig::new(64 << 20, 7), clock.clone());
    let config = Config {
        access: Access {
            trusted_proxies: vec![trusted.parse().unwrap()],
            ..Access::default()
        },
        limits: Limits {
            client_connections: 2,
            ..Limits::default()
        },
        ..Config::default()
    };
    let allowed = ["192.0.2.0/24", "127.0.0.0/8", "2001:db8::/32"];
    let site = Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        allow_clients: Some(allowed.iter().map(|net| net.parse().unwrap()).collect()),
        ..Site::default()
    };
    let listener = (Serves::One(Role::Site(site)), None, true);
    Foxy::serving(listener, config, 1, engine, clock)
}

/// An origin whose answer contains the client's address, as the request states it.
fn origin() -> Origin {
    Origin::start(|asked| {
        let client = asked.field("X-Forwarded-For").unwrap_or("none").to_owned();
        asked.reply("200 OK", "Cache-Control: no-store\r\n", client);
        true
    })
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

fn ask(foxy: &Foxy, header: &[u8]) -> Answer {
    let mut client = foxy.connect();
    client.send([header, GET].concat());
    client.answer()
}

fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = (rest.len() as u16).to_be_bytes();
    [
        b"\r\n\r\n\0\r\nQUIT\n",
        &[command, family][..],
        &length,
        rest,
    ]
    .concat()
}

#[test]
fn a_trusted_proxy_names_the_client() {
    let origin = origin();
    let foxy = start("127.0.0.0/8", &origin);
    let four = v2(0x21, 0x11, &[192, 0, 2, 9, 10, 0, 0, 1, 1, 2, 0, 80]);
    let stranger = v2(0x21, 0x11, &[203, 0, 113, 9, 10, 0, 0, 1, 1, 2, 0, 80]);
    for (header, status, client) in [
        (
            &b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n"[..],
            200,
            "192.0.2.7",
        ),
        (
            b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n",
            200,
            "2001:db8::7",
        ),
        (&four, 200, "192.0.2.9"),
        // The header names no client, so Foxy uses the address of the sender.
        (b"PROXY UNKNOWN\r\n", 200, "127.0.0.1"),
        (&v2(0x20, 0, &[]), 200, "127.0.0.1"),
        // Access lists apply to the named client.
        (b"PROXY TCP4 203.0.113.9 10.0.0.1 4711 80\r\n", 403, ""),
        (&stranger, 403, ""),
        // The header is unreadable.
        (b"", 400, ""),
        (b"PROXY TCP4 192.0.2.7\r\n", 400, ""),
        (&v2(0x31, 0x11, &[0; 12]), 400, ""),
    ] {
        let answer = ask(&foxy, header);
        assert_eq!(answer.status, status, "{}", header.escape_ascii());
        if status == 200 {
            assert_eq!(answer.text(), client, "{}", header.escape_ascii());
        }
    }
    foxy.counts(Event::ProxyHeadersRefused, 3);
    // The client sends the header one byte at a time. But it sends the last byte of the header together with
    // the request.
    let mut slow = foxy.connect();
    let header = b"PROXY TCP4 192.0.2.8 10.0.0.1 4711 80\r\n";
    for byte in &header[..header.len() - 1] {
        slow.send([*byte]);
        std::thread::sleep(Duration::from_millis(1));
    }
    slow.send([b"\n", GET].concat());
    assert_eq!(slow.answer().text(), "192.0.2.8");
    assert_eq!(origin.asked(), 6, "what was refused reached nobody");
}

#[test]
fn a_header_of_a_stranger_is_a_bad_request() {
    let origin = origin();
    let foxy = start("10.0.0.0/8", &origin);
    for header in [
        &b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n"[..],
        b"PROXY UNKNOWN\r\n",
        &v2(0x21, 0x11, &[192, 0, 2, 9, 10, 0, 0, 1, 1, 2, 0, 80]),
        &v2(0x20, 0, &[]),
    ] {
        let answer = ask(&foxy, header);
        assert_eq!(answer.status, 400, "{}", header.escape_ascii());
    }
    assert_eq!(origin.asked(), 0);
    assert_eq!(ask(&foxy, b"").text(), "127.0.0.1");
}

#[test]
fn limits_count_the_client_that_is_named() {
    let origin = origin();
    let foxy = start("127.0.0.0/8", &origin);
    let open = |client: &str| {
        let mut connection = foxy.connect();
        connection.send(format!("PROXY TCP4 {client} 10.0.0.1 1 80\r\n"));
        connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let status = connection.answer().status;
        (connection, status)
    };
    let held = [open("192.0.2.1"), open("192.0.2.1"), open("192.0.2.2")];
    assert!(held.iter().all(|(_, status)| *status == 200));
    assert_eq!(open("192.0.2.1").1, 0, "a third connection of one client");
    assert_eq!(open("192.0.2.2").1, 200, "another client");
    drop(held);
}
