//! Access rules about addresses of destinations: names whose address changes, names with several addresses,
//! and connections that other requests have opened.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use foxy_proxy::access_rules::Rule;
use foxy_proxy::{Access, Config, Role};

use super::{config, deny, origin, refused, rules};
use crate::common::{Foxy, Origin};

#[test]
fn a_name_that_turns_to_a_denied_address_is_refused_though_it_is_stored() {
    let origin = origin();
    let port = origin.addr.port();
    let bad = TcpListener::bind(("127.0.0.2", port)).unwrap();
    bad.set_nonblocking(true).unwrap();
    let foxy = Foxy::start(Role::Forward, config(rules(), port), 1);
    let get = |path: &str| {
        foxy.ask(&format!(
            "GET http://turning.test:{port}{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ))
    };
    assert_eq!(get("/a").status, 200);
    assert!(get("/a").cache().contains("hit"));
    foxy.clock.advance(Duration::from_secs(2));
    assert!(refused(&get("/a"), "address"));
    assert!(refused(&get("/b"), "address"));
    assert!(bad.accept().is_err(), "nobody came");
}

#[test]
fn of_several_addresses_a_denied_one_is_never_connected_to() {
    let origin = origin();
    let port = origin.addr.port();
    let bad = TcpListener::bind(("127.0.0.2", port)).unwrap();
    bad.set_nonblocking(true).unwrap();
    let foxy = Foxy::start(Role::Forward, config(rules(), port), 1);
    for method in ["GET", "POST"] {
        let answer = foxy.ask(&format!(
            "{method} http://split.test:{port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ));
        assert_eq!(answer.status, 200, "{}", answer.head);
    }
    let mut tunnel = foxy.connect();
    tunnel.send(format!(
        "CONNECT split.test:{port} HTTP/1.1\r\nHost: x\r\n\r\n"
    ));
    assert!(tunnel.head().starts_with("HTTP/1.1 200"));
    assert!(bad.accept().is_err(), "nobody came");
}

/// Foxy uses a pooled connection to an address only for clients that may reach the address.
#[test]
fn pooled_connections_and_stored_answers_are_judged_by_their_address() {
    let bad = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = bad.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = bad.accept().unwrap();
        let mut count = 0;
        let mut bytes = [0; 4096];
        while matches!(stream.read(&mut bytes), Ok(1..)) {
            let answer =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 2\r\n\r\nhi";
            stream.write_all(answer.as_bytes()).unwrap();
            count += 1;
        }
        count
    });
    let admin = Rule {
        clients: vec!["10.0.0.7/32".parse().unwrap()],
        ..Rule::default()
    };
    let guarded = Rule {
        addresses: vec!["127.0.0.2/32".parse().unwrap()],
        ..deny("address")
    };
    let base = config(vec![admin, guarded], port);
    let foxy = Foxy::start(
        Role::Forward,
        Config {
            access: Access {
                trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
                ..base.access.clone()
            },
            ..base
        },
        1,
    );
    let mut client = foxy.connect();
    let mut ask = |from: &str, path: &str| {
        client.send(format!(
            "GET http://127.0.0.2:{port}{path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {from}\r\n\r\n"
        ));
        client.answer()
    };
    assert_eq!(ask("10.0.0.7", "/a").status, 200);
    let again = ask("10.0.0.7", "/a");
    assert!(!again.cache().contains("hit"), "{}", again.cache());
    assert_eq!(ask("10.0.0.8", "/a").status, 403);
    assert_eq!(ask("10.0.0.8", "/b").status, 403);
    drop(foxy);
    assert_eq!(served.join().unwrap(), 2);
}

/// A name may have an address that only some clients are permitted to reach.
#[test]
fn a_kept_connection_of_a_name_serves_nobody_who_may_not_reach_its_address() {
    let open = Origin::start(|asked| {
        asked.reply("200 OK", "Cache-Control: no-store\r\n", "open");
        true
    });
    let port = open.addr.port();
    let inner = TcpListener::bind(("127.0.0.2", port)).unwrap();
    std::thread::spawn(move || {
        for mut stream in inner.incoming().flatten() {
            let mut bytes = [0; 4096];
            while matches!(stream.read(&mut bytes), Ok(1..)) {
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ninner";
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    let guarded = Rule {
        clients: vec!["10.0.0.8/32".parse().unwrap()],
        addresses: vec!["127.0.0.2/32".parse().unwrap()],
        ..deny("address")
    };
    let mut config = config(vec![guarded], port);
    config.access.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let foxy = Foxy::start(Role::Forward, config, 1);
    let mut client = foxy.connect();
    let mut ask = |from: &str| {
        client.send(format!(
            "GET http://split.test:{port}/ HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {from}\r\n\r\n"
        ));
        client.answer().text()
    };
    assert_eq!(ask("10.0.0.7"), "inner");
    assert_eq!(ask("10.0.0.8"), "open");
}
