//! Users who log in, on real sockets.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Answer, Foxy, Origin};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_base::WallTime;
use foxy_proxy::access_rules::{Action, HostPattern, Rate, Rule, RuleSet};
use foxy_proxy::{Config, Gatekeeper, Limit, LoginToken, LoginsConfig, Per, Role, Site};
use sha2::{Digest, Sha256};

fn rules() -> Vec<Rule> {
    let host = |text: &str| vec![HostPattern::new(text)];
    let deny = |name: &str| Rule {
        name: name.to_owned(),
        action: Action::Deny,
        ..Rule::default()
    };
    vec![
        Rule {
            hosts: host("staff.here.test"),
            groups: vec!["staff".to_owned()],
            ..Rule::default()
        },
        Rule {
            hosts: host("staff.here.test"),
            ..deny("staff-only")
        },
        Rule {
            hosts: host("open.here.test"),
            ..Rule::default()
        },
        Rule {
            users: vec!["*".to_owned()],
            ..Rule::default()
        },
        deny("strangers"),
    ]
}

fn token(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn logins(at: &str) -> LoginsConfig {
    let hash = |password: &str| bcrypt::hash(password, 4).unwrap();
    LoginsConfig {
        realm: "Foxy".to_owned(),
        at: vec![at.to_owned()],
        passwords: [("alice", "a:1"), ("bob", "b")]
            .map(|(user, password)| (user.to_owned(), hash(password)))
            .into_iter()
            .collect(),
        tokens: [(
            token("token-of-ci"),
            LoginToken {
                user: "ci".to_owned(),
                groups: vec!["staff".to_owned()],
                expires: Some(WallTime::from_secs(crate::common::NOON + 60)),
            },
        )]
        .into_iter()
        .collect(),
        groups: [("alice".to_owned(), vec!["staff".to_owned()])]
            .into_iter()
            .collect(),
        lifetime: Duration::from_secs(300),
        threads: 1,
        queue: 64,
        ..LoginsConfig::default()
    }
}

fn config(rules: Vec<Rule>, logins: LoginsConfig) -> Config {
    let zone = jiff::tz::TimeZone::UTC;
    let gate = Gatekeeper::new(RuleSet::new(rules), zone).with_logins(Some(logins));
    Config {
        gatekeeper: Some(Arc::new(gate)),
        ..Config::default()
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// An origin that repeats the request in a storable answer.
fn origin() -> Origin {
    Origin::start(|asked| {
        let head = asked.head.clone();
        asked.reply("200 OK", "Cache-Control: max-age=600\r\n", head);
        true
    })
}

fn ask(foxy: &Foxy, url: &str, login: &str) -> Answer {
    let login = match login {
        "" => String::new(),
        login => format!("Proxy-Authorization: {login}\r\n"),
    };
    foxy.ask(&format!(
        "GET {url} HTTP/1.1\r\nHost: x\r\n{login}Connection: close\r\n\r\n"
    ))
}

#[test]
fn who_logs_in_gets_what_the_rules_give_and_the_login_goes_nowhere() {
    let origin = origin();
    let port = origin.addr.port();
    let foxy = Foxy::start(Role::Forward, config(rules(), logins("forward")), 1);
    let url = |name: &str| format!("http://{name}.here.test:{port}/");
    let (alice, bob) = (basic("alice", "a:1"), basic("bob", "b"));
    let ci = "Bearer token-of-ci".to_owned();
    for (host, login, status) in [
        // The rule that decides about the host `open` requires no user, so no login is needed. But if a login
        // is sent, it must be right.
        ("open", "", 200),
        ("open", &alice, 200),
        ("open", &basic("alice", "x"), 407),
        ("other", "", 407),
        ("other", &bob, 200),
        ("other", &basic("bob", "a:1"), 407),
        ("other", &basic("eve", "b"), 407),
        ("other", "Basic", 407),
        ("other", "Bearer token-of-cj", 407),
        ("other", &ci, 200),
        ("staff", "", 407),
        ("staff", &alice, 200),
        // The answer is already stored, but the request is denied before the lookup.
        ("staff", &bob, 403),
        ("staff", "", 407),
        ("staff", &ci, 200),
    ] {
        let answer = ask(&foxy, &url(host), login);
        assert_eq!(answer.status, status, "{host} {login}: {}", answer.head);
        assert!(!answer.text().to_lowercase().contains("proxy-authorization"));
        if status == 407 {
            let asks = answer.field("Proxy-Authenticate").unwrap();
            assert!(asks.contains("realm=\"Foxy\""), "{}", answer.head);
        }
    }
    foxy.clock.advance(Duration::from_secs(61));
    assert_eq!(ask(&foxy, &url("other"), &ci).status, 407);
    let log = foxy.logged().join("\n");
    assert!(!log.contains("YWxpY2U") && !log.contains("token-of"));
}

#[test]
fn each_request_of_a_connection_has_its_own_user() {
    let origin = origin();
    let port = origin.addr.port();
    let foxy = Foxy::start(Role::Forward, config(rules(), logins("forward")), 1);
    let mut client = foxy.connect();
    let get = |login: &str| {
        let login = match login {
            "" => String::new(),
            login => format!("Proxy-Authorization: {login}\r\n"),
        };
        format!("GET http://staff.here.test:{port}/ HTTP/1.1\r\nHost: x\r\n{login}\r\n")
    };
    let (alice, bob) = (basic("alice", "a:1"), basic("bob", "b"));
    // All requests are in one packet. The request of the second user does not get the rights of the first
    // user.
    client.send([&alice[..], &bob, "", &alice, "Basic x"].map(get).concat());
    let all = [(); 5].map(|()| client.answer().status);
    assert_eq!(all, [200, 403, 407, 200, 407]);
}

#[test]
fn tunnels_need_a_login_too() {
    let origin = origin();
    let port = origin.addr.port();
    let mut config = config(rules(), logins("forward"));
    config.access.connect_ports = vec![port];
    let foxy = Foxy::start(Role::Forward, config, 1);
    for (login, status) in [("", 407), ("Basic x", 407), (&basic("bob", "b")[..], 200)] {
        let login = match login {
            "" => String::new(),
            login => format!("Proxy-Authorization: {login}\r\n"),
        };
        let mut client = foxy.connect();
        client.send(format!(
            "CONNECT a.here.test:{port} HTTP/1.1\r\nHost: x\r\n{login}\r\n"
        ));
        let head = client.head();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
    }
}

#[test]
fn a_login_at_a_site_is_for_foxy_alone() {
    let origin = origin();
    let site = Site {
        name: "intranet".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        ..Site::default()
    };
    let config = config(rules(), logins("intranet"));
    let foxy = Foxy::start(Role::Site(site), config, 1);
    let ask = |path: &str, login: &str| {
        let login = match login {
            "" => String::new(),
            login => format!("Authorization: {login}\r\n"),
        };
        foxy.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: x.test\r\n{login}Connection: close\r\n\r\n"
        ))
    };
    let first = ask("/a", "");
    assert_eq!(first.status, 401);
    assert!(
        first
            .field("WWW-Authenticate")
            .unwrap()
            .starts_with("Basic")
    );
    let answer = ask("/a", &basic("bob", "b"));
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert!(!answer.text().contains("uthorization"), "{}", answer.text());
    // The stored answer is for all users who may have it. Other users do not get it.
    assert!(ask("/a", &basic("alice", "a:1")).cache().contains("hit"));
    assert_eq!(ask("/a", "").status, 401);
    assert_eq!(ask("/a", &basic("bob", "wrong")).status, 401);
    assert_eq!(origin.asked(), 1);
}

/// Each token has a separate limit. Requests that send the token as the password of its user count against
/// the same limit.
#[test]
fn tokens_of_one_user_are_limited_apart() {
    let origin = origin();
    let mut logins = logins("forward");
    let other = logins.tokens[&token("token-of-ci")].clone();
    logins.tokens.insert(token("another"), other);
    let limit = Limit {
        name: "each".to_owned(),
        per: Per::Token,
        sites: Vec::new(),
        requests: Some(Rate::new(1.0, 2.0)),
        bytes: None,
        under_way: None,
    };
    let gate = Gatekeeper::new(RuleSet::new(rules()), jiff::tz::TimeZone::UTC);
    let gate = gate.with_logins(Some(logins)).with_limits(vec![limit]);
    let config = Config {
        gatekeeper: Some(Arc::new(gate)),
        ..Config::default()
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    let url = format!("http://127.0.0.1:{}/", origin.addr.port());
    let status = |login: &str| ask(&foxy, &url, login).status;
    let by_password = basic("ci", "token-of-ci");
    for (login, expected) in [
        ("Bearer token-of-ci", 200),
        (&by_password, 200),
        ("Bearer token-of-ci", 429),
        (&by_password, 429),
        ("Bearer another", 200),
        ("Bearer another", 200),
        ("Bearer another", 429),
    ] {
        assert_eq!(status(login), expected, "{login}");
    }
}
