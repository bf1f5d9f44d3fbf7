//! Mirrors with rules about versions: a mirror hides versions that are too young or blocked. The upstreams
//! are fake registries that behave like real registries.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use foxy_base::WallTime;
use foxy_proxy::mirror::{Mirror, Selector, VersionRules, preset};
use foxy_proxy::{Config, Event, MirrorSite, Role};

use crate::common::{Answer, Asked, Foxy, NOON, Origin};
use crate::mirrors::config;

const DAY: i64 = 86_400;
const SHORT: &str = "application/vnd.npm.install-v1+json";
const SIMPLE: &str = "application/vnd.pypi.simple.v1+json";

/// Returns settings with one mirror. It hides versions that are younger than `min_age` seconds, and the
/// versions in `block`.
fn under(name: &str, origin: &Origin, min_age: Option<u32>, block: &[&str]) -> Config {
    let preset = preset(name).unwrap();
    let listing = preset.listing().unwrap();
    let upstream = format!("http://127.0.0.1:{}", origin.addr.port());
    let mirror = Mirror::new(
        name.into(),
        &format!("/{name}"),
        upstream.parse().unwrap(),
        Vec::new(),
        preset.classes.clone(),
    );
    let read = |text: &&str| Selector::read(listing, text).unwrap();
    let rules = VersionRules {
        listing,
        min_age,
        except: Vec::new(),
        hides_undated: true,
        block: block.iter().map(read).collect(),
    };
    let mirror = match min_age.is_some() || !block.is_empty() {
        true => mirror.under(rules),
        false => mirror,
    };
    config(vec![MirrorSite {
        named: vec![true; mirror.servers().len()],
        mirror,
        tls: foxy_tls::OriginTls::system(),
        login: None,
        client_logins: false,
    }])
}

const THREE_DAYS: Option<u32> = Some(3 * 86_400);

fn start(name: &str, origin: &Origin, min_age: Option<u32>, block: &[&str]) -> Foxy {
    Foxy::start(Role::Forward, under(name, origin, min_age, block), 1)
}

fn get(foxy: &Foxy, path: &str, fields: &str) -> Answer {
    let host = foxy.addr;
    foxy.ask(&format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
    ))
}

fn at(foxy: &Foxy, seconds: i64) {
    foxy.clock.set_wall(WallTime::from_secs(NOON + seconds));
}

/// Returns a packument (npm's document about a package) with three versions and `pad` bytes of padding. The
/// first version is old. The second version will be three days old in 30 seconds. The third version is one
/// hour old.
fn packument(port: u16, pad: usize) -> String {
    let version = |v: &str| {
        format!(
            "\"{v}\":{{\"name\":\"a\",\"version\":\"{v}\",\"dist\":{{\"tarball\":\"http://127.0.0.1:{port}/a/-/a-{v}.tgz\"}}}}"
        )
    };
    format!(
        "{{\"name\":\"a\",\"dist-tags\":{{\"latest\":\"1.2.0\"}},\"versions\":{{{},{},{}}},\
         \"time\":{{\"modified\":\"2026-11-20T11:00:00Z\",\"1.0.0\":\"2020-01-01T00:00:00.000Z\",\
         \"1.1.0\":\"2026-11-17T12:00:30.000Z\",\"1.2.0\":\"2026-11-20T11:00:00.000Z\"}},\"readme\":\"{}\"}}",
        version("1.0.0"),
        version("1.1.0"),
        version("1.2.0"),
        "x".repeat(pad)
    )
}

/// Counts of the registry's answers, and the status with which the registry fails.
#[derive(Default)]
struct Seen {
    /// Complete documents that the registry has sent.
    whole: AtomicUsize,
    /// Answers with status 304.
    same: AtomicUsize,
    /// The status with which the registry fails. 0 means that it does not fail.
    failing: AtomicU16,
}

impl Seen {
    fn counts(&self) -> (usize, usize) {
        (
            self.whole.load(Ordering::SeqCst),
            self.same.load(Ordering::SeqCst),
        )
    }
}

fn npm(pad: usize) -> (Origin, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    let origin = Origin::start(move |asked: &mut Asked| {
        let port = asked.client.stream.local_addr().unwrap().port();
        let failing = shared.failing.load(Ordering::SeqCst);
        if failing > 0 {
            asked.reply(&format!("{failing} Error"), "", "sorry");
            return true;
        }
        if asked.path().ends_with(".tgz") {
            let name = asked.path().to_owned();
            asked.reply("200 OK", "", name);
            return true;
        }
        assert_eq!(asked.field("Accept"), Some("application/json"), "dates");
        assert_eq!(asked.field("If-Modified-Since"), None);
        if let Some(etag) = asked.field("If-None-Match") {
            assert_eq!(etag, "\"v1\"", "the registry's own");
            shared.same.fetch_add(1, Ordering::SeqCst);
            asked
                .raw("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nContent-Type: text/odd\r\n\r\n");
            return true;
        }
        shared.whole.fetch_add(1, Ordering::SeqCst);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(packument(port, pad).as_bytes()).unwrap();
        let fields = "ETag: \"v1\"\r\nLast-Modified: Fri, 20 Nov 2026 11:00:00 GMT\r\n\
            Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
        asked.reply("200 OK", fields, gzip.finish().unwrap());
        true
    });
    (origin, seen)
}

/// Returns the versions of a packument, and its tag `latest`.
fn versions(answer: &Answer) -> String {
    let text = answer.text();
    let all = ["1.0.0", "1.1.0", "1.2.0"];
    let shown = all.iter().filter(|v| text.contains(&format!("-{v}.tgz\"")));
    let latest = text.split("\"latest\":\"").nth(1).unwrap();
    let shown: Vec<_> = shown.copied().collect();
    format!("{} {}", shown.join(","), &latest[..5])
}

#[test]
fn a_young_version_of_npm_is_hidden_until_it_is_old_enough() {
    let (origin, seen) = npm(1000);
    let foxy = start("npm", &origin, THREE_DAYS, &[]);
    for (accept, content_type) in [(SHORT, SHORT), ("*/*", "application/json")] {
        let answer = get(&foxy, "/npm/a", &format!("Accept: {accept}\r\n"));
        assert_eq!(versions(&answer), "1.0.0 1.0.0", "{}", answer.text());
        assert_eq!(answer.field("Content-Type"), Some(content_type));
        assert_eq!(answer.field("Last-Modified"), None);
        assert!(
            answer
                .text()
                .contains(&format!("http://{}/npm/a/-/a-1.0.0.tgz", foxy.addr))
        );
        // The usual lifetime of documents is one minute. But the next hidden version is old enough in half a
        // minute. So this document is fresh for only 30 seconds.
        let control = answer.field("Cache-Control").unwrap();
        assert!(control.contains("max-age=30,"), "{control}");
    }
    foxy.counts(Event::MirrorHidden, 4);
    // If a lock file names a hidden version, an installation still gets the file of this version.
    let young = get(&foxy, "/npm/a/-/a-1.2.0.tgz", "");
    assert_eq!(
        (young.status, young.text()),
        (200, "/a/-/a-1.2.0.tgz".into())
    );
    at(&foxy, 29);
    let ask = |etag: &str| {
        let etag = match etag {
            "" => String::new(),
            etag => format!("If-None-Match: {etag}\r\n"),
        };
        get(&foxy, "/npm/a", &format!("Accept: {SHORT}\r\n{etag}"))
    };
    let before = ask("");
    assert!(before.cache().contains("hit"), "{}", before.cache());
    let etag = before.field("ETag").unwrap().to_owned();
    assert_eq!(ask(&etag).status, 304);
    assert_eq!(seen.counts(), (2, 0));
    at(&foxy, 31);
    let after = ask(&etag);
    assert_eq!(
        (after.status, &versions(&after)[..]),
        (200, "1.0.0,1.1.0 1.1.0")
    );
    assert_ne!(after.field("ETag"), Some(&etag[..]));
    assert_eq!(
        seen.counts(),
        (3, 0),
        "the whole, for the old form is outdated"
    );
    // Foxy has stored the screened document: the document without the hidden versions. Until the next hidden
    // version is old enough, Foxy can validate it with the registry's own ETag.
    for (seconds, same) in [(92, 1), (153, 2)] {
        at(&foxy, seconds);
        let again = ask("");
        assert_eq!(
            (&again.body, again.field("Content-Type")),
            (&after.body, Some(SHORT))
        );
        assert_eq!(again.field("ETag"), after.field("ETag"));
        assert_eq!(seen.counts(), (3, same));
    }
    at(&foxy, 3 * DAY);
    assert_eq!(versions(&ask("")), "1.0.0,1.1.0,1.2.0 1.2.0");
    at(&foxy, 4 * DAY);
    assert_eq!(versions(&ask("")), "1.0.0,1.1.0,1.2.0 1.2.0");
    assert_eq!(seen.counts(), (4, 3));
}

#[test]
fn long_documents_are_screened_too_and_one_that_is_too_long_is_refused() {
    let (origin, _) = npm(9 << 20);
    let foxy = start("npm", &origin, THREE_DAYS, &[]);
    let full = get(&foxy, "/npm/a", "");
    assert_eq!(versions(&full), "1.0.0 1.0.0");
    assert!(full.body.len() > 9 << 20 && full.text().ends_with("xx\"}"));
    let short = get(&foxy, "/npm/a", &format!("Accept: {SHORT}\r\n"));
    assert!(short.body.len() < 1000);
    // Only a few long documents may be in memory at the same time, and each of them needs a permit. All these
    // requests can succeed only if each document returns its permit.
    for path in ["/npm/b", "/npm/c", "/npm/d"] {
        assert_eq!(get(&foxy, path, "").status, 200);
    }
    let (origin, _) = npm(65 << 20);
    let foxy = start("npm", &origin, THREE_DAYS, &[]);
    let refused = get(&foxy, "/npm/a", "");
    assert_eq!(refused.status, 502);
    assert!(
        refused.text().contains("document-too-long"),
        "{}",
        refused.text()
    );
}

#[test]
fn a_screened_document_is_served_stale_while_the_registry_fails() {
    let (origin, seen) = npm(0);
    let foxy = start("npm", &origin, THREE_DAYS, &[]);
    assert_eq!(versions(&get(&foxy, "/npm/a", "")), "1.0.0 1.0.0");
    for status in [500, 429] {
        seen.failing.store(status, Ordering::SeqCst);
        at(&foxy, 3 * DAY + i64::from(status));
        let stale = get(&foxy, "/npm/a", "");
        assert_eq!((stale.status, &versions(&stale)[..]), (200, "1.0.0 1.0.0"));
    }
    seen.failing.store(404, Ordering::SeqCst);
    assert_eq!(get(&foxy, "/npm/other", "").status, 404);
}

#[test]
fn a_head_says_nothing_of_a_document_that_nobody_has_screened() {
    let (origin, _) = npm(0);
    let foxy = start("npm", &origin, THREE_DAYS, &[]);
    let ask = format!("HEAD /npm/a HTTP/1.1\r\nHost: {}\r\n\r\n", foxy.addr);
    let mut client = foxy.connect();
    client.send(&ask);
    let head = client.answer_to("HEAD");
    assert_eq!((head.status, head.field("ETag")), (200, None));
    let whole = get(&foxy, "/npm/a", "");
    client.send(&ask);
    let head = client.answer_to("HEAD");
    assert_eq!(head.field("ETag"), whole.field("ETag"));
    // The answer to a HEAD request does not make the stored document fresh.
    at(&foxy, 31);
    client.send(&ask);
    let head = client.answer_to("HEAD");
    assert!(head.field("Cache-Control").unwrap().contains("max-age=0,"));
    assert_eq!(versions(&get(&foxy, "/npm/a", "")), "1.0.0,1.1.0 1.1.0");
}

#[test]
fn the_forms_of_a_document_have_different_etags() {
    let (origin, _) = npm(0);
    let foxy = start("npm", &origin, THREE_DAYS, &[]);
    let full = get(&foxy, "/npm/a", "");
    let etag = full.field("ETag").unwrap();
    let accept = format!("Accept: {SHORT}\r\nIf-None-Match: {etag}\r\n");
    assert_eq!(get(&foxy, "/npm/a", &accept).status, 200);
    assert_eq!(
        get(&foxy, "/npm/a", &format!("If-None-Match: {etag}\r\n")).status,
        304
    );
}

#[test]
fn a_part_of_a_document_is_a_whole_one() {
    let (origin, _) = npm(0);
    let foxy = start("npm", &origin, THREE_DAYS, &[]);
    let answer = get(&foxy, "/npm/a", "Range: bytes=0-10000\r\n");
    assert!(!answer.text().contains("1.2.0"), "{}", answer.text());
    assert!(matches!(answer.status, 200 | 206));
}

#[test]
fn an_answer_that_is_no_whole_document_reaches_nobody() {
    for status in ["203 Changed", "206 Partial Content", "226 IM Used"] {
        let origin = Origin::start(move |asked| {
            let port = asked.client.stream.local_addr().unwrap().port();
            let fields = "Content-Range: bytes 0-9/10\r\n";
            asked.reply(status, fields, packument(port, 0));
            true
        });
        let foxy = start("npm", &origin, THREE_DAYS, &[]);
        let answer = get(&foxy, "/npm/a", "");
        assert_eq!(answer.status, 502, "{status}");
    }
}

#[test]
fn a_block_wins_over_what_is_stored_and_a_reload_applies_it() {
    let (origin, seen) = npm(0);
    let mut foxy = start("npm", &origin, THREE_DAYS, &[]);
    let artefact = "/npm/a/-/a-1.0.0.tgz";
    assert_eq!(get(&foxy, artefact, "").status, 200);
    assert!(get(&foxy, artefact, "").cache().contains("hit"));
    assert_eq!(versions(&get(&foxy, "/npm/a", "")), "1.0.0 1.0.0");
    let listeners = [(foxy.addr, foxy_proxy::Serves::One(Role::Forward))];
    let blocks = under("npm", &origin, Some(60), &["a@1.0.0"]);
    foxy.renew(blocks, false, &listeners);
    let refused = get(&foxy, artefact, "");
    assert_eq!(refused.status, 403);
    assert_eq!(refused.field("Content-Type"), Some("application/json"));
    assert_eq!(
        refused.text(),
        "{\"error\":\"a@1.0.0 is blocked by the operator of this mirror (mirror.block: a@1.0.0)\"}\n"
    );
    for other in [
        "/npm/%61/-/a-1.0.0.tgz",
        "/npm/A/-/a-1.0.0.tgz?x",
        "/npm/a/%2D/a%2d1.0.0.tgz",
        "/npm/a/1.0.0",
        "/npm/a/latest",
    ] {
        assert_eq!(get(&foxy, other, "").status, 403, "{other}");
    }
    let part = get(&foxy, artefact, "Range: bytes=0-1\r\n");
    assert_eq!(part.status, 403);
    let mut client = foxy.connect();
    client.send(format!(
        "HEAD {artefact} HTTP/1.1\r\nHost: {}\r\n\r\n",
        foxy.addr
    ));
    assert_eq!(client.answer_to("HEAD").status, 403);
    foxy.counts(Event::MirrorBlocked, 8);
    let whole = seen.counts().0;
    assert_eq!(versions(&get(&foxy, "/npm/a", "")), "1.1.0,1.2.0 1.2.0");
    assert_eq!(
        seen.counts().0,
        whole + 1,
        "not what is stored under other rules"
    );
    // A mirror without rules does not change documents.
    let open = under("npm", &origin, None, &[]);
    foxy.renew(open, false, &listeners);
    assert!(get(&foxy, artefact, "").cache().contains("hit"));
    assert_eq!(
        versions(&get(&foxy, "/npm/a", "Accept: */*\r\n")),
        "1.0.0,1.1.0,1.2.0 1.2.0"
    );
}

fn pypi() -> Origin {
    Origin::start(|asked| {
        let port = asked.client.stream.local_addr().unwrap().port();
        let file = |name: &str, time: &str| {
            format!(
                "{{\"filename\":\"{name}\",\"url\":\"http://127.0.0.1:{port}/packages/{name}\",\"hashes\":{{\"sha256\":\"{}\"}},\"upload-time\":\"{time}\"}}",
                "00".repeat(32)
            )
        };
        match asked.path() {
            "/simple/a/" => {
                assert!(asked.field("Accept").unwrap().starts_with(SIMPLE));
                let files = [
                    file("a-1.0-py3-none-any.whl", "2020-01-01T00:00:00Z"),
                    file("a-1.1-py3-none-any.whl", "2020-01-01T00:00:00Z"),
                    file("a-1.2-py3-none-any.whl", "2026-11-20T00:00:00Z"),
                ];
                let text = format!("{{\"name\":\"a\",\"files\":[{}]}}", files.join(","));
                asked.reply("200 OK", &format!("Content-Type: {SIMPLE}\r\n"), text);
            }
            _ => asked.reply("200 OK", "", "wheel"),
        }
        true
    })
}

#[test]
fn pip_sees_young_files_yanked_and_no_blocked_ones() {
    let origin = pypi();
    let foxy = start("pypi", &origin, THREE_DAYS, &["A@1.1"]);
    let json = get(&foxy, "/pypi/simple/a/", &format!("Accept: {SIMPLE}\r\n"));
    let text = json.text();
    assert_eq!(json.field("Content-Type"), Some(SIMPLE));
    assert!(
        !text.contains("a-1.1-") && text.contains("{\"yanked\":\"younger"),
        "{text}"
    );
    assert!(json.field("ETag").is_some(), "one of its own");
    let html = get(&foxy, "/pypi/simple/a/", "");
    assert_eq!(html.field("Content-Type"), Some("text/html; charset=utf-8"));
    let file = |version: &str| format!("/pypi/packages/a-{version}-py3-none-any.whl");
    let link = format!("<a href=\"http://{}{}#sha256=0000", foxy.addr, file("1.0"));
    assert!(html.text().contains(&link), "{}", html.text());
    assert_eq!(html.text().matches("data-yanked").count(), 1);
    for version in ["1.1", "1.1.0"] {
        let refused = get(&foxy, &file(version), "");
        assert_eq!(
            (refused.status, refused.field("Content-Type")),
            (403, Some("text/plain; charset=utf-8"))
        );
        assert!(refused.text().contains("is blocked by the operator"));
    }
    foxy.counts(Event::MirrorMismatch, 0);
    let disguised = get(&foxy, "/pypi/s%69mple/a/", "");
    assert_eq!(disguised.status, 403);
}

#[test]
fn cargo_sees_young_and_blocked_versions_yanked() {
    let origin = Origin::start(|asked| {
        let line = |version: &str, time: &str| {
            format!(
                "{{\"name\":\"abcd\",\"vers\":\"{version}\",\"yanked\":false,\"pubtime\":\"{time}\"}}\n"
            )
        };
        match asked.path() {
            "/ab/cd/abcd" => {
                let lines = [
                    line("1.0.0", "2020-01-01T00:00:00Z"),
                    line("1.1.0", "2020-01-01T00:00:00Z"),
                    line("1.2.0", "2026-11-20T00:00:00Z"),
                ];
                asked.reply("200 OK", "Content-Type: text/plain\r\n", lines.concat());
            }
            "/config.json" => asked.reply("200 OK", "", "{\"dl\":\"http://127.0.0.1/dl\"}"),
            _ => asked.reply("200 OK", "", "crate"),
        }
        true
    });
    let foxy = start("cargo", &origin, THREE_DAYS, &["abcd@1.1.0"]);
    let index = get(&foxy, "/cargo/ab/cd/abcd", "");
    let yanked: Vec<_> = index
        .text()
        .lines()
        .map(|line| line.contains("\"yanked\":true"))
        .collect();
    assert_eq!(yanked, [false, true, true]);
    // Foxy does not write URLs into the index, so one copy serves all clients, with any host name.
    let other = foxy.ask("GET /cargo/ab/cd/abcd HTTP/1.1\r\nHost: other.test\r\n\r\n");
    assert_eq!((other.status, other.cache().contains("hit")), (200, true));
    assert_eq!(get(&foxy, "/cargo/config.json", "").status, 200);
    for (path, status) in [
        ("/cargo/dl/abcd/1.2.0/download", 200),
        ("/cargo/dl/abcd/1.1.0/download", 403),
        ("/cargo/dl/ABCD/1.1.0/download", 403),
        ("/cargo/crates/abcd/abcd-1.1.0.crate", 403),
    ] {
        assert_eq!(get(&foxy, path, "").status, status, "{path}");
    }
}

#[test]
fn what_cannot_be_screened_reaches_nobody() {
    let origin = Origin::start(|asked| {
        let body = match asked.path() {
            "/html" => "<html>maintenance</html>",
            "/tag" => "{\"name\":\"a\",\"version\":\"1.0.0\",\"dist\":{}}",
            _ => "{\"name\":\"a\",\"versions\":{\"1.0.0\":",
        };
        asked.reply("200 OK", "", body);
        true
    });
    let foxy = start("npm", &origin, THREE_DAYS, &[]);
    for (path, reason) in [
        ("/npm/html", "document-not-readable"),
        ("/npm/tag", "document-of-a-tag"),
        ("/npm/cut", "document-not-readable"),
    ] {
        let answer = get(&foxy, path, "");
        assert_eq!(answer.status, 502, "{path}");
        assert!(answer.text().contains(reason), "{}", answer.text());
    }
}
