//! Build caches, with requests as Bazel, Gradle and ccache send them.

mod on_disk;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_base::WallTime;
use foxy_proxy::access_rules::RuleSet;
use foxy_proxy::{
    Config, Event, Gatekeeper, LoginToken, LoginsConfig, Objects, Role, Site, Writers,
};
use sha2::{Digest, Sha256};

use crate::common::{Answer, Foxy, NOON, until};

/// Login that may store and remove objects.
const CI: &str = "Authorization: Bearer token-of-ci\r\n";
/// Login that may also store and remove objects below `ac`, which are results of actions (build steps).
const MAIN: &str = "Authorization: Bearer token-of-main\r\n";
/// Login of a known user who has no permissions.
const GUEST: &str = "Authorization: Bearer token-of-guest\r\n";

/// Largest length of an object in the build caches of this file.
const SIZE_MAX: usize = 2_100_000;

fn config() -> Config {
    let token = |text: &str, user: &str, groups: &[&str]| {
        let token = LoginToken {
            user: user.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            expires: None,
        };
        (Sha256::digest(text).into(), token)
    };
    let logins = LoginsConfig {
        realm: "build".to_owned(),
        at: vec!["build".to_owned()],
        passwords: [("gradle".to_owned(), bcrypt::hash("secret", 4).unwrap())]
            .into_iter()
            .collect(),
        tokens: [
            token("token-of-ci", "ci", &[]),
            token("token-of-main", "main", &["release"]),
            token("token-of-guest", "guest", &[]),
        ]
        .into_iter()
        .collect(),
        lifetime: Duration::from_secs(300),
        threads: 1,
        queue: 64,
        ..LoginsConfig::default()
    };
    let gate = Gatekeeper::new(RuleSet::new(Vec::new()), jiff::tz::TimeZone::UTC);
    Config {
        gatekeeper: Some(Arc::new(gate.with_logins(Some(logins)))),
        ..Config::default()
    }
}

fn role(size_max: u64) -> Role {
    let users = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Role::Site(Site {
        name: "build".into(),
        host: "build".into(),
        port: 80,
        objects: Some(Arc::new(Objects {
            size_max,
            writers: Writers {
                users: users(&["ci", "gradle", "main"]),
                ..Writers::default()
            },
            action_writers: Writers {
                groups: users(&["release"]),
                ..Writers::default()
            },
        })),
        ..Site::default()
    })
}

fn start() -> Foxy {
    Foxy::start(role(SIZE_MAX as u64), config(), 1)
}

fn ask(foxy: &Foxy, method: &str, path: &str, fields: &str, body: &[u8]) -> Answer {
    let mut client = foxy.connect();
    let length = match (method, body.len()) {
        ("PUT", length) => format!("Content-Length: {length}\r\n"),
        _ => String::new(),
    };
    client.send(format!(
        "{method} {path} HTTP/1.1\r\nHost: build.test\r\n{fields}{length}\r\n"
    ));
    client.send(body);
    client.answer_to(method)
}

fn get(foxy: &Foxy, path: &str) -> (u16, Vec<u8>) {
    let answer = ask(foxy, "GET", path, "", b"");
    (answer.status, answer.body)
}

fn put(foxy: &Foxy, path: &str, login: &str, body: &[u8]) -> u16 {
    ask(foxy, "PUT", path, login, body).status
}

fn sha(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns bytes that differ for each seed, at every position.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(length);
    out
}

#[test]
fn bazel_stores_content_by_its_digest_and_actions_by_a_right_of_their_own() {
    let foxy = start();
    let blob = b"an output".to_vec();
    let (cas, ac) = (
        format!("/cas/{}", sha(&blob)),
        format!("/ac/{}", sha(b"action")),
    );
    assert_eq!(get(&foxy, &ac).0, 404);
    assert_eq!(get(&foxy, &cas).0, 404);
    assert_eq!(put(&foxy, &cas, CI, &blob), 201);
    assert_eq!(put(&foxy, &cas, CI, &blob), 204);
    assert_eq!(get(&foxy, &cas), (200, blob.clone()));
    let answer = ask(&foxy, "GET", &cas, "", b"");
    assert_eq!(answer.field("ETag"), Some(&*format!("\"{}\"", sha(&blob))));
    assert_eq!(
        answer.field("Content-Type"),
        Some("application/octet-stream")
    );
    assert!(answer.cache().contains("hit"), "{}", answer.cache());
    // Bazel requests the empty object very often.
    let empty = format!("/cas/{}", sha(b""));
    assert_eq!(put(&foxy, &empty, CI, b""), 201);
    assert_eq!(get(&foxy, &empty), (200, Vec::new()));
    // If the digest of a body differs from the digest in the path, the body is not stored, and the stored
    // object remains.
    for (path, body) in [
        (&cas, &b"another"[..]),
        (&format!("/cas/{}", sha(b"x")), b"y"),
    ] {
        let answer = ask(&foxy, "PUT", path, CI, body);
        assert_eq!(answer.status, 422);
        assert!(answer.text().contains("digest-wrong"), "{}", answer.text());
    }
    assert_eq!(get(&foxy, &cas), (200, blob));
    assert_eq!(get(&foxy, &format!("/cas/{}", sha(b"x"))).0, 404);
    // The login `CI` may not write results of actions. The login `MAIN` may write them.
    assert_eq!(put(&foxy, &ac, CI, b"result"), 403);
    assert_eq!(ask(&foxy, "DELETE", &ac, CI, b"").status, 403);
    assert_eq!(get(&foxy, &ac).0, 404);
    assert_eq!(put(&foxy, &ac, MAIN, b"result"), 201);
    assert_eq!(put(&foxy, &ac, MAIN, b"newer result"), 204);
    assert_eq!(get(&foxy, &ac), (200, b"newer result".to_vec()));
    // The login `CI` also may not write results of actions below a prefix. Each prefix is a separate cache,
    // so the result that was written without a prefix is not found there.
    assert_eq!(put(&foxy, &format!("/team{ac}"), CI, b"r"), 403);
    assert_eq!(get(&foxy, &format!("/team{ac}")).0, 404);
    foxy.counts(Event::FillsStored, 5);
}

#[test]
fn gradle_waits_for_100_and_logs_in_by_password() {
    let foxy = start();
    let login = format!(
        "Authorization: Basic {}\r\n",
        STANDARD.encode("gradle:secret")
    );
    let body = bytes(1, 2 << 20);
    let put = |length: usize, login: &str| {
        let mut client = foxy.connect();
        client.send(format!(
            "PUT /cache/0123456789abcdef HTTP/1.1\r\nHost: b\r\n{login}Expect: 100-continue\r\nContent-Type: application/vnd.gradle.build-cache-artifact.v2\r\nContent-Length: {length}\r\n\r\n"
        ));
        client
    };
    let mut client = put(body.len(), &login);
    assert!(client.head().starts_with("HTTP/1.1 100 "));
    client.send(&body);
    assert_eq!(client.answer().status, 201);
    // The connection can be used again.
    client.send("GET /cache/0123456789abcdef HTTP/1.1\r\nHost: b\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.body == body), (200, true));
    assert_eq!(answer.field("Content-Length"), Some("2097152"));
    // The client waits for the interim answer 100 before it sends the body. Foxy sends the refusal instead.
    for (length, login, status) in [
        (SIZE_MAX + 1, &*login, 413),
        (10, "", 401),
        (10, GUEST, 403),
    ] {
        let head = put(length, login).head();
        assert_eq!(head[9..12], status.to_string(), "{head}");
        assert_eq!(
            head.contains("WWW-Authenticate: Basic realm=\"build\""),
            status == 401,
            "{head}"
        );
    }
}

#[test]
fn ccache_asks_looks_stores_and_removes() {
    let foxy = start();
    let path = "/ab/cdef0123456789";
    assert_eq!(ask(&foxy, "HEAD", path, "", b"").status, 404);
    assert_eq!(put(&foxy, path, CI, b"result"), 201);
    let head = ask(&foxy, "HEAD", path, "", b"");
    assert_eq!(
        (head.status, head.field("Content-Length")),
        (200, Some("6"))
    );
    for login in ["", GUEST] {
        assert!(ask(&foxy, "DELETE", path, login, b"").status >= 401);
    }
    assert_eq!(get(&foxy, path), (200, b"result".to_vec()));
    assert_eq!(ask(&foxy, "DELETE", path, CI, b"").status, 204);
    assert_eq!(get(&foxy, path).0, 404);
    assert_eq!(ask(&foxy, "DELETE", path, CI, b"").status, 204);
    assert_eq!(put(&foxy, path, CI, b"again"), 201);
    assert_eq!(get(&foxy, path), (200, b"again".to_vec()));
}

#[test]
fn nobody_writes_without_a_login_and_nothing_else_is_taken() {
    let foxy = start();
    let wrong = "Authorization: Bearer token-of-nobody\r\n";
    let forged = "X-Foxy-Token: token-of-ci\r\nProxy-Authorization: Bearer token-of-ci\r\nCookie: Authorization=token-of-ci\r\n";
    for login in ["", wrong, forged, "Authorization: Basic \r\n"] {
        for method in ["PUT", "DELETE"] {
            let answer = ask(&foxy, method, "/a", login, b"x");
            assert_eq!(answer.status, 401, "{method} {login}");
            assert!(answer.field("WWW-Authenticate").is_some());
        }
    }
    for method in ["POST", "PATCH", "PROPFIND", "MKCOL", "OPTIONS"] {
        let answer = ask(&foxy, method, "/a", CI, b"");
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.field("Allow"), Some("GET, HEAD, PUT, DELETE"));
    }
    let sha = sha(b"x");
    for path in [
        "/", "/a/", "/a?b", "/a//b", "/%61", "/a/../b", "/ac/x", "/cas/x",
    ] {
        assert_eq!(get(&foxy, path).0, 404, "{path}");
        assert_eq!(put(&foxy, path, MAIN, b"x"), 400, "{path}");
    }
    // The path of an action's result has only one valid spelling.
    for path in [
        format!("/%61c/{sha}"),
        format!("/ac//{sha}"),
        format!("/x/../ac/{sha}"),
    ] {
        assert_eq!(put(&foxy, &path, CI, b"x"), 400, "{path}");
    }
    for (field, status) in [
        ("Content-Range: bytes 0-0/2\r\n", 400),
        ("Content-Encoding: gzip\r\n", 415),
        ("If-None-Match: *\r\n", 501),
        ("If-Match: \"x\"\r\n", 501),
    ] {
        assert_eq!(put(&foxy, "/a", &format!("{CI}{field}"), b"x"), status);
    }
    assert_eq!(get(&foxy, "/a").0, 404);
    assert_eq!(foxy.engine.stats().ram_objects, 0);
}

#[test]
fn conditions_and_ranges_are_answered_and_directives_do_not_matter() {
    let foxy = start();
    let body = bytes(2, 2 << 20);
    assert_eq!(put(&foxy, "/a", CI, b"short"), 201);
    assert_eq!(put(&foxy, "/b", CI, &body), 201);
    let answer = ask(&foxy, "GET", "/a", "", b"");
    let etag = answer.field("ETag").unwrap().to_owned();
    assert_eq!(answer.field("Cache-Control"), Some("no-cache"));
    for (fields, status, expected) in [
        (format!("If-None-Match: {etag}\r\n"), 304, &b""[..]),
        (format!("If-Match: {etag}\r\n"), 200, b"short"),
        ("If-Match: \"other\"\r\n".to_owned(), 412, b"-"),
        ("Range: bytes=1-2\r\n".to_owned(), 206, b"ho"),
        ("Range: bytes=9-\r\n".to_owned(), 416, b"-"),
        (
            "Cache-Control: no-cache, no-store\r\nPragma: no-cache\r\n".to_owned(),
            200,
            b"short",
        ),
        (
            "Cache-Control: max-age=0\r\nCookie: a=b\r\n".to_owned(),
            200,
            b"short",
        ),
        (GUEST.to_owned(), 200, b"short"),
    ] {
        let answer = ask(&foxy, "GET", "/a", &fields, b"");
        assert_eq!(answer.status, status, "{fields}");
        if expected != b"-" {
            assert_eq!(answer.body, expected, "{fields}");
        }
    }
    let missed = ask(
        &foxy,
        "GET",
        "/none",
        "Cache-Control: only-if-cached\r\nIf-Match: *\r\n",
        b"",
    );
    assert_eq!(missed.status, 404);
    let range = ask(&foxy, "GET", "/b", "Range: bytes=1000000-1500000\r\n", b"");
    assert_eq!(range.status, 206);
    assert_eq!(range.body, body[1_000_000..=1_500_000]);
    // A new object has a different ETag.
    assert_eq!(put(&foxy, "/a", CI, b"short"), 204);
    let other = ask(
        &foxy,
        "GET",
        "/a",
        &format!("If-None-Match: {etag}\r\n"),
        b"",
    );
    assert_eq!(other.status, 200);
    // The object remains stored for years.
    foxy.clock
        .set_wall(WallTime::from_secs(NOON + 3 * 365 * 86_400));
    assert_eq!(get(&foxy, "/b"), (200, body));
}

#[test]
fn what_breaks_off_or_is_too_long_stores_nothing() {
    let foxy = start();
    assert_eq!(put(&foxy, "/a", CI, b"before"), 201);
    for sent in [0, 3, 1 << 20] {
        let mut client = foxy.connect();
        client.send(format!(
            "PUT /a HTTP/1.1\r\nHost: b\r\n{CI}Content-Length: {}\r\n\r\n",
            2 << 20
        ));
        client.send(bytes(3, sent));
        drop(client);
    }
    let chunked = |body: &[u8], end: &str| {
        let mut client = foxy.connect();
        client.send(format!(
            "PUT /a HTTP/1.1\r\nHost: b\r\n{CI}Transfer-Encoding: chunked\r\n\r\n"
        ));
        // Foxy may refuse the request before the complete body is sent, so the write may fail.
        let _ = std::io::Write::write_all(
            &mut client.stream,
            &[
                format!("{:x}\r\n", body.len()).as_bytes(),
                body,
                end.as_bytes(),
            ]
            .concat(),
        );
        client.answer().status
    };
    assert_eq!(chunked(b"xy", "!!\r\n"), 400);
    assert_eq!(chunked(&bytes(4, SIZE_MAX + 1), "\r\n0\r\n\r\n"), 413);
    until(|| {
        let logged = foxy.logged();
        let broken =
            |line: &&String| line.contains("client-gone") || line.contains("bad-request 400");
        logged.iter().filter(broken).count() == 4
    });
    assert_eq!(get(&foxy, "/a"), (200, b"before".to_vec()));
    assert_eq!(chunked(b"chunked", "\r\n0\r\n\r\n"), 204);
    assert_eq!(get(&foxy, "/a"), (200, b"chunked".to_vec()));
}
