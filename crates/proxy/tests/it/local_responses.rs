//! Answers that a site makes without its origins (redirects to https, maintenance, error pages), and the
//! timeouts of a site's origins.

use std::time::Duration;

use crate::common::{Foxy, Origin};
use foxy_proxy::{
    Config, ErrorPage, LocalResponses, Maintenance, OriginTimeouts, Role, Site, ToHttps,
};

fn start(port: u16, change: impl Fn(&mut Site)) -> Foxy {
    let mut site = Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port,
        ..Site::default()
    };
    change(&mut site);
    Foxy::start(Role::Site(site), Config::default(), 1)
}

fn pages() -> Origin {
    Origin::start(|asked| {
        let life = match asked.path() {
            "/stale" => "max-age=1, stale-if-error=600",
            _ => "max-age=60",
        };
        asked.reply("200 OK", &format!("Cache-Control: {life}\r\n"), "page");
        true
    })
}

#[test]
fn plain_requests_are_sent_to_the_same_url_with_https() {
    let origin = pages();
    for (status, port) in [(301, 443), (308, 8443)] {
        let foxy = start(origin.addr.port(), |site| {
            site.local_responses.to_https = Some(ToHttps { status, port });
        });
        let end = if port == 443 { "" } else { ":8443" };
        for (line, host, expected) in [
            (
                "GET /a%20b/../c?x=1&y=%2f",
                "Shop.test:80",
                format!("https://shop.test{end}/a%20b/../c?x=1&y=%2f"),
            ),
            (
                "POST /form",
                "shop.test",
                format!("https://shop.test{end}/form"),
            ),
            (
                "GET http://other.test/z?",
                "shop.test",
                format!("https://other.test{end}/z?"),
            ),
            ("GET /", "[::1]:81", format!("https://[::1]{end}/")),
        ] {
            let answer = foxy.ask(&format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(answer.status, status, "{line}");
            assert_eq!(answer.field("Location"), Some(&expected[..]), "{line}");
            assert_eq!(answer.field("Strict-Transport-Security"), None);
        }
        let old = foxy.ask("GET / HTTP/1.0\r\n\r\n");
        assert_eq!((old.status, old.field("Location")), (400, None));
        // Foxy does not read the body of this request, so it ends the connection.
        let mut client = foxy.connect();
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nGET");
        assert_eq!(client.answer().field("Connection"), Some("close"));
    }
    assert_eq!(origin.asked(), 0);
}

#[test]
fn maintenance_answers_what_is_stored_or_nothing() {
    let origin = pages();
    let get =
        |foxy: &Foxy, path: &str| foxy.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    // The same store is used before and during maintenance.
    let before = start(origin.addr.port(), |_| {});
    for path in ["/kept", "/stale"] {
        assert_eq!(get(&before, path).status, 200);
    }
    let again = |maintenance| {
        let site = Site {
            name: "shop".into(),
            host: "127.0.0.1".into(),
            port: origin.addr.port(),
            local_responses: LocalResponses {
                maintenance,
                retry_after: Duration::from_secs(120),
                ..LocalResponses::default()
            },
            ..Site::default()
        };
        let (engine, clock) = (before.engine.clone(), before.clock.clone());
        Foxy::with_engine(Role::Site(site), Config::default(), 1, engine, clock)
    };
    let asked = origin.asked();
    let foxy = again(Maintenance::Origin);
    assert_eq!(get(&foxy, "/kept").status, 200);
    before.clock.advance(Duration::from_secs(5));
    assert_eq!(get(&foxy, "/stale").status, 200, "stale-if-error");
    let refused = get(&foxy, "/new");
    assert_eq!(
        (refused.status, refused.field("Retry-After")),
        (503, Some("120"))
    );
    assert!(
        refused.cache().contains("maintenance"),
        "{}",
        refused.cache()
    );
    let post = foxy.ask("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!((post.status, post.field("Retry-After")), (503, Some("120")));
    let foxy = again(Maintenance::All);
    for path in ["/kept", "/stale", "/new"] {
        assert_eq!(get(&foxy, path).status, 503, "{path}");
    }
    assert_eq!(
        foxy.ask("PURGE /kept HTTP/1.1\r\nHost: a\r\n\r\n").status,
        200
    );
    assert_eq!(origin.asked(), asked, "the origin was asked");
}

#[test]
fn own_pages_take_the_place_of_foxys_and_not_of_the_origins() {
    let origin = Origin::start(|asked| {
        match asked.path() {
            "/dies" => return false,
            _ => asked.reply("502 Bad Gateway", "", "of the origin"),
        }
        true
    });
    let foxy = start(origin.addr.port(), |site| {
        site.local_responses.pages = [ErrorPage {
            status: 502,
            content_type: "application/json",
            body: b"{}"[..].into(),
        }]
        .into();
    });
    let get = |line: &str| {
        foxy.ask(&format!(
            "{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        ))
    };
    let own = get("GET /dies");
    assert_eq!((own.status, own.text()), (502, "{}".into()));
    assert_eq!(own.field("Content-Type"), Some("application/json"));
    assert_eq!(own.field("Content-Length"), Some("2"));
    assert_eq!(get("GET /fails").text(), "of the origin");
    let other = get("CONNECT a:443");
    assert!(
        other.status == 405 && other.text().contains("<h1>405"),
        "{}",
        other.text()
    );
}

#[test]
fn a_site_has_timeouts_of_its_own() {
    let origin = Origin::start(|asked| {
        if asked.path() == "/half" {
            asked.raw(
                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: no-store\r\n\r\nhalf",
            );
        }
        // The origin waits until Foxy has closed the connection.
        asked.client.to_end();
        false
    });
    let short = Some(Duration::from_millis(300));
    let foxy = start(origin.addr.port(), |site| {
        site.timeouts = OriginTimeouts {
            first_byte: short,
            progress: short,
            connect: None,
        };
    });
    let get = |path: &str| foxy.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let silent = get("/silent");
    assert_eq!(silent.status, 504);
    assert!(
        silent.cache().contains("origin-answer-timeout"),
        "{}",
        silent.cache()
    );
    let half = get("/half");
    assert_eq!((half.status, half.whole), (200, false));
}
