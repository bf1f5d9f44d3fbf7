//! Access control for clients, ports and purges, on real sockets.

use std::net::IpAddr;

use crate::common::{Answer, Foxy, Origin};
use foxy_proxy::{Access, Config, Role, Site, Token};

const TOKEN: &str = "0123456789abcdef0123";

fn with(access: Access) -> Config {
    Config {
        access,
        ..Config::default()
    }
}

fn forward(access: Access) -> Foxy {
    Foxy::start(Role::Forward, with(access), 1)
}

/// An origin whose answers are storable, have a `Surrogate-Key`, and contain the head of the request.
fn origin() -> Origin {
    Origin::start(|asked| {
        let fields = "Cache-Control: max-age=600\r\nSurrogate-Key: news\r\n";
        let head = asked.head.clone();
        asked.reply("200 OK", fields, head);
        true
    })
}

fn ask(foxy: &Foxy, method: &str, url: &str, fields: &str) -> Answer {
    let host = url.split('/').nth(2).unwrap_or_default().to_owned();
    let mut client = foxy.connect();
    client.send(format!(
        "{method} {url} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
    ));
    client.answer_to(method)
}

#[test]
fn strangers_may_not_use_a_forward_proxy() {
    let origin = origin();
    let strangers = Access {
        allow_clients: vec!["192.0.2.0/24".parse().unwrap()],
        ..Access::default()
    };
    let foxy = forward(strangers);
    let url = format!("http://{}/a", origin.authority());
    let connect = format!(
        "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n",
        origin.authority()
    );
    let refused = [
        ask(&foxy, "GET", &url, ""),
        ask(&foxy, "PURGE", &url, ""),
        foxy.ask(&connect),
        foxy.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        foxy.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
    ];
    for answer in refused {
        assert_eq!(answer.status, 403, "{}", answer.head);
        assert!(
            answer.cache().ends_with("detail=client-not-allowed"),
            "{}",
            answer.cache()
        );
    }
    assert_eq!(origin.asked(), 0);
    assert!(foxy.logged()[0].starts_with("denied 403 client-not-allowed"));
}

#[test]
fn behind_a_trusted_proxy_each_request_has_its_own_client() {
    let origin = origin();
    let foxy = forward(Access {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        ..Access::default()
    });
    let mut client = foxy.connect();
    for (fields, status) in [
        ("X-Forwarded-For: 203.0.113.9\r\n", 403),
        ("X-Forwarded-For: 10.0.0.1, 203.0.113.9\r\n", 403),
        ("Forwarded: for=203.0.113.9\r\n", 403),
        ("X-Forwarded-For: 10.0.0.1\r\n", 200),
        ("", 200),
        ("X-Forwarded-For: nonsense\r\n", 403),
        ("X-Forwarded-For: 203.0.113.9, 10.0.0.1\r\n", 200),
    ] {
        let host = origin.authority();
        client.send(format!(
            "GET http://{host}/a HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
        ));
        assert_eq!(client.answer().status, status, "{fields}");
    }
}

#[test]
fn plain_requests_reach_safe_ports_alone() {
    let origin = origin();
    let foxy = Foxy::forward();
    for port in [25, 22, 6379, 587] {
        let answer = ask(&foxy, "GET", &format!("http://127.0.0.1:{port}/"), "");
        let refused = answer.cache().ends_with("detail=port-not-allowed");
        assert_eq!(refused, port != 6379, "{port} {}", answer.head);
    }
    let upload = "POST http://127.0.0.1:25/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nHELO";
    assert!(
        foxy.ask(upload)
            .cache()
            .ends_with("detail=port-not-allowed")
    );
    // The setting `ports` restricts only the forward proxy, and not the port of a site's configured origin.
    let none = Access {
        ports: vec![80..=80],
        ..Access::default()
    };
    let url = format!("http://{}/a", origin.authority());
    let forward = forward(none.clone());
    assert_eq!(ask(&forward, "GET", &url, "").status, 403);
    let site = site(&origin, none);
    assert_eq!(ask(&site, "GET", &url, "").status, 200);
}

fn site(origin: &Origin, access: Access) -> Foxy {
    let site = Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        ..Site::default()
    };
    Foxy::start(Role::Site(site), with(access), 1)
}

#[test]
fn a_name_that_turns_to_the_machines_own_public_address_is_refused() {
    let open = Access {
        loopback_only: false,
        ..Access::default()
    };
    let own = open.local_addresses.clone();
    let foxy = forward(open);
    // The machine gets this address after the start.
    own.set(vec![IpAddr::from([192, 0, 2, 7]).into()]);
    for request in [
        "GET http://rebound.test:8080/a HTTP/1.1\r\nHost: rebound.test:8080\r\n\r\n",
        "GET http://192.0.2.7:8080/a HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT rebound.test:443 HTTP/1.1\r\nHost: rebound.test:443\r\n\r\n",
    ] {
        let answer = foxy.ask(request);
        assert_eq!(answer.status, 403, "{request}");
        assert!(
            answer.cache().ends_with("detail=destination-own-machine"),
            "{}",
            answer.cache()
        );
    }
}

#[test]
fn a_tunnel_obeys_the_guard_on_resolved_addresses() {
    let tunnels = |loopback_only| {
        forward(Access {
            connect_ports: vec![80, 443],
            loopback_only,
            ..Access::default()
        })
    };
    let connect = |foxy: &Foxy, to: &str| {
        let answer = foxy.ask(&format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n"));
        answer.cache()
    };
    for (to, reason) in [
        ("metadata.test:80", "destination-special-address"),
        ("169.254.169.254:80", "destination-special-address"),
        ("168.63.129.16:80", "destination-special-address"),
        ("100.100.100.200:80", "destination-special-address"),
        ("[fd00:ec2::254]:80", "destination-special-address"),
        ("origin.test:443", "destination-private-address"),
        ("[::1]:443", "destination-private-address"),
    ] {
        let said = connect(&tunnels(false), to);
        assert!(said.ends_with(reason), "{to}: {said}");
    }
    let said = connect(&tunnels(true), "168.63.129.16:80");
    assert!(said.ends_with("destination-special-address"), "{said}");
}

const PAGE: &str = "Origin: http://evil.test\r\nReferer: http://evil.test/\r\n";

/// Purges that must be refused: path, fields, and the reason word of the refusal.
const ATTACKS: &[(&str, &str, &str)] = &[
    ("/a", PAGE, "purge-from-a-page"),
    ("/a", "Origin: null\r\n", "purge-from-a-page"),
    ("/a", "Sec-Fetch-Site: same-origin\r\n", "purge-from-a-page"),
    (
        "/a",
        "Sec-Fetch-Mode: cors\r\nX-Purge-Method: all\r\n",
        "purge-from-a-page",
    ),
    ("/a", "Via: 1.1 front\r\n", "purge-forwarded"),
    ("/a", "X-Forwarded-For: 203.0.113.9\r\n", "purge-forwarded"),
    ("/a", "X-Forwarded-For: 127.0.0.1\r\n", "purge-forwarded"),
    ("/a", "Forwarded: for=127.0.0.1\r\n", "purge-forwarded"),
    ("/a", "X-Real-IP: 127.0.0.1\r\n", "purge-forwarded"),
    ("/a", "X-Purge-Method: all\r\n", "purge-beyond-url"),
    ("/a", "X-Purge-Method: host\r\n", "purge-beyond-url"),
    ("/", "X-Purge-Method: prefix\r\n", "purge-beyond-url"),
    ("/|.", "X-Purge-Method: regex\r\n", "purge-beyond-url"),
    ("/", "X-Purge-Method: soft, all\r\n", "purge-beyond-url"),
    ("/", "Surrogate-Key: news\r\n", "purge-beyond-url"),
    ("/", "Cache-Tag: news\r\n", "purge-beyond-url"),
    ("/", "xkey-purge: news\r\n", "purge-beyond-url"),
    ("/", "xkey-softpurge: news\r\n", "purge-beyond-url"),
    (
        "/a",
        "Authorization: Bearer wrong\r\nVia: 1.1 x\r\n",
        "purge-forwarded",
    ),
    (
        "/a",
        "X-Foxy-Token: wrong\r\nX-Purge-Method: all\r\n",
        "purge-beyond-url",
    ),
];

#[test]
fn remote_purges_and_purges_beyond_the_url_are_refused() {
    let origin = origin();
    let foxy = forward(Access {
        token: Token::new(TOKEN),
        ..Access::default()
    });
    let url = |path: &str| format!("http://{}{path}", origin.authority());
    for path in ["/a", "/b"] {
        ask(&foxy, "GET", &url(path), "");
    }
    for (path, fields, reason) in ATTACKS {
        let answer = ask(&foxy, "PURGE", &url(path), fields);
        assert_eq!(answer.status, 403, "{fields} {}", answer.head);
        assert!(
            answer.cache().ends_with(*reason),
            "{fields} {}",
            answer.cache()
        );
        assert!(answer.text().contains("admin address"), "{}", answer.text());
    }
    for path in ["/a", "/b"] {
        assert!(
            ask(&foxy, "GET", &url(path), "").cache().contains("hit"),
            "{path}"
        );
    }
    assert_eq!(origin.asked(), 2);
    // A client on this machine may purge a single URL without the admin credential. With the credential, it
    // may send every kind of purge.
    assert_eq!(ask(&foxy, "PURGE", &url("/a"), "").status, 200);
    assert!(ask(&foxy, "GET", &url("/b"), "").cache().contains("hit"));
    let all = format!("Authorization: Bearer {TOKEN}\r\n{PAGE}X-Purge-Method: all\r\n");
    let purged = ask(&foxy, "PURGE", &url("/a"), &all);
    assert_eq!(
        (purged.status, purged.text().as_str()),
        (200, "{\"purges\": [1]}\n")
    );
    ask(&foxy, "GET", &url("/b"), "");
    assert_eq!(origin.asked(), 3);
}

#[test]
fn a_stranger_behind_a_front_end_purges_nothing_of_a_site() {
    let origin = origin();
    let trusting = Access {
        trusted_proxies: vec!["127.0.0.1/32".parse().unwrap()],
        ..Access::default()
    };
    let url = "http://shop.test/a";
    for (access, fields, status) in [
        (Access::default(), "X-Forwarded-For: 203.0.113.9\r\n", 403),
        (Access::default(), "X-Forwarded-For: 127.0.0.1\r\n", 403),
        (trusting.clone(), "X-Forwarded-For: 203.0.113.9\r\n", 403),
        (
            trusting.clone(),
            "X-Forwarded-For: 127.0.0.1, 203.0.113.9\r\n",
            403,
        ),
        (
            trusting.clone(),
            "Forwarded: for=\"[2001:db8::1]\"\r\n",
            403,
        ),
        (trusting, "X-Forwarded-For: ::1\r\n", 200),
    ] {
        let foxy = site(&origin, access);
        ask(&foxy, "GET", url, "");
        assert_eq!(ask(&foxy, "PURGE", url, fields).status, status, "{fields}");
        let hit = ask(&foxy, "GET", url, "").cache().contains("hit");
        assert_eq!(hit, status == 403, "{fields}");
    }
}

#[test]
fn a_flood_of_purges_is_refused_and_does_not_delay_the_operator() {
    let origin = origin();
    let foxy = forward(Access {
        purge_rate: 2,
        token: Token::new(TOKEN),
        ..Access::default()
    });
    let url = |path: &str| format!("http://{}{path}", origin.authority());
    ask(&foxy, "GET", &url("/a"), "");
    let statuses: Vec<u16> = (0..30)
        .map(|n| ask(&foxy, "PURGE", &url(&format!("/{n}")), "").status)
        .collect();
    assert_eq!(statuses.iter().filter(|s| **s == 404).count(), 20);
    assert_eq!(statuses.iter().filter(|s| **s == 429).count(), 10);
    let refused = ask(&foxy, "PURGE", &url("/a"), "X-Purge-Method: soft\r\n");
    assert_eq!(
        (refused.status, refused.field("Retry-After")),
        (429, Some("1"))
    );
    assert!(ask(&foxy, "GET", &url("/a"), "").cache().contains("hit"));
    let operator = format!("X-Foxy-Token: {TOKEN}\r\n");
    assert_eq!(ask(&foxy, "PURGE", &url("/a"), &operator).status, 200);
    // After one second, the rate limit permits a purge again.
    foxy.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(ask(&foxy, "PURGE", &url("/a"), "").status, 404);
}

#[test]
fn soft_purges_by_clients_leave_operators_room() {
    let origin = origin();
    let foxy = forward(Access {
        purge_rate: 1000,
        token: Token::new(TOKEN),
        ..Access::default()
    });
    let url = |path: &str| format!("http://{}{path}", origin.authority());
    let soft = |n: usize, more: &str| {
        let fields = format!("X-Purge-Method: soft\r\n{more}");
        ask(&foxy, "PURGE", &url(&format!("/{n}")), &fields).status
    };
    let accepted = (0..200).filter(|n| soft(*n, "") == 200).count();
    assert_eq!(accepted, 64);
    assert_eq!(soft(999, &format!("X-Foxy-Token: {TOKEN}\r\n")), 200);
}

#[test]
fn identity_fields_of_strangers_do_not_reach_a_sites_origin() {
    let origin = origin();
    let telling = "X-Forwarded-For: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\n\
                   X-Forwarded-Host: evil.test\r\nX-Forwarded-Proto: https\r\nX-Real-IP: 10.0.0.1\r\n\
                   X-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n";
    let got = ask(
        &site(&origin, Access::default()),
        "GET",
        "http://a.test/x",
        telling,
    )
    .text();
    assert!(got.contains("X-Forwarded-For: 127.0.0.1\r\n"), "{got}");
    for word in ["10.0.0.1", "evil.test", "https", "/admin"] {
        assert!(!got.contains(word), "{word} in {got}");
    }
    let trusting = Access {
        trusted_proxies: vec!["127.0.0.1/32".parse().unwrap()],
        ..Access::default()
    };
    let got = ask(&site(&origin, trusting), "GET", "http://a.test/x", telling).text();
    assert!(
        got.contains("X-Forwarded-For: 10.0.0.1, 127.0.0.1\r\n"),
        "{got}"
    );
    assert!(got.contains("X-Forwarded-Host: evil.test\r\n"), "{got}");
}
