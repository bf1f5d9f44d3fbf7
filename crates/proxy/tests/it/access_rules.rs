//! Rules about clients and their requests, on real sockets: selected cases, and attempts to evade rules.

mod addresses;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Answer, Foxy, Origin};
use foxy_proxy::access_rules::{Action, HostPattern, Rule, RuleSet, Scheme, Span};
use foxy_proxy::rules::rules::Pattern;
use foxy_proxy::{Access, Config, Gatekeeper, Role, Site};

fn zone() -> jiff::tz::TimeZone {
    jiff::tz::TimeZone::UTC
}

fn deny(name: &str) -> Rule {
    Rule {
        name: name.to_owned(),
        action: Action::Deny,
        ..Rule::default()
    }
}

fn hosts(texts: &[&str]) -> Vec<HostPattern> {
    texts.iter().map(|text| HostPattern::new(text)).collect()
}

fn config(rules: Vec<Rule>, port: u16) -> Config {
    Config {
        access: Access {
            connect_ports: vec![443, port],
            allow_destinations: vec!["169.254.0.0/16".parse().unwrap()],
            ..Access::default()
        },
        gatekeeper: Some(Arc::new(Gatekeeper::new(RuleSet::new(rules), zone()))),
        ..Config::default()
    }
}

fn origin() -> Origin {
    Origin::start(|asked| {
        asked.reply("200 OK", "Cache-Control: max-age=600\r\n", "body");
        true
    })
}

fn rules() -> Vec<Rule> {
    vec![
        Rule {
            hosts: hosts(&[".denied.here.test"]),
            text: "Not <here>.".to_owned(),
            ..deny("host")
        },
        Rule {
            hosts: hosts(&["read.here.test"]),
            methods: vec!["POST".to_owned(), "PUT".to_owned(), "PURGE".to_owned()],
            ..deny("method")
        },
        Rule {
            hosts: hosts(&["paths.here.test"]),
            paths: vec![Pattern::new("/admin"), Pattern::new("/admin/*")],
            ..deny("path")
        },
        Rule {
            name: "tunnel".to_owned(),
            hosts: hosts(&["tunnel.here.test"]),
            action: Action::Tunnel,
            ..Rule::default()
        },
        Rule {
            hosts: hosts(&["plain.here.test"]),
            schemes: vec![Scheme::Connect],
            ..deny("scheme")
        },
        Rule {
            name: "past".to_owned(),
            hosts: hosts(&["past.here.test"]),
            action: Action::Bypass,
            ..Rule::default()
        },
        // The clock of the tests shows noon of a Friday, so the time of this rule includes it, and the time
        // of the next rule does not.
        Rule {
            hosts: hosts(&["now.here.test"]),
            times: vec![Span::parse("fri 11:59-12:01").unwrap()],
            ..deny("now")
        },
        Rule {
            hosts: hosts(&["later.here.test"]),
            times: vec![Span::parse("fri 12:01-12:03").unwrap()],
            ..deny("later")
        },
        Rule {
            addresses: vec![
                "127.0.0.2/32".parse().unwrap(),
                "169.254.0.0/16".parse().unwrap(),
            ],
            ..deny("address")
        },
        Rule {
            hosts: hosts(&["clients.here.test"]),
            clients: vec!["127.0.0.0/8".parse().unwrap()],
            ..deny("client")
        },
        Rule {
            ports: vec![81..=99],
            ..deny("port")
        },
    ]
}

fn refused(answer: &Answer, rule: &str) -> bool {
    let words = [
        format!("detail=\"rule-denies rule:{rule}\""),
        format!("rule={rule}"),
    ];
    let cache = answer.cache();
    answer.status == 403 && (words.iter().any(|word| cache.contains(word)) || cache.contains(rule))
}

/// Requests (method, host and path), each with the rule that refuses it. An empty text means that the request
/// is permitted.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("GET", "denied.here.test", "/", "host"),
    ("GET", "www.denied.here.test", "/", "host"),
    ("GET", "a.b.c.denied.here.test", "/", "host"),
    ("GET", "DENIED.here.test", "/", "host"),
    ("GET", "Denied.Here.Test", "/", "host"),
    ("GET", "denied.here.test.", "/", "host"),
    ("GET", "WWW.denied.here.test.", "/", "host"),
    ("HEAD", "denied.here.test", "/", "host"),
    ("POST", "denied.here.test", "/", "host"),
    ("OPTIONS", "denied.here.test", "/", "host"),
    ("DELETE", "denied.here.test", "/", "host"),
    ("PURGE", "denied.here.test", "/", "host"),
    ("BREW", "denied.here.test", "/", "host"),
    ("GET", "notdenied.here.test", "/", ""),
    ("GET", "denied.here.test.here.test", "/", ""),
    ("GET", "read.here.test", "/", ""),
    ("HEAD", "read.here.test", "/", ""),
    ("POST", "read.here.test", "/", "method"),
    ("PUT", "read.here.test", "/", "method"),
    ("PURGE", "read.here.test", "/", "method"),
    ("DELETE", "read.here.test", "/", ""),
    ("GET", "paths.here.test", "/", ""),
    ("GET", "paths.here.test", "/public", ""),
    ("GET", "paths.here.test", "/admin", "path"),
    ("GET", "paths.here.test", "/admin/", "path"),
    ("GET", "paths.here.test", "/admin/x", "path"),
    ("GET", "paths.here.test", "/admin?x=1", "path"),
    ("GET", "paths.here.test", "/administrator", ""),
    ("GET", "paths.here.test", "/%61dmin/x", "path"),
    ("GET", "paths.here.test", "/adm%69n", "path"),
    ("GET", "paths.here.test", "/public/../admin/x", "path"),
    ("GET", "paths.here.test", "/public/%2e%2e/admin/x", "path"),
    ("GET", "paths.here.test", "/public/.%2E/admin/x", "path"),
    ("GET", "paths.here.test", "/./admin/x", "path"),
    ("GET", "paths.here.test", "//admin/x", "path"),
    ("GET", "paths.here.test", "/public/..//admin/x", "path"),
    ("GET", "paths.here.test", "/admin/../public", ""),
    ("GET", "paths.here.test", "/public?/admin", ""),
    ("HEAD", "paths.here.test", "/admin", "path"),
    ("POST", "paths.here.test", "/admin", "path"),
    ("GET", "tunnel.here.test", "/", "tunnel"),
    ("CONNECT", "tunnel.here.test", "", ""),
    ("CONNECT", "denied.here.test", "", "host"),
    ("CONNECT", "DENIED.here.test.", "", "host"),
    ("CONNECT", "www.denied.here.test", "", "host"),
    ("CONNECT", "plain.here.test", "", "scheme"),
    ("GET", "plain.here.test", "/", ""),
    ("CONNECT", "open.here.test", "", ""),
    ("GET", "past.here.test", "/", ""),
    ("GET", "now.here.test", "/", "now"),
    ("CONNECT", "now.here.test", "", "now"),
    ("GET", "later.here.test", "/", ""),
    ("GET", "127.0.0.1", "/", ""),
    ("GET", "127.0.0.2", "/", "address"),
    ("GET", "127.0.0.2.", "/", "address"),
    ("GET", "[::ffff:127.0.0.2]", "/", "address"),
    ("GET", "[::ffff:7f00:2]", "/", "address"),
    ("GET", "[0:0:0:0:0:ffff:127.0.0.2]", "/", "address"),
    ("CONNECT", "127.0.0.2", "", "address"),
    ("CONNECT", "[::ffff:127.0.0.2]", "", "address"),
    ("GET", "metadata.test", "/", "address"),
    ("GET", "METADATA.test.", "/", "address"),
    ("GET", "169.254.169.254", "/", "address"),
    ("CONNECT", "metadata.test", "", "address"),
    ("POST", "metadata.test", "/", "address"),
    ("GET", "clients.here.test", "/", "client"),
    ("CONNECT", "clients.here.test", "", "client"),
];

#[test]
fn each_request_is_judged_by_the_first_rule_that_fits() {
    let origin = origin();
    let port = origin.addr.port();
    let foxy = Foxy::start(Role::Forward, config(rules(), port), 1);
    for (method, host, path, rule) in CASES {
        let target = match *method {
            "CONNECT" => format!("{host}:{port}"),
            _ => format!("http://{host}:{port}{path}"),
        };
        let mut client = foxy.connect();
        client.send(format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        ));
        // The answer to CONNECT is a tunnel without an end, so only the head of the answer is read.
        let answer = client.answer_to(if *method == "CONNECT" { "HEAD" } else { method });
        let through = answer.status != 403;
        assert_eq!(
            through,
            rule.is_empty(),
            "{method} {target}: {}",
            answer.head
        );
        if !through {
            assert!(refused(&answer, rule), "{method} {target}: {}", answer.head);
        }
    }
}

/// Sends requests with other spellings of denied addresses, and with hosts that two parsers could read
/// differently. None of them may reach a server. Foxy refuses some of them before it applies any rule.
#[test]
fn other_spellings_of_denied_places_lead_nowhere() {
    let origin = origin();
    let port = origin.addr.port();
    let bad = TcpListener::bind(("127.0.0.2", port)).unwrap();
    bad.set_nonblocking(true).unwrap();
    let foxy = Foxy::start(Role::Forward, config(rules(), port), 1);
    for host in [
        // 127.0.0.2 in decimal, octal, hexadecimal, and with parts left out.
        "2130706434",
        "0177.0.0.2",
        "0x7f.0.0.2",
        "0x7f000002",
        "127.2",
        "127.0.2",
        "127.0.0.02",
        "[::127.0.0.2]",
        "[64:ff9b::7f00:2]",
        "[::ffff:0:127.0.0.2]",
        "user@127.0.0.2",
        "open.here.test@127.0.0.2",
        "denied.here.test%00.open.here.test",
        "denied.here.test#.open.here.test",
        "open.here.test%2f@denied.here.test",
        "%64enied.here.test",
        "d\u{e9}nied.here.test",
        "denied\u{3002}here.test",
        "xn--",
        "denied..here.test",
        ".denied.here.test",
        "denied.here.test..",
    ] {
        for target in [format!("http://{host}:{port}/"), format!("{host}:{port}")] {
            let method = if target.starts_with("http") {
                "GET"
            } else {
                "CONNECT"
            };
            let mut client = foxy.connect();
            client.send(format!(
                "{method} {target} HTTP/1.1\r\nHost: open.here.test\r\nConnection: close\r\n\r\n"
            ));
            let answer = client.answer_to(method);
            assert!(answer.status >= 400, "{target}: {}", answer.head);
        }
    }
    assert_eq!(origin.asked(), 0);
    assert!(bad.accept().is_err(), "nobody came");
}

#[test]
fn the_target_counts_and_not_the_host_field() {
    let origin = origin();
    let port = origin.addr.port();
    let foxy = Foxy::start(Role::Forward, config(rules(), port), 1);
    let ask = |target: &str, host: &str| {
        foxy.ask(&format!(
            "GET http://{target}:{port}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ))
    };
    let hidden = ask("denied.here.test", "open.here.test");
    assert!(refused(&hidden, "host"), "{}", hidden.head);
    assert_ne!(ask("open.here.test", "denied.here.test").status, 403);
}

#[test]
fn a_refusal_shows_its_rule_and_the_text_of_the_operator() {
    let origin = origin();
    let foxy = Foxy::start(Role::Forward, config(rules(), origin.addr.port()), 1);
    let answer = foxy.ask("GET http://denied.here.test/ HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(
        answer.text().contains("Not &lt;here>."),
        "{}",
        answer.text()
    );
    assert!(answer.cache().contains("rule"), "{}", answer.cache());
    assert_eq!(answer.field("Cache-Control"), Some("no-store"));
    // Foxy writes the log record after the answer, so the test waits for it.
    while foxy.logged().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(
        foxy.logged()[0],
        "denied 403 rule-denies http://denied.here.test/"
    );
}

#[test]
fn what_is_stored_is_not_given_to_whom_a_rule_denies() {
    let origin = origin();
    let port = origin.addr.port();
    let trusting = |rules| Config {
        access: Access {
            trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
            ..Access::default()
        },
        ..config(rules, port)
    };
    let only = Rule {
        hosts: hosts(&["a.here.test"]),
        clients: vec!["10.0.0.7/32".parse().unwrap()],
        ..Rule::default()
    };
    let rules = vec![only, deny("others")];
    let foxy = Foxy::start(Role::Forward, trusting(rules), 1);
    let mut client = foxy.connect();
    // A trusted proxy sends the requests of two clients over one connection, and also in one packet.
    let get = |from: &str| {
        format!(
            "GET http://a.here.test:{port}/x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {from}\r\n\r\n"
        )
    };
    let mut ask = |from: &str| {
        client.send(get(from));
        client.answer().status
    };
    assert_eq!((ask("10.0.0.8"), ask("10.0.0.7")), (403, 200));
    assert_eq!((ask("10.0.0.7"), ask("10.0.0.8")), (200, 403));
    client.send(get("10.0.0.7") + &get("10.0.0.8") + &get("10.0.0.7"));
    let all = [(); 3].map(|()| client.answer().status);
    assert_eq!(all, [200, 403, 200]);
    assert_eq!(origin.asked(), 1, "the others were hits or refusals");
}

#[test]
fn a_bypass_neither_reads_nor_writes_the_cache() {
    let origin = origin();
    let port = origin.addr.port();
    let foxy = Foxy::start(Role::Forward, config(rules(), port), 1);
    for _ in 0..2 {
        let answer = foxy.ask(&format!(
            "GET http://past.here.test:{port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        ));
        assert!(answer.cache().contains("fwd=bypass"), "{}", answer.cache());
    }
    assert_eq!(origin.asked(), 2);
}

#[test]
fn times_begin_and_end_while_a_connection_lasts() {
    let origin = origin();
    let port = origin.addr.port();
    let foxy = Foxy::start(Role::Forward, config(rules(), port), 1);
    let mut client = foxy.connect();
    let mut ask = |host: &str| {
        client.send(format!(
            "GET http://{host}:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n"
        ));
        client.answer().status
    };
    assert_eq!((ask("now.here.test"), ask("later.here.test")), (403, 200));
    foxy.clock.advance(Duration::from_secs(60));
    assert_eq!((ask("now.here.test"), ask("later.here.test")), (200, 403));
    foxy.clock.advance(Duration::from_secs(120));
    assert_eq!((ask("now.here.test"), ask("later.here.test")), (200, 200));
}

#[test]
fn a_reload_brings_other_rules() {
    use foxy_proxy::Serves;
    let origin = origin();
    let port = origin.addr.port();
    let mut foxy = Foxy::start(Role::Forward, config(Vec::new(), port), 1);
    let addr = foxy.addr;
    let mut client = foxy.connect();
    let mut ask = |path: &str| {
        client.send(format!(
            "GET http://a.here.test:{port}{path} HTTP/1.1\r\nHost: x\r\n\r\n"
        ));
        client.answer().status
    };
    assert_eq!(ask("/a"), 200);
    let listeners = [(addr, Serves::One(Role::Forward))];
    foxy.renew(config(vec![deny("all")], port), false, &listeners);
    assert_eq!(ask("/a"), 403, "stored, and the connection is an old one");
    foxy.renew(Config::default(), false, &listeners);
    assert_eq!(ask("/a"), 200);
}

#[test]
fn sites_are_judged_by_the_hosts_that_clients_name() {
    let origin = origin();
    let site = Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        ..Site::default()
    };
    let rules = vec![
        Rule {
            sites: vec!["blog".to_owned()],
            ..deny("other-site")
        },
        Rule {
            sites: vec!["shop".to_owned()],
            hosts: hosts(&["intern.test"]),
            ..deny("intern")
        },
        Rule {
            sites: vec!["shop".to_owned()],
            methods: vec!["DELETE".to_owned()],
            ..deny("delete")
        },
    ];
    let foxy = Foxy::start(Role::Site(site), config(rules, 0), 1);
    let ask = |method: &str, host: &str, fields: &str| {
        let text = format!("{method} / HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        foxy.ask(&text)
    };
    assert_eq!(ask("GET", "www.test", "").status, 200);
    assert!(refused(&ask("GET", "intern.test", ""), "intern"));
    assert!(refused(&ask("GET", "INTERN.test:80", ""), "intern"));
    assert!(refused(&ask("DELETE", "www.test", ""), "delete"));
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    assert!(refused(&ask("GET", "intern.test", upgrade), "intern"));
}
