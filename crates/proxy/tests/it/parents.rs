//! Requests through parents, which are other proxies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::tls::{Authority, Front, Manner};
use crate::common::{Foxy, Origin, refusing};
use crate::tls_clients::{certificates, listening};
use foxy_proxy::access_rules::{Action, HostPattern, Rule, RuleSet};
use foxy_proxy::{
    Access, Config, Gatekeeper, HeaderConfig, LoginsConfig, ParentBalance, ParentGroup,
    ParentServer, Role, Serves,
};

fn group(servers: &[SocketAddr], login: Option<&str>) -> ParentGroup {
    let server = |addr: &SocketAddr| ParentServer {
        host: addr.ip().to_string(),
        port: addr.port(),
        tls: None,
        login: login.map(str::to_owned),
    };
    ParentGroup {
        name: "up".to_owned(),
        servers: servers.iter().map(server).collect(),
        balance: ParentBalance::Failover,
        always: true,
        schemes: Vec::new(),
        except: vec![HostPattern::new("direct.here.test")],
    }
}

fn child(rules: Vec<Rule>, group: ParentGroup) -> Config {
    let gate = Gatekeeper::new(RuleSet::new(rules), jiff::tz::TimeZone::UTC);
    Config {
        gatekeeper: Some(Arc::new(gate.with_parents(vec![group]))),
        // If one process starts two proxies at the same moment, both choose the same name for Via. So the
        // child (the proxy that uses the parent) has a configured name.
        headers: HeaderConfig {
            instance: "child".to_owned(),
            ..HeaderConfig::default()
        },
        ..Config::default()
    }
}

fn origin() -> Origin {
    Origin::start(|asked| {
        let head = asked.head.clone();
        asked.reply("200 OK", "Cache-Control: max-age=600\r\n", head);
        true
    })
}

fn get(host: &str, port: u16, path: &str) -> String {
    format!("GET http://{host}:{port}{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_foxy_behind_a_foxy_has_one_copy_each_and_the_age_is_right() {
    let origin = origin();
    let port = origin.addr.port();
    let parent = Foxy::forward();
    let foxy = Foxy::start(
        Role::Forward,
        child(Vec::new(), group(&[parent.addr], None)),
        1,
    );
    let answer = foxy.ask(&get("a.here.test", port, "/x"));
    assert_eq!(answer.status, 200, "{}", answer.head);
    // The field Via shows that the request has passed two proxies. The origin gets the target in origin form.
    assert!(
        answer.text().starts_with("GET /x HTTP/1.1"),
        "{}",
        answer.text()
    );
    assert_eq!(
        answer.text().matches("1.1 foxy-").count(),
        2,
        "{}",
        answer.text()
    );
    for foxy in [&foxy, &parent] {
        // In the head of the child's answer, the parent's Cache-Status comes before the child's. So the test
        // searches the complete head.
        let again = foxy.ask(&get("a.here.test", port, "/x"));
        assert!(again.head.contains("; hit"), "{}", again.head);
    }
    // The parent's copy gets older. The age that the child states is the age that the parent stated, plus the
    // time since then.
    parent.clock.advance(Duration::from_secs(30));
    let other = parent.ask(&get("a.here.test", port, "/y"));
    assert_eq!(other.status, 200);
    parent.clock.advance(Duration::from_secs(20));
    let late = foxy.ask(&get("a.here.test", port, "/y"));
    assert_eq!(late.field("Age"), Some("20"), "{}", late.head);
    foxy.clock.advance(Duration::from_secs(5));
    let later = foxy.ask(&get("a.here.test", port, "/y"));
    assert_eq!(later.field("Age"), Some("25"), "{}", later.head);
    assert_eq!(origin.asked(), 2);
    // Some hosts are asked without a parent.
    let direct = foxy.ask(&get("direct.here.test", port, "/x"));
    assert_eq!(
        direct.text().matches("1.1 foxy-").count(),
        1,
        "{}",
        direct.text()
    );
}

/// A destination and a parent that both use TLS. The tunnel has TLS inside TLS.
#[test]
fn a_parent_over_tls_leads_to_destinations_over_tls() {
    let (authority, strangers) = (Authority::new(), Authority::new());
    let body: Vec<u8> = (0..3_000_000).map(|i| (i % 251) as u8).collect();
    let sent = body.clone();
    let origin = Origin::start(move |asked| {
        if asked.path() == "/end" {
            asked.raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nto the end");
            return false;
        }
        asked.reply("200 OK", "Cache-Control: no-store\r\n", sent.clone());
        true
    });
    let made = authority.certificate(&["a.here.test"], |_| {});
    let front = Front::start(authority.server(&made), origin.addr, Manner::default());
    let truncates = Manner {
        truncates: true,
        ..Manner::default()
    };
    let cutting = Front::start(authority.server(&made), origin.addr, truncates);
    let [port, cut] = [&front, &cutting].map(|front| front.addr.port());
    let names = certificates(&authority, &["up.here.test"], None);
    let mut config = Config::default();
    config.access.connect_ports = vec![port, cut];
    let parent = listening(Role::Forward, &names, config);
    let foxy = |outer: &Authority, inner: &Authority, name: &str| {
        let mut group = group(&[parent.addr], None);
        group.servers[0].host = name.to_owned();
        group.servers[0].tls = Some(outer.trusted());
        let mut config = child(Vec::new(), group);
        config.upstream.tls = inner.trusted();
        Foxy::start(Role::Forward, config, 1)
    };
    let get_at = |foxy: &Foxy, port: u16, path: &str| {
        foxy.ask(&format!(
            "GET https://a.here.test:{port}{path} HTTP/1.1\r\nHost: x\r\n\r\n"
        ))
    };
    let get = |foxy: &Foxy, path: &str| get_at(foxy, port, path);
    let good = foxy(&authority, &authority, "up.here.test");
    for path in ["/one", "/two"] {
        let answer = get(&good, path);
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert!(answer.body == body, "{path}: {} bytes", answer.body.len());
    }
    // Both requests used one connection to the destination.
    assert_eq!(front.full.load(Ordering::SeqCst), 1);
    // A body without a length is complete only if the origin announces the end of the inner TLS connection.
    // The parent announces the end of the outer connection in both cases.
    for (port, whole) in [(port, true), (cut, false)] {
        let first = get_at(&good, port, "/end");
        assert_eq!(first.whole, whole, "{}", first.head);
        let again = get_at(&good, port, "/end");
        assert_eq!(again.cache().contains("; hit"), whole, "{}", again.cache());
    }
    // The certificates of the parent and of the destination are both checked against the requested names.
    for (foxy, reason) in [
        (
            foxy(&strangers, &authority, "up.here.test"),
            "origin-certificate-issuer",
        ),
        (
            foxy(&authority, &strangers, "up.here.test"),
            "origin-certificate-issuer",
        ),
        (
            foxy(&authority, &authority, "other.here.test"),
            "origin-tls-handshake",
        ),
    ] {
        let answer = get(&foxy, "/one");
        assert_eq!(answer.status, 502, "{}", answer.head);
        assert!(answer.cache().contains(reason), "{}", answer.cache());
    }
    assert_eq!(origin.asked(), 5);
}

#[test]
fn a_parent_gets_its_login_and_nobody_else_does() {
    let origin = origin();
    let port = origin.addr.port();
    let logins = LoginsConfig {
        realm: "up".to_owned(),
        at: vec!["forward".to_owned()],
        required: true,
        passwords: [("child".to_owned(), bcrypt::hash("secret", 4).unwrap())]
            .into_iter()
            .collect(),
        lifetime: Duration::from_secs(60),
        threads: 1,
        queue: 8,
        ..LoginsConfig::default()
    };
    let gate = Gatekeeper::new(RuleSet::new(Vec::new()), jiff::tz::TimeZone::UTC);
    let guarded = Config {
        access: Access {
            connect_ports: vec![port],
            ..Access::default()
        },
        gatekeeper: Some(Arc::new(gate.with_logins(Some(logins)))),
        ..Config::default()
    };
    let parent = Foxy::start(Role::Forward, guarded, 1);
    for (login, status) in [
        (Some("child:secret"), 200),
        (Some("child:x"), 502),
        (None, 502),
    ] {
        let mut config = child(Vec::new(), group(&[parent.addr], login));
        config.access.connect_ports = vec![port];
        let foxy = Foxy::start(Role::Forward, config, 1);
        let answer = foxy.ask(&get("a.here.test", port, "/x"));
        assert_eq!(answer.status, status, "{login:?} {}", answer.head);
        assert!(!answer.text().contains("Proxy-Auth"), "{}", answer.text());
        assert!(
            answer.field("Proxy-Authenticate").is_none(),
            "{}",
            answer.head
        );
        if status == 502 {
            assert!(
                answer.cache().contains("parent-wants-login"),
                "{}",
                answer.cache()
            );
        }
        let mut tunnel = foxy.connect();
        tunnel.send(format!(
            "CONNECT a.here.test:{port} HTTP/1.1\r\nHost: x\r\n\r\n"
        ));
        let head = tunnel.head();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        if status == 200 {
            tunnel.send("GET /in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            assert!(tunnel.answer().text().starts_with("GET /in HTTP/1.1"));
        }
    }
}

#[test]
fn a_parent_that_cannot_be_reached_is_followed_by_the_next() {
    let origin = origin();
    let port = origin.addr.port();
    let (_dead, gone) = refusing();
    let parent = Foxy::forward();
    let servers = [gone, parent.addr];
    let foxy = Foxy::start(Role::Forward, child(Vec::new(), group(&servers, None)), 1);
    assert_eq!(foxy.ask(&get("a.here.test", port, "/x")).status, 200);
    let post = "POST http://a.here.test:PORT/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx";
    let post = post.replace("PORT", &port.to_string());
    assert_eq!(foxy.ask(&post).status, 200);
    let alone = Foxy::start(Role::Forward, child(Vec::new(), group(&[gone], None)), 1);
    let answer = alone.ask(&get("a.here.test", port, "/x"));
    assert_eq!(answer.status, 502, "{}", answer.head);
    assert!(
        answer.cache().contains("origin-unreachable"),
        "{}",
        answer.cache()
    );
}

#[test]
fn a_parent_that_is_oneself_is_a_loop() {
    let mut foxy = Foxy::forward();
    let addr = foxy.addr;
    let listeners = [(addr, Serves::One(Role::Forward))];
    foxy.renew(child(Vec::new(), group(&[addr], None)), false, &listeners);
    let answer = foxy.ask(&get("a.here.test", 80, "/x"));
    assert_eq!(answer.status, 508, "{}", answer.head);
}

#[test]
fn a_rule_sends_requests_through_a_parent_and_addresses_stay_guarded() {
    let origin = origin();
    let port = origin.addr.port();
    let parent = Foxy::forward();
    let rule = Rule {
        name: "up".to_owned(),
        hosts: vec![
            HostPattern::new("far.here.test"),
            HostPattern::new("169.254.169.254"),
        ],
        action: Action::Parent("up".to_owned()),
        ..Rule::default()
    };
    let mut group = group(&[parent.addr], None);
    group.always = false;
    let foxy = Foxy::start(Role::Forward, child(vec![rule], group), 1);
    for (host, hops) in [("far.here.test", 2), ("near.here.test", 1)] {
        let answer = foxy.ask(&get(host, port, "/x"));
        assert_eq!(answer.text().matches("1.1 foxy-").count(), hops, "{host}");
    }
    let guarded = foxy.ask(&get("169.254.169.254", 80, "/"));
    assert_eq!(guarded.status, 403, "{}", guarded.head);
    assert!(
        guarded.cache().contains("special-address"),
        "{}",
        guarded.cache()
    );
}

#[test]
fn a_parent_is_not_asked_for_an_address_that_is_guarded() {
    let parent = TcpListener::bind("127.0.0.1:0").unwrap();
    parent.set_nonblocking(true).unwrap();
    let group = group(&[parent.local_addr().unwrap()], None);
    let foxy = Foxy::start(Role::Forward, child(Vec::new(), group), 1);
    for host in ["169.254.169.254", "[::ffff:169.254.169.254]"] {
        let guarded = foxy.ask(&get(host, 80, "/"));
        assert_eq!(guarded.status, 403, "{}", guarded.head);
        assert!(guarded.cache().contains("special-address"), "{host}");
    }
    assert!(parent.accept().is_err(), "nobody came");
}

#[test]
fn other_proxies_get_absolute_targets() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = other.local_addr().unwrap();
    let seen = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let mut bytes = [0; 4096];
        let n = stream.read(&mut bytes).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .unwrap();
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    });
    let foxy = Foxy::start(
        Role::Forward,
        child(Vec::new(), group(&[addr], Some("u:p"))),
        1,
    );
    assert_eq!(foxy.ask(&get("a.here.test", 8081, "/x?y")).status, 200);
    let head = seen.join().unwrap();
    assert!(
        head.starts_with(
            "GET http://a.here.test:8081/x?y HTTP/1.1\r\nProxy-Authorization: Basic dTpw\r\n\
             Host: a.here.test:8081\r\n"
        ),
        "{head}"
    );
}

#[test]
fn browsers_find_the_proxy() {
    let config = Config {
        pac: Some(vec![HostPattern::new(".lan.test")]),
        ..Config::default()
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    let answer = foxy.ask("GET /proxy.pac HTTP/1.1\r\nHost: proxy.test:3128\r\n\r\n");
    assert_eq!(answer.status, 200);
    let kind = "application/x-ns-proxy-autoconfig";
    assert_eq!(answer.field("Content-Type"), Some(kind));
    assert!(answer.text().contains("return \"PROXY proxy.test:3128\""));
    assert!(answer.text().contains("lan.test"));
    let other = foxy.ask("GET /other HTTP/1.1\r\nHost: proxy.test\r\n\r\n");
    assert_eq!(other.status, 400);
    let without = Foxy::forward();
    let answer = without.ask("GET /proxy.pac HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(answer.status, 400);
}
