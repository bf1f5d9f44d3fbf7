//! Mirrors of fake registries that behave like real registries.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use foxy_base::WallTime;
use foxy_proxy::mirror::{Mirror, preset};
use foxy_proxy::rules::rules::PartitionConfig;
use foxy_proxy::rules::{Config as Rules, RuleSet};
use foxy_proxy::{Access, Config, Event, MirrorSite, Mirrors, PublicUrl, Role, Token};

use crate::common::{Answer, Asked, Foxy, Origin};

const TOKEN: &str = "0123456789abcdef";
const JSON: &str = "application/vnd.pypi.simple.v1+json";

/// Returns a mirror with the preset (built-in settings) of this name. Its upstream is `origin`, and its
/// documents are fresh for a minute.
pub(crate) fn mirror(name: &str, origin: &Origin) -> MirrorSite {
    let preset = preset(name).unwrap();
    let at = |host: &str| {
        format!("http://{host}:{}", origin.addr.port())
            .parse()
            .unwrap()
    };
    let mirror = Mirror::new(
        name.into(),
        &format!("/{name}"),
        at("127.0.0.1"),
        vec![at("origin.test")],
        preset.classes.clone(),
    );
    MirrorSite {
        named: vec![true; mirror.servers().len()],
        mirror,
        tls: foxy_tls::OriginTls::system(),
        login: None,
        client_logins: false,
    }
}

pub(crate) fn config(sites: Vec<MirrorSite>) -> Config {
    let names = sites.iter().map(|site| site.mirror.name.clone()).collect();
    let partition_config = PartitionConfig {
        partitions: names,
        config: Rules {
            obey_request: false,
            ..Rules::default()
        },
        rules: Vec::new(),
    };
    Config {
        mirrors: Some(Arc::new(Mirrors {
            sites,
            public: vec![PublicUrl {
                secure: false,
                authority: "cache.test:3128".into(),
            }],
        })),
        user_rules: RuleSet::default().with_partition_configs(vec![partition_config]),
        ..Config::default()
    }
}

pub(crate) fn start(name: &str, origin: &Origin) -> Foxy {
    Foxy::start(Role::Forward, config(vec![mirror(name, origin)]), 1)
}

pub(crate) fn get(foxy: &Foxy, path: &str, fields: &str) -> Answer {
    let host = foxy.addr;
    foxy.ask(&format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
    ))
}

/// A fake PyPI. Like the real PyPI, it has one host name for the index and another host name for the files.
/// Its answers have no validator, like the answers of some gateways, and contain fields that usually forbid
/// storing.
fn pypi() -> Origin {
    Origin::start(|asked| {
        let port = asked.client.stream.local_addr().unwrap().port();
        let file = format!("http://origin.test:{port}/packages/a.whl");
        let json = asked
            .field("Accept")
            .is_some_and(|accept| accept.starts_with(JSON));
        let fields = "Cache-Control: no-store\r\nSet-Cookie: a=b\r\n";
        assert_eq!(
            (asked.field("Cookie"), asked.field("Authorization")),
            (None, None)
        );
        match asked.path() {
            "/simple/a/" if json => asked.reply(
                "200 OK",
                &format!("{fields}Content-Type: {JSON}\r\n"),
                format!("{{\"files\":[{{\"url\":\"{file}\",\"hashes\":{{}}}}]}}"),
            ),
            "/simple/a/" => asked.reply(
                "200 OK",
                &format!("{fields}Content-Type: text/html\r\n"),
                format!("<a href=\"{file}#sha256=00\">a</a>"),
            ),
            "/simple/A/" => asked.reply("301 Moved", "Location: /simple/a/\r\n", ""),
            "/simple/inward/" => {
                asked.reply("302 Found", "Location: http://169.254.169.254/x\r\n", "");
            }
            "/packages/a.whl" => asked.reply("200 OK", fields, "wheel"),
            _ => asked.reply("404 Not Found", "", ""),
        }
        true
    })
}

#[test]
fn documents_lead_back_to_the_mirror_and_artefacts_live_for_ever() {
    let origin = pypi();
    let foxy = start("pypi", &origin);
    let port = origin.addr.port();
    let file = format!("/pypi/~origin.test~{port}/packages/a.whl");
    let user = "Cookie: s=1\r\nAuthorization: Basic eA==\r\n";
    for cache in ["fwd=uri-miss", "hit"] {
        let answer = get(
            &foxy,
            "/pypi/simple/a/",
            &format!("Accept: {JSON}\r\n{user}"),
        );
        let expected = format!(
            "{{\"files\":[{{\"url\":\"http://{}{file}\",\"hashes\":{{}}}}]}}",
            foxy.addr
        );
        assert_eq!(answer.text(), expected);
        assert!(answer.cache().contains(cache), "{}", answer.cache());
        assert_eq!(answer.field("Set-Cookie"), None);
        let answer = get(&foxy, "/pypi/simple/a/", user);
        assert_eq!(
            answer.text(),
            format!("<a href=\"http://{}{file}#sha256=00\">a</a>", foxy.addr)
        );
        // Cache directives of the client have no effect here, because the bytes under this URL never change.
        let answer = get(&foxy, &file, "Cache-Control: max-age=0, no-cache\r\n");
        assert_eq!(answer.text(), "wheel");
        assert!(answer.cache().contains(cache), "{}", answer.cache());
    }
    assert_eq!(origin.asked(), 3);
    foxy.clock
        .set_wall(WallTime::from_secs(crate::common::NOON + 300 * 86_400));
    assert!(get(&foxy, &file, "").cache().contains("hit"));
    assert_eq!(origin.asked(), 3);
}

/// A document is stored once for each form and for each name by which clients know Foxy.
#[test]
fn a_purge_of_a_document_covers_all_its_forms_and_names() {
    let origin = pypi();
    let config = Config {
        access: Access {
            token: Token::new(TOKEN),
            ..Access::default()
        },
        ..config(vec![mirror("pypi", &origin)])
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    let (html, json) = (String::new(), format!("Accept: {JSON}\r\n"));
    let ways = [("", &html), ("", &json), ("cache.test:3128", &json)];
    let all = |expected: &str| {
        for (host, fields) in ways {
            let own = foxy.addr.to_string();
            let host = if host.is_empty() { &own } else { host };
            let answer = foxy.ask(&format!(
                "GET /pypi/simple/a/ HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
            ));
            assert!(answer.cache().contains(expected), "{}", answer.cache());
        }
    };
    all("fwd=uri-miss");
    all("hit");
    let purge = |path: &str, fields: &str| {
        let host = foxy.addr;
        let answer = foxy.ask(&format!(
            "PURGE {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
        ));
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    purge("/pypi/simple/b/", "");
    all("hit");
    purge("/pypi/simple/a/", "");
    all("fwd=uri-miss");
    purge("/pypi/simple/a/", "X-Purge-Method: soft\r\n");
    all("fwd=stale");
    let other = Origin::start(|asked| {
        asked.reply("200 OK", "Cache-Control: max-age=600\r\n", "x");
        true
    });
    foxy.get_with(&other, "/x", "");
    let token = format!("X-Foxy-Token: {TOKEN}\r\n");
    purge(
        "/pypi/simple/b/",
        &format!("{token}X-Purge-Method: all\r\n"),
    );
    all("fwd=uri-miss");
    let kept = foxy.get_with(&other, "/x", "");
    assert!(kept.cache().contains("hit"), "{}", kept.cache());
}

#[test]
fn redirects_stay_on_the_mirror_or_fail() {
    let origin = pypi();
    let foxy = start("pypi", &origin);
    let moved = get(&foxy, "/pypi/simple/A/", "");
    assert_eq!(
        (moved.status, moved.field("Location")),
        (301, Some("/pypi/simple/a/"))
    );
    let inward = get(&foxy, "/pypi/simple/inward/", "");
    assert_eq!((inward.status, inward.field("Location")), (502, None));
    foxy.counts(Event::MirrorLeft, 1);
}

#[test]
fn only_listed_hosts_own_names_and_harmless_methods() {
    let origin = pypi();
    let foxy = start("pypi", &origin);
    let port = origin.addr.port();
    for path in [
        "/pypi/~169.254.169.254/latest".to_owned(),
        format!("/pypi/~127.0.0.2~{port}/x"),
        "/pypi/~metadata.test/x".to_owned(),
    ] {
        assert_eq!(get(&foxy, &path, "").status, 404, "{path}");
    }
    for path in ["/pypi/../x", "/pypi/%2e%2e/x", "/pypi/~origin.test/..%2fx"] {
        assert_eq!(get(&foxy, path, "").status, 400, "{path}");
    }
    let ask = |host: &str, fields: &str| {
        foxy.ask(&format!(
            "GET /pypi/simple/a/ HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
        ))
    };
    for (host, fields) in [
        ("evil.test", ""),
        ("127.0.0.1", ""),
        (
            "evil.test",
            "X-Forwarded-Host: cache.test:3128\r\nForwarded: host=\"cache.test:3128\"\r\n",
        ),
    ] {
        let answer = ask(host, fields);
        assert_eq!(answer.status, 421, "{host}");
    }
    assert!(
        ask("cache.test:3128", "")
            .text()
            .contains("http://cache.test:3128/pypi/~origin.test")
    );
    let own = ask(
        &foxy.addr.to_string(),
        "Forwarded: host=evil.test\r\nX-Forwarded-Host: evil.test\r\n",
    );
    assert!(
        own.text()
            .contains(&format!("http://{}/pypi/~origin.test", foxy.addr))
    );
    let put = format!(
        "PUT /pypi/simple/a/ HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
        foxy.addr
    );
    assert_eq!(foxy.ask(&put).status, 405);
    assert_eq!(origin.asked(), 2, "two names, two documents");
    // For all other requests, the listener works as if there were no mirrors.
    assert_eq!(get(&foxy, "/other", "").status, 400);
    assert_eq!(foxy.get(&origin, "/packages/a.whl").text(), "wheel");
}

/// A fake npm registry. It sends a packument (npm's document about a package) with a validator, and always
/// compressed.
fn npm(failing: &Arc<AtomicU16>) -> Origin {
    let failing = Arc::clone(failing);
    Origin::start(move |asked: &mut Asked| {
        let port = asked.client.stream.local_addr().unwrap().port();
        match failing.load(Ordering::SeqCst) {
            0 => {}
            status => {
                asked.reply(&format!("{status} Error"), "", "sorry");
                return true;
            }
        }
        if asked.field("If-None-Match") == Some("\"v1\"") {
            asked.raw("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n");
            return true;
        }
        let text = format!(
            "{{\"versions\":{{\"1.0.0\":{{\"dist\":{{\"tarball\":\"http://127.0.0.1:{port}/a/-/a-1.0.0.tgz\"}}}}}},\"pad\":\"{}\"}}",
            "x".repeat(300_000)
        );
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let fields = "ETag: \"v1\"\r\nVary: Accept, Accept-Encoding\r\n\
            Content-Type: application/json\r\nContent-Encoding: gzip\r\nCache-Control: max-age=300\r\n";
        asked.reply("200 OK", fields, gzip.finish().unwrap());
        true
    })
}

#[test]
fn documents_are_validated_by_the_upstreams_own_validator() {
    let failing = Arc::default();
    let origin = npm(&failing);
    let foxy = start("npm", &origin);
    let first = get(&foxy, "/npm/a", "");
    assert!(
        first
            .text()
            .contains(&format!("http://{}/npm/a/-/a-1.0.0.tgz", foxy.addr))
    );
    assert_eq!(first.field("Content-Encoding"), None);
    let etag = first.field("ETag").unwrap().to_owned();
    assert!(etag.starts_with("\"v1;"), "{etag}");
    let known = get(&foxy, "/npm/a", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!(known.status, 304);
    assert_eq!(origin.asked(), 1);
    foxy.clock
        .set_wall(WallTime::from_secs(crate::common::NOON + 61));
    let second = get(&foxy, "/npm/a", "");
    assert_eq!((second.body, second.status), (first.body, 200));
    assert_eq!(origin.asked(), 2);
    assert!(get(&foxy, "/npm/a", "").cache().contains("hit"));
    // Foxy never requests a part of a document from the upstream.
    let part = get(&foxy, "/npm/b", "Range: bytes=0-3\r\n");
    assert_eq!(part.status, 200);
}

#[test]
fn documents_are_served_stale_while_the_upstream_fails() {
    let failing = Arc::new(AtomicU16::new(0));
    let origin = npm(&failing);
    let foxy = start("npm", &origin);
    let first = get(&foxy, "/npm/a", "");
    for (days, status) in [(1, 429), (2, 500), (3, 503), (4, 521)] {
        failing.store(status, Ordering::SeqCst);
        foxy.clock
            .set_wall(WallTime::from_secs(crate::common::NOON + days * 86_400));
        let stale = get(&foxy, "/npm/a", "");
        assert_eq!((stale.status, &stale.body), (200, &first.body), "{status}");
        let age = (days * 86_400).to_string();
        assert_eq!(stale.field("Age"), Some(&age[..]));
    }
    assert_eq!(get(&foxy, "/npm/never-seen", "").status, 503);
}

#[test]
fn a_head_of_a_document_says_nothing_of_the_unwritten_length() {
    let origin = pypi();
    let foxy = start("pypi", &origin);
    let ask = format!(
        "HEAD /pypi/simple/a/ HTTP/1.1\r\nHost: {}\r\n\r\n",
        foxy.addr
    );
    let mut client = foxy.connect();
    client.send(&ask);
    let head = client.answer_to("HEAD");
    assert_eq!((head.status, head.field("Content-Length")), (200, None));
    let whole = get(&foxy, "/pypi/simple/a/", "");
    client.send(&ask);
    let head = client.answer_to("HEAD");
    let length = whole.body.len().to_string();
    assert!(
        head.field("Content-Length")
            .is_none_or(|said| said == length)
    );
    assert!(head.cache().contains("hit"), "{}", head.cache());
}
