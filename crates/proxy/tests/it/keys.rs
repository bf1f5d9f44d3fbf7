//! Normal forms of URLs in keys and in requests to the origin. Variants are selected by the fields that Foxy
//! sends to the origin, not by the fields that the client sends.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use crate::common::{Asked, Foxy, Origin};
use foxy_proxy::rules::RuleSet;
use foxy_proxy::rules::rules::{Pattern, QueryRule, Rule, Which};
use foxy_proxy::{Config, Role};

/// Answers with the request target as the body.
fn say(asked: &mut Asked) -> bool {
    let body = asked.path().to_owned();
    asked.reply("200 OK", "Cache-Control: max-age=60\r\n", body);
    true
}

fn with_rules(rules: RuleSet) -> Foxy {
    let config = Config {
        user_rules: rules,
        ..Config::default()
    };
    Foxy::start(Role::Forward, config, 1)
}

fn querying(query: QueryRule) -> Foxy {
    with_rules(RuleSet::new(vec![Rule {
        name: "q".into(),
        query,
        ..Rule::default()
    }]))
}

fn keep_id() -> QueryRule {
    QueryRule {
        which: Which::Keep(vec![Pattern::new("id")]),
        sort: false,
    }
}

fn ask(foxy: &Foxy, origin: &Origin, line: (&str, &str), fields: &str) -> crate::common::Answer {
    let (method, path) = line;
    let to = origin.authority();
    let mut client = foxy.connect();
    client.send(format!(
        "{method} http://{to}{path} HTTP/1.1\r\nHost: {to}\r\n{fields}\r\n"
    ));
    client.answer_to(method)
}

#[test]
fn a_path_has_one_form_in_keys_and_at_the_origin() {
    let foxy = Foxy::forward();
    let origin = Origin::start(say);
    assert_eq!(foxy.get(&origin, "/%41%7e%c3?%41").text(), "/A~%C3?%41");
    let hit = foxy.get(&origin, "/A~%C3?%41");
    assert!(hit.cache().contains("memory-hit"), "{hit:?}");
    assert_eq!(foxy.get(&origin, "/A~%C3?A").text(), "/A~%C3?A");
    // The normal form of a path must not create segments `.` or `..` out of escapes, and it keeps invalid
    // escapes.
    for (path, sent) in [
        ("/a/%2e%2e/b", "/a/%2E%2E/b"),
        ("/%zz%41", "/%zzA"),
        ("/a+%2b", "/a+%2B"),
    ] {
        assert_eq!(foxy.get(&origin, path).text(), sent);
        assert_eq!(ask(&foxy, &origin, ("POST", path), "").text(), sent);
    }
    // A purge accepts any spelling of the URL.
    let purged = ask(&foxy, &origin, ("PURGE", "/%41%7E%c3?%41"), "");
    assert_eq!(purged.status, 200, "{purged:?}");
    assert!(foxy.get(&origin, "/A~%C3?%41").cache().contains("uri-miss"));
}

#[test]
fn rules_are_found_by_the_form_that_the_origin_gets() {
    let foxy = with_rules(RuleSet::new(vec![Rule {
        name: "private".into(),
        paths: vec![Pattern::new("/private/*")],
        bypass: foxy_proxy::rules::rules::Bypass {
            always: true,
            ..Default::default()
        },
        ..Rule::default()
    }]));
    let origin = Origin::start(say);
    let answer = foxy.get(&origin, "/%70rivate/a");
    assert!(answer.cache().contains("fwd=bypass"), "{answer:?}");
    assert_eq!(answer.text(), "/private/a");
}

#[test]
fn a_partition_may_keep_its_paths_as_they_come() {
    let foxy = with_rules(RuleSet::default().with_received(vec!["forward".into()]));
    let origin = Origin::start(say);
    for path in ["/%41%2f", "/A%2f", "/A%2F"] {
        let answer = foxy.get(&origin, path);
        assert!(answer.cache().contains("uri-miss"), "{answer:?}");
        assert_eq!(answer.text(), path);
    }
    assert_eq!(ask(&foxy, &origin, ("PURGE", "/%41%2f"), "").status, 200);
    assert!(foxy.get(&origin, "/%41%2f").cache().contains("uri-miss"));
    assert!(foxy.get(&origin, "/A%2f").cache().contains("memory-hit"));
}

#[test]
fn the_origin_is_asked_for_what_the_key_says() {
    let origin = Origin::start(say);
    let foxy = querying(keep_id());
    for (path, sent) in [
        ("/a?id=1&%69d=EVIL", "/a?id=1&%69d=EVIL"),
        ("/a?id=1&x;id=EVIL", "/a?id=1"),
        ("/a?id=2&evil=1&id=3", "/a?id=2&id=3"),
        ("/a?id=4;id=5", "/a?id=4;id=5"),
    ] {
        assert_eq!(foxy.get(&origin, path).text(), sent, "{path}");
        let again = foxy.get(&origin, sent);
        assert!(again.cache().contains("memory-hit"), "{path}: {again:?}");
    }
    let clean = foxy.get(&origin, "/a?id=1");
    assert_eq!(clean.text(), "/a?id=1");
    // A request that bypasses the cache is unchanged.
    assert_eq!(
        ask(&foxy, &origin, ("POST", "/a?id=1&x=2"), "").text(),
        "/a?id=1&x=2"
    );
    let sorted = querying(QueryRule {
        which: Which::Ignore(vec![Pattern::new("utm_*")]),
        sort: true,
    });
    let first = sorted.get(&origin, "/b?b=1&%75tm_x=2&a=3");
    assert_eq!(first.text(), "/b?a=3&b=1");
    let second = sorted.get(&origin, "/b?a=3&b=1");
    assert!(second.cache().contains("memory-hit"), "{second:?}");
}

#[test]
fn every_question_about_a_stored_answer_is_the_same() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let origin = Origin::start(move |asked| {
        let line = asked.head.lines().next().unwrap_or_default().to_owned();
        seen.lock().unwrap().push(line);
        let fields = "Cache-Control: max-age=10\r\nETag: \"1\"\r\n";
        if asked.field("If-None-Match").is_some() {
            asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"));
        } else if asked.head.starts_with("HEAD") {
            asked.raw(format!(
                "HTTP/1.1 200 OK\r\n{fields}Content-Length: 4\r\n\r\n"
            ));
        } else if asked.path().starts_with("/range") {
            let part = format!("{fields}Content-Range: bytes 0-1/4\r\n");
            asked.reply("206 Partial Content", &part, "ab");
        } else {
            asked.reply("200 OK", fields, "abcd");
        }
        true
    });
    let foxy = querying(keep_id());
    ask(&foxy, &origin, ("HEAD", "/a?id=1&x=0"), "");
    foxy.get(&origin, "/a?id=1&x=1");
    foxy.clock.advance(std::time::Duration::from_secs(20));
    foxy.get(&origin, "/a?id=1&x=2");
    foxy.get_with(&origin, "/range?id=1&x=3", "Range: bytes=0-1\r\n");
    foxy.get_with(&origin, "/c?id=1&x=4", "If-Match: \"1\"\r\n");
    let lines = lines.lock().unwrap();
    let wanted = [
        "HEAD /a?id=1 HTTP/1.1",
        "GET /a?id=1 HTTP/1.1",
        "GET /a?id=1 HTTP/1.1",
        "GET /range?id=1 HTTP/1.1",
        "GET /c?id=1 HTTP/1.1",
    ];
    assert_eq!(*lines, wanted);
}

#[test]
fn a_posts_answer_is_kept_only_under_the_url_it_was_asked_for() {
    let origin = Origin::start(|asked| {
        let location = asked.path().to_owned();
        let fields = format!("Cache-Control: max-age=60\r\nContent-Location: {location}\r\n");
        asked.reply("200 OK", &fields, location);
        true
    });
    let foxy = querying(keep_id());
    ask(&foxy, &origin, ("POST", "/a?id=1&evil=1"), "");
    assert_eq!(foxy.get(&origin, "/a?id=1").text(), "/a?id=1");
}

/// An origin whose answers vary by the `HX-Request` field.
fn say_htmx(asked: &mut Asked) -> bool {
    let body = match asked.field("HX-Request") {
        Some("true") => "part",
        _ => "page",
    };
    let fields = "Cache-Control: max-age=60\r\nVary: HX-Request\r\n";
    asked.reply("200 OK", fields, body);
    true
}

#[test]
fn a_field_that_connection_names_selects_no_variant() {
    for list in ["HX-Request", "close, hx-request", "x, HX-REQUEST, y"] {
        let foxy = Foxy::forward();
        let origin = Origin::start(say_htmx);
        let poison = format!("HX-Request: true\r\nConnection: {list}\r\n");
        assert_eq!(foxy.get_with(&origin, "/", &poison).text(), "page");
        let part = foxy.get_with(&origin, "/", "HX-Request: true\r\n");
        assert_eq!(part.text(), "part", "{list}");
        // Foxy does not send `HX-Request` for this request. So the stored variant without this field matches.
        let page = foxy.get_with(&origin, "/", &poison);
        assert_eq!(page.text(), "page");
        assert!(page.cache().contains("memory-hit"), "{page:?}");
        assert!(foxy.get(&origin, "/").cache().contains("memory-hit"));
        assert_eq!(origin.asked(), 2);
    }
}

#[test]
fn followers_are_told_apart_by_what_is_sent() {
    let (at_origin, arrived) = std::sync::mpsc::channel();
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let at_origin = Mutex::new(at_origin);
    let origin = Origin::start(move |asked| {
        let sent = asked.field("HX-Request").is_some();
        let _ = at_origin.lock().unwrap().send(());
        if !sent {
            let _ = wait.lock().unwrap().recv();
        }
        say_htmx(asked)
    });
    let foxy = Foxy::forward();
    let to = origin.authority();
    let get = |fields: &str| {
        let mut client = foxy.connect();
        client.send(format!(
            "GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\n{fields}\r\n"
        ));
        client
    };
    let mut leader = get("HX-Request: true\r\nConnection: hx-request\r\n");
    arrived.recv().unwrap();
    let mut follower = get("HX-Request: true\r\n");
    while foxy.proxy.followers() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    release.send(()).unwrap();
    assert_eq!(leader.answer().text(), "page");
    assert_eq!(follower.answer().text(), "part");
}

#[test]
fn variants_by_the_clients_address_count_the_address_that_foxy_sends() {
    let origin = Origin::start(|asked| {
        let body = asked.field("X-Forwarded-For").unwrap_or("-").to_owned();
        let fields = "Cache-Control: max-age=60\r\nVary: X-Forwarded-For\r\n";
        asked.reply("200 OK", fields, body);
        true
    });
    let foxy = Foxy::forward();
    let own = foxy.get(&origin, "/");
    assert_eq!(own.text(), "127.0.0.1");
    assert!(foxy.get(&origin, "/").cache().contains("memory-hit"));
    // A client at another address sends the same fields. Foxy sends a different `X-Forwarded-For` for this
    // client, so the stored variant does not match.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let here = std::net::SocketAddr::from(([127, 0, 0, 2], 0));
    socket.bind(&here.into()).unwrap();
    socket.connect(&foxy.addr.into()).unwrap();
    let mut other = std::net::TcpStream::from(socket);
    let to = origin.authority();
    write!(
        other,
        "GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    other.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("127.0.0.2"), "{text}");
    assert_eq!(origin.asked(), 2);
}

#[test]
fn key_parts_count_what_the_origin_sees() {
    let mut rule = Rule {
        name: "r".into(),
        ..Rule::default()
    };
    rule.config.key_parts = vec!["x-device".into()];
    let foxy = with_rules(RuleSet::new(vec![rule]));
    let origin = Origin::start(|asked| {
        let body = asked.field("X-Device").unwrap_or("-").to_owned();
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", body);
        true
    });
    let hidden = "X-Device: tv\r\nConnection: x-device\r\n";
    assert_eq!(foxy.get_with(&origin, "/", hidden).text(), "-");
    assert_eq!(foxy.get_with(&origin, "/", "X-Device: tv\r\n").text(), "tv");
}
