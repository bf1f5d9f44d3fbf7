//! Answers that are stored and served again, on real sockets.

use std::time::Duration;

use crate::common::{Foxy, Origin};

const FRESH: &str = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Type: text/plain\r\n";

fn plain() -> Origin {
    Origin::start(|asked| {
        let body = match asked.path() {
            "/long" => "0123456789".repeat(100),
            path => format!("body of {path}"),
        };
        asked.reply("200 OK", FRESH, body);
        true
    })
}

#[test]
fn a_miss_then_hits_for_get_head_conditions_and_ranges() {
    let (foxy, origin) = (Foxy::forward(), plain());
    let miss = foxy.get(&origin, "/a");
    assert_eq!((miss.status, miss.text().as_str()), (200, "body of /a"));
    assert!(
        miss.cache().contains("fwd=uri-miss") && miss.cache().contains("stored"),
        "{miss:?}"
    );
    foxy.clock.advance(Duration::from_secs(7));
    let hit = foxy.get(&origin, "/a");
    assert_eq!((hit.status, hit.text().as_str()), (200, "body of /a"));
    assert!(
        hit.cache().contains("hit; ttl=53") && hit.cache().contains("memory-hit"),
        "{hit:?}"
    );
    assert_eq!(hit.field("Age"), Some("7"));
    assert!(
        hit.field("Via")
            .is_some_and(|via| via.starts_with("1.1 foxy-"))
    );
    let url = format!("http://{}/a", origin.authority());
    let mut client = foxy.connect();
    client.send(format!("HEAD {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let head = client.answer_to("HEAD");
    assert_eq!(
        (head.status, head.field("Content-Length")),
        (200, Some("10"))
    );
    client.send(format!(
        "GET {url} HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"v1\"\r\n\r\n"
    ));
    let same = client.answer();
    assert_eq!((same.status, same.field("ETag")), (304, Some("\"v1\"")));
    client.send(format!(
        "GET {url} HTTP/1.1\r\nHost: x\r\nRange: bytes=8-\r\n\r\n"
    ));
    let part = client.answer();
    assert_eq!((part.status, part.text().as_str()), (206, "/a"));
    assert_eq!(part.field("Content-Range"), Some("bytes 8-9/10"));
    client.send(format!(
        "GET {url} HTTP/1.1\r\nHost: x\r\nRange: bytes=50-\r\n\r\n"
    ));
    assert_eq!(client.answer().status, 416);
    assert_eq!(origin.asked(), 1);
}

#[test]
fn several_ranges_come_as_multipart() {
    let (foxy, origin) = (Foxy::forward(), plain());
    foxy.get(&origin, "/long");
    let parts = foxy.get_with(&origin, "/long", "Range: bytes=3-4,-2\r\n");
    assert_eq!((parts.status, origin.asked()), (206, 1));
    let kind = parts.field("Content-Type").unwrap().to_owned();
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let expected = format!(
        "--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 3-4/1000\r\n\r\n34\r\n\
         --{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 998-999/1000\r\n\r\n89\r\n\
         --{boundary}--\r\n"
    );
    assert_eq!(parts.text(), expected);
}

#[test]
fn stale_objects_are_revalidated_and_replaced() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        match asked.field("If-None-Match") {
            Some("\"v1\"") if asked.path() == "/same" => {
                asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{FRESH}\r\n"));
            }
            Some(_) => asked.reply(
                "200 OK",
                "Cache-Control: max-age=60\r\nETag: \"v2\"\r\n",
                "new",
            ),
            None => asked.reply("200 OK", FRESH, "old"),
        }
        true
    });
    for path in ["/same", "/other"] {
        assert_eq!(foxy.get(&origin, path).text(), "old");
    }
    foxy.clock.advance(Duration::from_secs(61));
    let same = foxy.get(&origin, "/same");
    assert_eq!(
        (same.text().as_str(), same.field("Age")),
        ("old", Some("0"))
    );
    assert!(
        same.cache().contains("fwd=stale; fwd-status=304"),
        "{same:?}"
    );
    assert_eq!(foxy.get(&origin, "/other").text(), "new");
    assert_eq!(origin.asked(), 4);
    assert!(foxy.get(&origin, "/same").cache().contains("memory-hit"));
    assert_eq!(foxy.get(&origin, "/other").text(), "new");
    assert_eq!(origin.asked(), 4);
}

#[test]
fn what_may_not_be_stored_is_not() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let fields = match asked.path() {
            "/no-store" => "Cache-Control: no-store\r\n",
            "/private" => "Cache-Control: private, max-age=60\r\n",
            "/star" => "Cache-Control: max-age=60\r\nVary: *\r\n",
            _ => "Cache-Control: max-age=60\r\n",
        };
        asked.reply("200 OK", fields, "x");
        true
    });
    for (n, path) in ["/no-store", "/private", "/star"].into_iter().enumerate() {
        foxy.get(&origin, path);
        foxy.get(&origin, path);
        assert_eq!(origin.asked(), 2 * n + 2, "{path}");
    }
    foxy.get_with(&origin, "/auth", "Authorization: Basic x\r\n");
    foxy.get_with(&origin, "/auth", "Authorization: Basic x\r\n");
    assert_eq!(origin.asked(), 8);
}

#[test]
fn variants_live_side_by_side() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let body = format!("in {}", asked.field("Accept-Language").unwrap_or("none"));
        asked.reply(
            "200 OK",
            "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n",
            body,
        );
        true
    });
    for _ in 0..3 {
        for language in ["de", "en", "fr"] {
            let got = foxy.get_with(&origin, "/v", &format!("Accept-Language: {language}\r\n"));
            assert_eq!(got.text(), format!("in {language}"));
        }
    }
    assert_eq!(origin.asked(), 3);
    let port = origin.addr.port();
    let purged = foxy.ask(&format!(
        "PURGE http://origin.test:{port}/v HTTP/1.1\r\nHost: x\r\n\r\n"
    ));
    assert_eq!(purged.status, 200);
    for language in ["de", "en", "fr"] {
        foxy.get_with(&origin, "/v", &format!("Accept-Language: {language}\r\n"));
    }
    assert_eq!(origin.asked(), 6, "all variants are purged");
}

#[test]
fn purge_is_for_those_who_may_and_says_what_it_found() {
    let (foxy, origin) = (Foxy::forward(), plain());
    let purge = format!(
        "PURGE http://{}/p HTTP/1.1\r\nHost: x\r\n\r\n",
        origin.authority()
    );
    assert_eq!(foxy.ask(&purge).status, 404);
    foxy.get(&origin, "/p");
    assert_eq!(foxy.ask(&purge).status, 200);
    foxy.get(&origin, "/p");
    assert_eq!(origin.asked(), 2);
    let mut config = foxy_proxy::Config::default();
    config.access.purge_from = vec!["192.0.2.0/24".parse().unwrap()];
    let closed = Foxy::start(foxy_proxy::Role::Forward, config, 1);
    assert_eq!(closed.ask(&purge).status, 403);
}

#[test]
fn unsafe_requests_invalidate() {
    let (foxy, origin) = (Foxy::forward(), plain());
    foxy.get(&origin, "/u");
    let url = format!("http://{}/u", origin.authority());
    let post = format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(foxy.ask(&post).status, 200);
    foxy.get(&origin, "/u");
    assert_eq!(origin.asked(), 3);
}

#[test]
fn stale_is_served_when_the_origin_fails() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        if asked.field("If-None-Match").is_some() {
            return false;
        }
        asked.reply("200 OK", FRESH, "old");
        true
    });
    foxy.get(&origin, "/s");
    foxy.clock.advance(Duration::from_secs(100));
    let stale = foxy.get(&origin, "/s");
    assert_eq!((stale.status, stale.text().as_str()), (200, "old"));
    assert!(stale.cache().contains("hit-on-error"), "{stale:?}");
}

#[test]
fn only_if_cached_is_never_forwarded() {
    let (foxy, origin) = (Foxy::forward(), plain());
    let got = foxy.get_with(&origin, "/o", "Cache-Control: only-if-cached\r\n");
    assert_eq!((got.status, origin.asked()), (504, 0));
}

#[test]
fn a_large_object_comes_back_whole_and_in_parts() {
    let foxy = Foxy::forward();
    let body: Vec<u8> = (0..1_000_003u32).map(|i| (i % 251) as u8).collect();
    let sent = body.clone();
    let origin = Origin::start(move |asked| {
        asked.reply("200 OK", FRESH, &sent);
        true
    });
    assert!(foxy.get(&origin, "/large").body == body);
    let hit = foxy.get(&origin, "/large");
    assert!(hit.cache().contains("hit"), "{}", hit.head);
    assert!(hit.body == body);
    let part = foxy.get_with(&origin, "/large", "Range: bytes=255000-600000\r\n");
    assert_eq!(part.status, 206);
    assert!(part.body == body[255_000..=600_000]);
    assert_eq!(origin.asked(), 1);
}

#[test]
fn a_stored_translation_answers_a_request_that_prefers_it_in_other_words() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        let fields =
            "Cache-Control: max-age=60\r\nVary: Accept-Language\r\nContent-Language: de\r\n";
        asked.reply("200 OK", fields, "hallo");
        true
    });
    let get = |languages: &str| {
        foxy.get_with(&origin, "/x", &format!("Accept-Language: {languages}\r\n"))
    };
    get("en, de");
    assert!(get("fr;q=0.5, de").cache().contains("hit"));
    assert_eq!(origin.asked(), 1);
    get("fr, de;q=0.5");
    assert_eq!(origin.asked(), 2);
}
