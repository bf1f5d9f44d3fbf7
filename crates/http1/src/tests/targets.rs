//! Tests of targets and authorities: their forms, and the normal form of equal URLs.

use proptest::prelude::*;

use super::with_request;
use crate::{Authority, Escapes, Host, Method, Reject, Scheme, Target, TargetForm, Url};

fn url_of(line: &str, host: &str) -> Option<String> {
    let text = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    with_request(text.as_bytes(), |head| {
        head.url(Scheme::Http).map(|url| {
            let mut out = Vec::new();
            url.write_normalised(&mut out);
            String::from_utf8(out).unwrap()
        })
    })
    .unwrap()
}

#[test]
fn equal_urls_are_written_alike() {
    let cases = [
        ("GET /a?b", "example.com", "http://example.com/a?b"),
        ("GET /a?b", "EXAMPLE.com:80", "http://example.com/a?b"),
        ("GET /a?b", "example.com:", "http://example.com/a?b"),
        ("GET /a?b", "example.com:0080", "http://example.com/a?b"),
        (
            "GET HTTP://Example.COM:80/a?b",
            "other",
            "http://example.com/a?b",
        ),
        ("GET http://example.com", "other", "http://example.com/"),
        ("GET http://example.com?q", "other", "http://example.com/?q"),
        (
            "GET http://example.com:443/",
            "x",
            "http://example.com:443/",
        ),
        ("GET https://example.com:443/", "x", "https://example.com/"),
        (
            "GET https://example.com:80/",
            "x",
            "https://example.com:80/",
        ),
        (
            "GET http://[2001:DB8:0:0::1]:80/",
            "x",
            "http://[2001:db8::1]/",
        ),
        (
            "GET /A%7e/../b",
            "[::FFFF:1.2.3.4]:8080",
            "http://[::ffff:1.2.3.4]:8080/A~/../b",
        ),
        ("GET http://a/@b:c", "x", "http://a/@b:c"),
        ("GET //evil/x", "a", "http://a//evil/x"),
    ];
    for (line, host, want) in cases {
        let got = url_of(line, host);
        if line == "OPTIONS *" {
            assert_eq!(
                got.as_deref(),
                Some("http://a*"),
                "no path begins like that"
            );
        } else {
            assert_eq!(got.as_deref(), Some(want), "{line} {host}");
        }
    }
    let whole_server = url_of("OPTIONS *", "a:80");
    assert_eq!(
        whole_server.as_deref(),
        Some("http://a*"),
        "no path begins like that"
    );
    assert_eq!(url_of("CONNECT a:443", "a"), None);
}

#[test]
fn a_request_of_http_1_0_may_name_no_host() {
    let url = with_request(b"GET /x HTTP/1.0\r\n\r\n", |head| {
        head.url(Scheme::Http).is_none()
    });
    assert_eq!(url, Ok(true));
}

#[test]
fn the_four_forms() {
    let form = |text: &str, method| Target::parse(text.as_bytes(), method).map(|t| t.form);
    assert_eq!(form("/", Method::Get), Ok(TargetForm::Origin));
    assert_eq!(form("http://a", Method::Get), Ok(TargetForm::Absolute));
    assert_eq!(form("a:1", Method::Connect), Ok(TargetForm::Authority));
    assert_eq!(form("*", Method::Options), Ok(TargetForm::Asterisk));
    assert_eq!(form("", Method::Get), Err(Reject::BAD_TARGET));
    assert_eq!(form("*", Method::Connect), Err(Reject::BAD_HOST));
}

#[test]
fn the_form_for_the_origin() {
    let origin = |text: &str, method| {
        let mut out = Vec::new();
        let target = Target::parse(text.as_bytes(), method).unwrap();
        target.write_origin_form(method, Escapes::Normal, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(origin("http://a", Method::Get), "/");
    assert_eq!(origin("http://a?x", Method::Get), "/?x");
    assert_eq!(origin("http://a/b", Method::Get), "/b");
    assert_eq!(origin("/b?c", Method::Get), "/b?c");
    assert_eq!(origin("http://a", Method::Options), "*");
    assert_eq!(origin("http://a/", Method::Options), "/");
    assert_eq!(origin("*", Method::Options), "*");
}

#[test]
fn authorities() {
    let ok = |text: &'static str| Authority::parse(text.as_bytes()).unwrap();
    assert_eq!(ok("a:1").port, Some(1));
    assert_eq!(ok("a").port_or_default(Scheme::Https), 443);
    assert_eq!(ok("[::1]").host, Host::V6("::1".parse().unwrap()));
    let mut out = Vec::new();
    ok("[::1]").write_with_port(Scheme::Https, &mut out);
    ok("[::1]:5").write_host(&mut out);
    ok("Under_Score.example.").write_normalised(Scheme::Http, &mut out);
    assert_eq!(out, b"[::1]:443::1under_score.example.");
    let refused = [
        ("", Reject::EMPTY_HOST),
        (":80", Reject::EMPTY_HOST),
        ("@a", Reject::USERINFO),
        ("[::1", Reject::BAD_HOST),
        ("[]", Reject::BAD_HOST),
        ("[1.2.3.4]", Reject::BAD_HOST),
        ("[fe80::1%25eth0]", Reject::BAD_HOST),
        ("[v1.x]", Reject::BAD_HOST),
        ("[::1]x", Reject::BAD_HOST),
        ("[::1]80", Reject::BAD_HOST),
        ("::1", Reject::EMPTY_HOST),
        ("1::1", Reject::BAD_PORT),
        (".", Reject::BAD_HOST),
        (".a", Reject::BAD_HOST),
        ("a..b", Reject::BAD_HOST),
        ("a..", Reject::BAD_HOST),
        ("a b", Reject::BAD_HOST),
        ("a\tb", Reject::BAD_HOST),
        ("a:+1", Reject::BAD_PORT),
        ("a:000080", Reject::BAD_PORT),
        ("a:99999", Reject::BAD_PORT),
        ("a:1 ", Reject::BAD_PORT),
    ];
    for (text, want) in refused {
        assert_eq!(Authority::parse(text.as_bytes()), Err(want), "{text:?}");
    }
    assert!(Authority::parse("a.".repeat(127).as_bytes()).is_ok());
    assert_eq!(
        Authority::parse("a.".repeat(128).as_bytes()),
        Err(Reject::BAD_HOST)
    );
}

#[test]
fn urls_of_configuration() {
    assert!(Url::parse(b"https://a:8443/base").is_ok());
    assert_eq!(Url::parse(b"http://a/b#c"), Url::parse(b"http://a/b"));
    assert_eq!(Url::parse(b"/a"), Err(Reject::BAD_TARGET));
    assert_eq!(Url::parse(b"a:80"), Err(Reject::BAD_TARGET));
}

proptest! {
    #[test]
    fn the_normal_form_is_its_own_normal_form(
        scheme in "[hH][tT][tT][pP][sS]?",
        host in "[A-Za-z0-9_-]{1,9}(\\.[A-Za-z0-9-]{1,9}){0,3}\\.?|\\[[0-9a-f]{1,4}::[0-9a-f]{1,4}\\]",
        port in "(:[0-9]{0,5})?",
        path in "(/[!\"$-~]{0,20})?(\\?[!\"$-~]{0,9})?",
    ) {
        let text = format!("{scheme}://{host}{port}{path}");
        if let Ok(url) = Url::parse(text.as_bytes()) {
            let mut once = Vec::new();
            url.write_normalised(&mut once);
            let mut twice = Vec::new();
            Url::parse(&once).unwrap().write_normalised(&mut twice);
            prop_assert_eq!(&once, &twice);
            let mut received = Vec::new();
            url.write(Escapes::AsReceived, &mut received);
            prop_assert!(received.ends_with(path.as_bytes()));
        } else {
            prop_assert!(port.len() > 1, "only the port may be wrong: {}", text);
        }
    }

    #[test]
    fn targets_never_panic_and_what_passes_can_be_written(text in proptest::collection::vec(any::<u8>(), 0..40)) {
        for method in [Method::Get, Method::Connect, Method::Options] {
            if let Ok(target) = Target::parse(&text, method) {
                let mut out = Vec::new();
                target.write_origin_form(method, Escapes::Normal, &mut out);
                if let Some(authority) = target.authority {
                    authority.write_normalised(Scheme::Http, &mut out);
                }
                prop_assert!(out.iter().all(u8::is_ascii_graphic));
            }
        }
    }
}
