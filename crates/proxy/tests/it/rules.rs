//! Rules of an operator for some hosts and paths, on real sockets.

use std::time::Duration;

use crate::common::{Asked, Foxy, Origin};
use foxy_proxy::rules::rules::{Bypass, Pattern, QueryRule, Rule, Which};
use foxy_proxy::rules::{Config as Caching, RuleSet};
use foxy_proxy::{Config, Role};

fn ruled(change: impl FnOnce(&mut Rule)) -> Foxy {
    let mut rule = Rule {
        name: "r".into(),
        paths: vec![Pattern::new("/r/*")],
        ..Rule::default()
    };
    change(&mut rule);
    let config = Config {
        user_rules: RuleSet::new(vec![rule]),
        ..Config::default()
    };
    Foxy::start(Role::Forward, config, 1)
}

/// Answers with the path and the requested device. Sets cookies under `/r/set`.
fn say(asked: &mut Asked) -> bool {
    let body = format!(
        "{} {}{}",
        asked.path(),
        asked.field("X-Device").unwrap_or("-"),
        asked.field("Cookie").unwrap_or("-")
    );
    let fields = match asked.path() {
        "/r/set" => "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n",
        "/r/short" => "Cache-Control: max-age=1\r\n",
        "/r/404" => "X: y\r\n",
        _ => "Cache-Control: max-age=60\r\n",
    };
    let status = if asked.path() == "/r/404" {
        "404 Not Found"
    } else {
        "200 OK"
    };
    if asked.path() == "/r/chunked" {
        asked.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n");
    } else {
        asked.reply(status, fields, body);
    }
    true
}

#[test]
fn ignored_parameters_share_an_object_and_the_origin_is_asked_without_them() {
    let foxy = ruled(|rule| {
        rule.query = QueryRule {
            which: Which::Ignore(vec![Pattern::new("utm_*")]),
            sort: true,
        };
    });
    let origin = Origin::start(say);
    let first = foxy.get(&origin, "/r/a?b=1&utm_x=2&a=3");
    assert_eq!(first.text(), "/r/a?a=3&b=1 --");
    let second = foxy.get(&origin, "/r/a?a=3&b=1");
    assert_eq!(second.text(), first.text());
    assert!(
        second.cache().contains("detail=\"memory-hit, rule r\""),
        "{second:?}"
    );
    // The rules do not apply to other paths.
    for path in ["/s?utm_x=1", "/s?utm_x=2", "/s?a&b", "/s?b&a"] {
        assert!(foxy.get(&origin, path).cache().contains("fwd=uri-miss"));
    }
    // Below `/r/`, URLs share one stored object if they differ only in ignored parameters or in the order of
    // their parameters. A purge of any of these URLs removes the object.
    let port = origin.addr.port();
    let purge = format!("PURGE http://origin.test:{port}/r/a?b=1&utm_x=9&a=3 HTTP/1.1\r\n");
    assert_eq!(foxy.ask(&format!("{purge}Host: x\r\n\r\n")).status, 200);
    assert!(
        foxy.get(&origin, "/r/a?b=1&a=3")
            .cache()
            .contains("uri-miss")
    );
}

#[test]
fn key_parts_tell_apart_what_the_origin_does_not() {
    let foxy = ruled(|rule| {
        rule.config.key_parts = vec!["x-device".into(), "cookie:lang".into()];
    });
    let origin = Origin::start(say);
    let ask = |fields: &str| foxy.get_with(&origin, "/r/a", fields);
    assert_eq!(ask("X-Device: tv\r\n").text(), "/r/a tv-");
    assert_eq!(ask("").text(), "/r/a --");
    assert_eq!(ask("Cookie: lang=de\r\n").text(), "/r/a -lang=de");
    let hit = ask("Cookie: x=y; lang=de; z=1\r\n");
    assert_eq!(hit.text(), "/r/a -lang=de");
    assert!(hit.cache().contains("memory-hit"), "{hit:?}");
    assert!(ask("X-Device: tv\r\n").cache().contains("memory-hit"));
    assert_eq!(origin.asked(), 3);
    // One purge removes the variants of all these requests.
    let port = origin.addr.port();
    foxy.ask(&format!(
        "PURGE http://origin.test:{port}/r/a HTTP/1.1\r\nHost: x\r\n\r\n"
    ));
    for fields in ["", "X-Device: tv\r\n", "Cookie: lang=de\r\n"] {
        assert!(!ask(fields).cache().contains("hit;"), "{fields}");
    }
}

#[test]
fn what_was_stored_without_the_key_parts_answers_nobody() {
    let plain = Foxy::forward();
    let origin = Origin::start(say);
    plain.get_with(&origin, "/r/a", "X-Device: tv\r\n");
    let mut rule = Rule {
        name: "r".into(),
        ..Rule::default()
    };
    rule.config.key_parts = vec!["x-device".into()];
    let config = Config {
        user_rules: RuleSet::new(vec![rule]),
        ..Config::default()
    };
    let (engine, clock) = (plain.engine.clone(), plain.clock.clone());
    let ruled = Foxy::with_engine(Role::Forward, config, 1, engine, clock);
    let again = ruled.get_with(&origin, "/r/a", "X-Device: phone\r\n");
    assert_eq!(again.text(), "/r/a phone-");
    let hit = ruled.get_with(&origin, "/r/a", "X-Device: phone\r\n");
    assert!(hit.cache().contains("memory-hit"), "{hit:?}");
}

#[test]
fn bypassed_requests_neither_use_nor_fill_the_cache() {
    let foxy = ruled(|rule| {
        rule.bypass = Bypass {
            always: false,
            fields: vec![("X-Preview".into(), None)],
            cookies: vec![Pattern::new("sess*")],
        };
    });
    let origin = Origin::start(say);
    let ask = |fields: &str| foxy.get_with(&origin, "/r/a", fields);
    let first = ask("Cookie: session=1\r\n");
    assert!(
        first
            .cache()
            .contains("fwd=bypass; fwd-status=200; detail=\"rule-bypass-cookie, rule r\""),
        "{first:?}"
    );
    assert!(ask("").cache().contains("uri-miss"), "nothing was kept");
    assert!(ask("").cache().contains("memory-hit"));
    let passed = ask("X-Preview: 1\r\n");
    assert!(passed.cache().contains("rule-bypass-header"), "{passed:?}");
    assert_eq!(origin.asked(), 3);
    assert!(foxy.logged()[0].starts_with("bypass 200 rule-bypass-cookie"));
}

#[test]
fn set_cookie_is_stripped_for_everybody_when_told() {
    let origin = Origin::start(say);
    let told = ruled(|rule| rule.config.strip_set_cookie = true);
    for _ in 0..2 {
        assert_eq!(told.get(&origin, "/r/set").field("Set-Cookie"), None);
    }
    let plain = Foxy::forward();
    for _ in 0..2 {
        let answer = plain.get(&origin, "/r/set");
        assert!(answer.cache().contains("set-cookie"), "{answer:?}");
        assert_eq!(
            plain.get(&origin, "/r/set").field("Set-Cookie"),
            Some("a=b")
        );
    }
}

#[test]
fn sizes_lifetimes_and_negative_answers_are_ruled() {
    let origin = Origin::start(say);
    let foxy = ruled(|rule| {
        rule.config = Caching {
            store_bytes_max: 10,
            ttl_min_s: Some(30),
            negative_ttl_s: Some(5),
            ..Caching::default()
        };
    });
    let large = foxy.get(&origin, "/r/longer");
    assert!(
        large.cache().contains("above-maximum-size, rule r"),
        "{large:?}"
    );
    assert!(!large.cache().contains("stored"), "{large:?}");
    for _ in 0..2 {
        let chunked = foxy.get(&origin, "/r/chunked");
        assert_eq!(chunked.text(), "01234567890");
        assert!(chunked.cache().contains("uri-miss"), "{chunked:?}");
    }
    foxy.get(&origin, "/r/404");
    assert!(foxy.get(&origin, "/r/404").cache().contains("hit; ttl=5"));
    let other = ruled(|rule| rule.config.ttl_min_s = Some(30));
    other.get(&origin, "/r/short");
    other.clock.advance(Duration::from_secs(20));
    let hit = other.get(&origin, "/r/short");
    assert!(hit.cache().contains("hit; ttl=10"), "{hit:?}");
    let small = ruled(|rule| rule.config.store_bytes_min = 1000);
    let answer = small.get(&origin, "/r/a");
    assert!(answer.cache().contains("below-minimum-size"), "{answer:?}");
}
