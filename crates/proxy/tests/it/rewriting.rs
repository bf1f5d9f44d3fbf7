//! Rewriting by a site: fields of requests and answers, paths at the origin, redirects.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Answer, Foxy, Gate, Origin};
use foxy_proxy::rules::rewrite::{Direction, FieldRules, PathRules, Redirects, Rewriting};
use foxy_proxy::{Config, Role, Site};

fn texts(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

fn requests(entries: &[&str]) -> Rewriting {
    Rewriting {
        requests: FieldRules::parse(&texts(entries), Direction::Request).unwrap(),
        ..Rewriting::default()
    }
}

fn answers(entries: &[&str]) -> Rewriting {
    Rewriting {
        answers: FieldRules::parse(&texts(entries), Direction::Answer).unwrap(),
        ..Rewriting::default()
    }
}

fn paths(entries: &[&str]) -> Rewriting {
    Rewriting {
        paths: PathRules::parse(&texts(entries)).unwrap(),
        ..Rewriting::default()
    }
}

fn role(origin: &Origin, rewriting: Rewriting) -> Role {
    Role::Site(Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        rewriting: Some(Arc::new(rewriting)),
        ..Site::default()
    })
}

fn start(origin: &Origin, rewriting: Rewriting) -> Foxy {
    Foxy::start(role(origin, rewriting), Config::default(), 1)
}

fn get_with(foxy: &Foxy, path: &str, fields: &str) -> Answer {
    foxy.ask(&format!(
        "GET {path} HTTP/1.1\r\nHost: Shop.test:80\r\n{fields}\r\n"
    ))
}

fn get(foxy: &Foxy, path: &str) -> Answer {
    get_with(foxy, path, "")
}

/// An origin that answers with the request head that it received.
fn echo(fields: &'static str) -> Origin {
    Origin::start(move |asked| {
        let head = asked.head.clone();
        let fields = format!("Cache-Control: max-age=60\r\n{fields}");
        asked.reply("200 OK", &fields, head);
        true
    })
}

#[test]
fn the_origin_gets_the_changed_request() {
    let origin = echo("");
    let foxy = start(
        &origin,
        requests(&[
            "set X-Client: {client_ip} {scheme}://{host}{path}?{query} at {site}",
            "set X-Id: {request_id}",
            "remove X-Debug",
            "rename X-Old X-New",
            "set Authorization: Basic Zm94eQ==",
        ]),
    );
    let fields = "X-Client: forged\r\nX-Debug: 1\r\nX-Old: kept\r\n";
    let got = get_with(&foxy, "/%7ea/b?c=%2f", fields).text();
    let wanted = "X-Client: 127.0.0.1 http://shop.test/~a/b?c=%2f at shop\r\n";
    assert!(got.contains(wanted), "{got}");
    assert!(!got.contains("forged") && !got.contains("X-Debug"), "{got}");
    assert!(got.contains("X-New: kept\r\n"), "{got}");
    assert!(got.contains("Authorization: Basic Zm94eQ==\r\n"), "{got}");
    let id = |text: &str| {
        text.split("X-Id: ")
            .nth(1)
            .map(|rest| rest[..32].to_owned())
    };
    let other = get(&foxy, "/other").text();
    assert_ne!(id(&got).unwrap(), id(&other).unwrap());
    // A request that bypasses the cache is changed in the same way, and its body is sent unchanged.
    let post = foxy.ask("POST /p HTTP/1.1\r\nHost: a\r\nX-Debug: 1\r\nContent-Length: 2\r\n\r\nhi");
    let post = post.text();
    assert!(
        post.contains("Content-Length: 2") && !post.contains("X-Debug"),
        "{post}"
    );
}

#[test]
fn variants_are_selected_by_the_changed_request() {
    let origin = Origin::start(|asked| {
        let told = asked.field("X-Device").unwrap_or("none").to_owned();
        let fields = "Cache-Control: max-age=60\r\nVary: X-Device\r\n";
        asked.reply("200 OK", fields, told);
        true
    });
    // The origin receives a field of the client under another name.
    let renamed = start(
        &origin,
        requests(&["remove X-Device", "rename X-Kind X-Device"]),
    );
    let kind = |kind: &str, other: &str| {
        let fields = format!("X-Kind: {kind}\r\nX-Device: {other}\r\n");
        get_with(&renamed, "/d", &fields)
    };
    assert_eq!(kind("a", "x").text(), "a");
    let second = kind("b", "x");
    assert_eq!(
        second.text(),
        "b",
        "what was selected by X-Device is not shared"
    );
    assert_eq!(kind("a", "y").text(), "a");
    assert_eq!(kind("b", "z").text(), "b");
    assert_eq!(origin.asked(), 2, "X-Device of the client selects nothing");
    // The origin receives the same field value from all clients.
    let fixed = start(&origin, requests(&["set X-Device: same"]));
    for device in ["p", "q"] {
        let got = get_with(&fixed, "/f", &format!("X-Device: {device}\r\n"));
        assert_eq!(got.text(), "same");
    }
    assert_eq!(origin.asked(), 3);
    // The value of the field comes from the query of each request.
    let varying = start(&origin, requests(&["set X-Device: {query}"]));
    assert_eq!(get(&varying, "/v?1").text(), "1");
    assert_eq!(get(&varying, "/v?2").text(), "2");
}

/// An origin whose answers have fields that clients must not receive.
fn secretive() -> Origin {
    Origin::start(|asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nServer: secret\r\n";
        let chunked = format!(
            "HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
        );
        match asked.path() {
            "/dies" => return false,
            "/chunked" => asked.raw(chunked),
            "/long" => asked.reply("200 OK", fields, "x".repeat(9000)),
            _ => asked.reply("200 OK", fields, "body"),
        }
        true
    })
}

/// Sends a request with this request line and these fields, and returns the answer. Checks that the rules of
/// the test have changed the answer, and that its Cache-Status contains `cache`.
fn changed(foxy: &Foxy, line: &str, fields: &str, (status, cache): (u16, &str)) -> Answer {
    let mut client = foxy.connect();
    client.send(format!(
        "{line} HTTP/1.1\r\nHost: shop.test\r\n{fields}Connection: close\r\n\r\n"
    ));
    let answer = client.answer_to(line.split(' ').next().unwrap());
    assert_eq!(answer.status, status, "{line}: {}", answer.head);
    assert_eq!(answer.field("Server"), None, "{line}");
    assert_eq!(answer.field("ETag"), None, "{line}");
    let said = answer.field("X-Cache").unwrap_or_default().to_owned();
    assert!(said.starts_with("foxy"), "{line}: {said}");
    assert!(said.contains(cache), "{line}: {said}");
    assert_eq!(answer.field("Cache-Status"), Some(&said[..]));
    let url = answer.field("X-Url").unwrap();
    assert!(url.starts_with("http://shop.test/"), "{url}");
    assert!(answer.whole && answer.field("Connection") == Some("close"));
    answer
}

const HIT: &str = "memory-hit";
const MISS: &str = "fwd=uri-miss";

#[test]
fn answers_of_every_kind_are_changed_on_their_way_to_the_client() {
    let foxy = start(
        &secretive(),
        answers(&[
            "remove Server",
            "set X-Cache: {cache_status}",
            "set X-Url: {scheme}://{host}{path}",
            "rename ETag X-Tag",
        ]),
    );
    let check = |line: &str, fields: &str, expected| changed(&foxy, line, fields, expected);
    assert_eq!(check("GET /a", "", (200, MISS)).text(), "body");
    let hit = check("GET /a", "", (200, HIT));
    let tag = Some("\"v1\"");
    assert_eq!((hit.text(), hit.field("X-Tag")), ("body".into(), tag));
    assert_eq!(hit.field("Content-Length"), Some("4"));
    check("HEAD /a", "", (200, HIT));
    let known = check("GET /a", "If-None-Match: \"v1\"\r\n", (304, HIT));
    assert_eq!(known.field("X-Tag"), tag, "what is stored has its own name");
    let part = check("GET /a", "Range: bytes=1-2\r\n", (206, HIT));
    let range = Some("bytes 1-2/4");
    assert_eq!(
        (part.text(), part.field("Content-Range")),
        ("od".into(), range)
    );
    check("GET /long", "", (200, MISS));
    let parts = check("GET /long", "Range: bytes=0-0,8000-8001\r\n", (206, HIT));
    let parts = parts.text();
    assert!(parts.contains("bytes 8000-8001/9000"), "{parts}");
    check("GET /a", "Range: bytes=9-\r\n", (416, HIT));
    assert_eq!(check("GET /chunked", "", (200, MISS)).text(), "body");
    check("HEAD /head", "", (200, "fwd="));
    check("PUT /a", "Content-Length: 0\r\n", (200, "fwd=method"));
    check("GET /dies", "", (502, "origin-"));
}

#[test]
fn other_rules_apply_to_what_is_stored_at_once() {
    let origin = secretive();
    let foxy = start(&origin, answers(&["remove Server", "remove ETag"]));
    assert_eq!(get(&foxy, "/a").field("Server"), None);
    let (engine, clock) = (foxy.engine.clone(), foxy.clock.clone());
    let other = role(&origin, answers(&["set X-New: {request_id}"]));
    let other = Foxy::with_engine(other, Config::default(), 1, engine, clock);
    let got = get(&other, "/a");
    let (server, tag) = (got.field("Server"), got.field("ETag"));
    assert_eq!((server, tag), (Some("secret"), Some("\"v1\"")));
    assert_eq!(got.field("X-New").map(str::len), Some(32));
    assert_eq!(origin.asked(), 1);
}

#[test]
fn paths_are_rewritten_for_the_origin_and_kept_in_keys() {
    let origin = Origin::start(|asked| {
        let path = asked.path().to_owned();
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", path);
        true
    });
    let foxy = start(
        &origin,
        paths(&[
            "prefix /shop /",
            "regex ^/u/([^/]+)$ /user/{1}?id={1}&{query}",
        ]),
    );
    for (path, there) in [
        ("/shop/a?b=c", "/a?b=c"),
        ("/shop", "/"),
        ("/u/7?x=1", "/user/7?id=7&x=1"),
        ("/%73hop/x", "/x"),
        ("/other?y", "/other?y"),
    ] {
        let seen = |wanted: &str| {
            let got = get(&foxy, path);
            assert_eq!(got.text(), there, "{path}");
            assert!(got.cache().contains(wanted), "{path}: {}", got.cache());
        };
        seen("uri-miss");
        seen("memory-hit");
    }
    // Two URLs of clients may lead to the same URL at the origin. They are still stored as two objects.
    assert!(get(&foxy, "/a?b=c").cache().contains("uri-miss"));
    let purge = |path: &str| foxy.ask(&format!("PURGE {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!(purge("/u/7?x=1").status, 200, "the client's URL is purged");
    assert_eq!(purge("/user/7?id=7&x=1").status, 404);
    assert!(get(&foxy, "/u/7?x=1").cache().contains("uri-miss"));
    assert!(get(&foxy, "/shop/a?b=c").cache().contains("memory-hit"));
    // A POST to the client's URL invalidates the object that is stored under this URL.
    let post = foxy.ask("POST /shop/a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(post.text(), "/a?b=c");
    assert!(get(&foxy, "/shop/a?b=c").cache().contains("uri-miss"));
}

#[test]
fn rewriting_does_not_climb_out() {
    let origin = echo("");
    let foxy = start(
        &origin,
        paths(&["prefix /in /files", "regex ^/f-(.*)$ /files/{1}"]),
    );
    for (path, reason) in [
        ("/in/../secret", "dots-in-path"),
        ("/in/%2e%2e/secret", "dots-in-path"),
        ("/in/.%2E;x/secret", "dots-in-path"),
        ("/in/..%5csecret", "dots-in-path"),
        ("/f-../secret", "rewritten-path-has-dots"),
        ("/f-%2e%2e/secret", "rewritten-path-has-dots"),
        ("/f-.", "rewritten-path-has-dots"),
    ] {
        for method in ["GET", "DELETE"] {
            let line = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            let got = foxy.ask(&line);
            assert_eq!(got.status, 400, "{line}");
            assert!(got.cache().contains(reason), "{line}: {}", got.cache());
        }
    }
    assert_eq!(origin.asked(), 0);
    let fine = get(&foxy, "/in/a..b/...?x=../..").text();
    assert!(fine.starts_with("GET /files/a..b/...?x=../.. "), "{fine}");
}

/// The answer to a POST may be stored for GET if its Content-Location is the client's URL. But the origin
/// states the URL that it knows. If Foxy has rewritten the path of the request, the client knows another URL
/// for the same object. So the answer must not be stored, even if the texts of the two URLs are the same.
#[test]
fn a_content_location_at_the_origin_is_no_url_of_the_client() {
    let origin = Origin::start(|asked| {
        let fields = "Cache-Control: max-age=60\r\nContent-Location: /a/x\r\n";
        let method = asked.head.split(' ').next().unwrap().to_owned();
        asked.reply("200 OK", fields, method);
        true
    });
    let config = || {
        let mut config = Config::default();
        config.rules.post = true;
        config
    };
    for (rules, hit) in [
        (paths(&["prefix /other /b"]), true),
        (paths(&["prefix /a /b"]), false),
    ] {
        let foxy = Foxy::start(role(&origin, rules), config(), 1);
        let post = foxy.ask("POST /a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(post.text(), "POST");
        assert_eq!(get(&foxy, "/a/x").text() == "POST", hit);
    }
}

#[test]
fn redirects_come_before_the_cache_and_not_before_access() {
    let origin = echo("");
    let rewriting = Rewriting {
        redirects: Redirects::parse(&texts(&[
            "301 prefix /old /new",
            "302 regex ^/go/(.*)$ {scheme}://www.{host}/{1}?from={client_ip}",
            "308 prefix /top /",
        ]))
        .unwrap(),
        answers: FieldRules::parse(&texts(&["set X-Site: {site}"]), Direction::Answer).unwrap(),
        ..Rewriting::default()
    };
    let foxy = start(&origin, rewriting.clone());
    for (path, status, location) in [
        ("/old/a%20b?c=d", 301, "/new/a%20b?c=d"),
        ("/go/x/y?z", 302, "http://www.shop.test/x/y?from=127.0.0.1"),
        ("/top//evil.test/", 308, "/evil.test/"),
    ] {
        let got = get(&foxy, path);
        assert_eq!(
            (got.status, got.field("Location")),
            (status, Some(location)),
            "{path}"
        );
        assert_eq!(got.field("X-Site"), Some("shop"));
        assert!(got.field("Cache-Control").unwrap().contains("no-store"));
    }
    assert_eq!(get(&foxy, "/older").status, 200);
    let purge = foxy.ask("PURGE /old HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(purge.status, 404, "a purge is not redirected");
    let mut client = foxy.connect();
    client.send("POST /old HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nGET");
    assert_eq!(client.answer().field("Connection"), Some("close"));
    assert_eq!(origin.asked(), 1);
    let Role::Site(mut site) = role(&origin, rewriting) else {
        unreachable!()
    };
    site.allow_clients = Some(Vec::new());
    let closed = Foxy::start(Role::Site(site), Config::default(), 1);
    assert_eq!(get(&closed, "/old").status, 403);
}

/// After a reload of the settings, requests do not join fetches that began under the old rules. The answers
/// of these fetches are not stored.
#[test]
fn a_reload_with_other_rules_shares_no_fetch_with_the_old_ones() {
    let gate = Gate::default();
    let held = gate.clone();
    let origin = Origin::start(move |asked| {
        let told = asked.field("X-Mode").unwrap_or("none").to_owned();
        if told == "old" {
            held.wait();
        }
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", told);
        true
    });
    let mut foxy = start(&origin, requests(&["set X-Mode: old"]));
    let mut early = foxy.connect();
    early.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    while origin.asked() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let new = role(&origin, requests(&["set X-Mode: new"]));
    let at = foxy.addr;
    foxy.renew(
        Config::default(),
        false,
        &[(at, foxy_proxy::Serves::One(new))],
    );
    assert_eq!(
        get(&foxy, "/x").text(),
        "new",
        "the running fetch is another's"
    );
    gate.open();
    assert_eq!(early.answer().text(), "old");
    let kept = get(&foxy, "/x");
    assert_eq!(
        kept.text(),
        "new",
        "what the old rules brought is not stored"
    );
    assert!(get(&foxy, "/x").cache().contains("memory-hit"));
}
