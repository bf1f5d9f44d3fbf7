//! Compressed forms of stored answers.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Answer, Foxy, Origin};
use foxy_proxy::rules::coding::Coding;
use foxy_proxy::{Compress, Config, Event, Role, Site};

fn role(origin: &Origin) -> Role {
    Role::Site(Site {
        name: "shop".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        compress: Some(Arc::new(Compress {
            codings: vec![Coding::Brotli, Coding::Gzip],
            bytes_min: 1000,
        })),
        ..Site::default()
    })
}

fn start(origin: &Origin) -> Foxy {
    Foxy::start(role(origin), Config::default(), 2)
}

fn text(seed: usize) -> String {
    (0..400)
        .map(|n| format!("line {} of {seed}\n", n * 7))
        .collect()
}

/// An origin with these pages: the path and the fields of each page.
fn origin(pages: &'static [(&'static str, &'static str)]) -> Origin {
    Origin::start(move |asked| {
        let found = pages.iter().find(|(path, _)| *path == asked.path());
        let own = found.map_or("Content-Type: text/html\r\n", |(_, fields)| fields);
        let fields = match own.contains("Cache-Control") {
            true => format!("ETag: \"v1\"\r\nAccept-Ranges: bytes\r\n{own}"),
            false => {
                format!(
                    "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n{own}"
                )
            }
        };
        asked.reply("200 OK", &fields, text(1));
        true
    })
}

fn ask(foxy: &Foxy, line: &str, fields: &str) -> Answer {
    let mut client = foxy.connect();
    client.send(format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    client.answer_to(line.split(' ').next().unwrap())
}

fn get(foxy: &Foxy, path: &str, fields: &str) -> Answer {
    ask(foxy, &format!("GET {path}"), fields)
}

fn plain(answer: &Answer) -> String {
    let mut out = String::new();
    match answer.field("Content-Encoding") {
        None => return answer.text(),
        Some("br") => brotli::Decompressor::new(&answer.body[..], 4096).read_to_string(&mut out),
        Some("gzip") => flate2::read::GzDecoder::new(&answer.body[..]).read_to_string(&mut out),
        Some(other) => panic!("{other}"),
    }
    .unwrap();
    out
}

const BR: &str = "Accept-Encoding: gzip, br\r\n";
const GZIP: &str = "Accept-Encoding: gzip\r\n";

/// Repeats the request until the answer is compressed.
fn compressed(foxy: &Foxy, path: &str, fields: &str) -> Answer {
    for _ in 0..2000 {
        let answer = get(foxy, path, fields);
        if answer.field("Content-Encoding").is_some() {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{path} is never compressed");
}

/// Repeats the request for a while. Returns true if no answer was compressed.
fn never(foxy: &Foxy, path: &str, fields: &str) -> bool {
    (0..6).all(|_| {
        std::thread::sleep(Duration::from_millis(15));
        get(foxy, path, fields).field("Content-Encoding").is_none()
    })
}

#[test]
fn each_client_gets_the_coding_that_it_prefers() {
    let origin = origin(&[]);
    let foxy = start(&origin);
    let first = get(&foxy, "/", BR);
    assert_eq!(
        first.field("Content-Encoding"),
        None,
        "the fetch is not delayed"
    );
    assert_eq!(first.field("Vary"), Some("Accept-Encoding"));
    assert_eq!(first.field("ETag"), Some("\"v1\""));
    for (fields, coding) in [(BR, "br"), (GZIP, "gzip")] {
        let got = compressed(&foxy, "/", fields);
        assert_eq!(got.field("Content-Encoding"), Some(coding));
        assert_eq!(plain(&got), text(1));
        assert!(got.body.len() < text(1).len() / 3 && got.whole);
        assert_eq!(got.field("ETag"), Some("W/\"v1\""));
        assert_eq!(got.field("Vary"), Some("Accept-Encoding"));
        assert_eq!(got.field("Accept-Ranges"), None);
        assert!(got.cache().contains("memory-hit"), "{}", got.cache());
        let head = ask(&foxy, "HEAD /", fields);
        for name in ["Content-Encoding", "Content-Length", "ETag", "Vary"] {
            assert_eq!(head.field(name), got.field(name), "{name}");
        }
    }
    for fields in [
        "",
        "Accept-Encoding: identity\r\n",
        "Accept-Encoding: br;q=0\r\n",
    ] {
        let got = get(&foxy, "/", fields);
        assert_eq!(
            (got.text(), got.field("Content-Encoding")),
            (text(1), None),
            "{fields}"
        );
        assert_eq!(got.field("Vary"), Some("Accept-Encoding"), "{fields}");
        assert_eq!(got.field("ETag"), Some("\"v1\""));
    }
    assert_eq!(origin.asked(), 1);
}

#[test]
fn conditions_hold_for_every_form_and_ranges_are_plain() {
    let origin = origin(&[]);
    let foxy = start(&origin);
    get(&foxy, "/", "");
    compressed(&foxy, "/", BR);
    for tag in ["W/\"v1\"", "\"v1\"", "\"x\", W/\"v1\"", "*"] {
        for accept in [BR, ""] {
            let got = get(&foxy, "/", &format!("{accept}If-None-Match: {tag}\r\n"));
            assert_eq!(
                (got.status, got.field("Vary")),
                (304, Some("Accept-Encoding")),
                "{tag}"
            );
            let own = if accept.is_empty() {
                "\"v1\""
            } else {
                "W/\"v1\""
            };
            assert_eq!(got.field("ETag"), Some(own));
            assert_eq!(got.field("Content-Encoding"), None);
        }
    }
    let other = get(&foxy, "/", &format!("{BR}If-None-Match: \"v2\"\r\n"));
    assert_eq!(
        (other.status, other.field("Content-Encoding")),
        (200, Some("br"))
    );
    let part = get(&foxy, "/", &format!("{BR}Range: bytes=0-9\r\n"));
    assert_eq!((part.status, part.text()), (206, text(1)[..10].to_owned()));
    assert_eq!(
        (part.field("ETag"), part.field("Vary")),
        (Some("\"v1\""), Some("Accept-Encoding"))
    );
    // The weak tag in If-Range does not prove that the client's partial body has the same bytes as the
    // uncompressed form. So the answer is the complete body.
    let if_range = get(
        &foxy,
        "/",
        &format!("{BR}Range: bytes=5-\r\nIf-Range: W/\"v1\"\r\n"),
    );
    assert_eq!((if_range.status, plain(&if_range)), (200, text(1)));
    let if_match = get(&foxy, "/", &format!("{BR}If-Match: \"v1\"\r\n"));
    assert_eq!(
        (if_match.status, if_match.field("Content-Encoding")),
        (200, None)
    );
}

#[test]
fn a_purge_and_a_new_version_take_all_forms_away() {
    let version = Arc::new(AtomicUsize::new(1));
    let now = version.clone();
    let origin = Origin::start(move |asked| {
        let version = now.load(Ordering::SeqCst);
        let fields = format!(
            "Content-Type: text/css\r\nCache-Control: max-age=5\r\nETag: \"v{version}\"\r\n"
        );
        let known = asked.field("If-None-Match") == Some(&format!("\"v{version}\"")[..]);
        match known {
            true => asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n")),
            false => asked.reply("200 OK", &fields, text(version)),
        }
        true
    });
    let foxy = start(&origin);
    let both = |seed: usize| {
        for fields in [BR, GZIP] {
            let got = compressed(&foxy, "/a", fields);
            assert_eq!(plain(&got), text(seed));
            assert_eq!(got.field("ETag"), Some(&format!("W/\"v{seed}\"")[..]));
        }
    };
    both(1);
    version.store(2, Ordering::SeqCst);
    assert_eq!(plain(&get(&foxy, "/a", BR)), text(1), "fresh");
    let purge = |fields: &str| ask(&foxy, "PURGE /a", fields).status;
    assert_eq!(purge(""), 200);
    for fields in [BR, GZIP, ""] {
        assert_eq!(plain(&get(&foxy, "/a", fields)), text(2), "{fields}");
    }
    both(2);
    // The object is validated. Its compressed forms are kept, and their age starts again from 0.
    foxy.clock.advance(Duration::from_secs(9));
    let asked = origin.asked();
    let validated = get(&foxy, "/a", BR);
    assert_eq!(plain(&validated), text(2));
    let form = get(&foxy, "/a", BR);
    assert_eq!(
        (form.field("Content-Encoding"), form.field("Age")),
        (Some("br"), Some("0"))
    );
    assert_eq!(origin.asked(), asked + 1);
    // The object is replaced. No form of the old version is sent again.
    version.store(3, Ordering::SeqCst);
    foxy.clock.advance(Duration::from_secs(9));
    for _ in 0..3 {
        for fields in [BR, GZIP, ""] {
            assert_eq!(plain(&get(&foxy, "/a", fields)), text(3), "{fields}");
        }
    }
    both(3);
}

#[test]
fn what_may_hold_a_secret_or_gains_nothing_stays_plain() {
    let origin = origin(&[
        ("/image", "Content-Type: image/png\r\n"),
        (
            "/coded",
            "Content-Type: text/css\r\nContent-Encoding: x-own\r\n",
        ),
        (
            "/keep",
            "Content-Type: text/css\r\nCache-Control: max-age=60, no-transform\r\n",
        ),
        (
            "/cookie",
            "Content-Type: text/css\r\nCache-Control: s-maxage=60\r\nSet-Cookie: a=b\r\n",
        ),
        ("/by-user", "Content-Type: text/css\r\nVary: Cookie\r\n"),
        (
            "/signed",
            "Content-Type: text/css\r\nCache-Control: s-maxage=60\r\n",
        ),
        (
            "/digest",
            "Content-Type: text/css\r\nRepr-Digest: sha-256=:x:\r\n",
        ),
        ("/style", "Content-Type: text/css\r\n"),
        ("/page", "Content-Type: text/html\r\n"),
        (
            "/once",
            "Content-Type: text/html\r\nCache-Control: no-store\r\n",
        ),
    ]);
    let foxy = start(&origin);
    for (path, more) in [
        ("/image", ""),
        ("/keep", ""),
        ("/cookie", ""),
        ("/by-user", ""),
        ("/by-user", "Cookie: a=b\r\n"),
        ("/digest", ""),
        ("/signed", "Authorization: Basic eDp5\r\n"),
        ("/page", "Cookie: session=1\r\n"),
        ("/page", "Cache-Control: no-transform\r\n"),
        ("/once", ""),
    ] {
        assert!(never(&foxy, path, &format!("{BR}{more}")), "{path} {more}");
    }
    let coded = get(&foxy, "/coded", BR);
    assert_eq!(
        (coded.field("Content-Encoding"), coded.text()),
        (Some("x-own"), text(1))
    );
    for path in ["/image", "/coded", "/keep"] {
        assert_eq!(get(&foxy, path, "").field("Vary"), None, "{path}");
    }
    compressed(&foxy, "/style", &format!("{BR}Cookie: session=1\r\n"));
    compressed(&foxy, "/page", BR);
    assert!(never(&foxy, "/page", &format!("{BR}Cookie: session=1\r\n")));
}

#[test]
fn short_and_incompressible_bodies_stay_plain() {
    let noise: Vec<u8> = {
        let mut state = 1u64;
        std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(5000)
        .collect()
    };
    let origin = Origin::start(move |asked| {
        let fields = "Content-Type: text/plain\r\nCache-Control: max-age=60\r\n";
        match asked.path() {
            "/short" => asked.reply("200 OK", fields, "x".repeat(999)),
            "/noise" => asked.reply("200 OK", fields, &noise),
            "/missing" => asked.reply("404 Not Found", fields, text(1)),
            _ => asked.reply("200 OK", fields, "x".repeat(1000)),
        }
        true
    });
    let foxy = start(&origin);
    for path in ["/short", "/noise", "/missing"] {
        assert!(never(&foxy, path, BR), "{path}");
    }
    compressed(&foxy, "/enough", BR);
}

#[test]
fn variants_of_the_origin_have_forms_of_their_own() {
    let origin = Origin::start(|asked| {
        let language = asked.field("Accept-Language").unwrap_or("none").to_owned();
        let fields =
            "Content-Type: text/html\r\nCache-Control: max-age=60\r\nVary: Accept-Language\r\n";
        asked.reply("200 OK", fields, format!("{language}\n{}", text(1)));
        true
    });
    let foxy = start(&origin);
    for _ in 0..2 {
        for language in ["de", "fr"] {
            for accept in [BR, GZIP] {
                let fields = format!("{accept}Accept-Language: {language}\r\n");
                let got = compressed(&foxy, "/", &fields);
                assert!(plain(&got).starts_with(language), "{fields}");
                let vary: Vec<_> = got.head.lines().filter(|l| l.starts_with("Vary")).collect();
                assert_eq!(vary, ["Vary: Accept-Language", "Vary: Accept-Encoding"]);
            }
        }
    }
    assert_eq!(origin.asked(), 2);
}

#[test]
fn forms_are_made_once_beside_answers_and_survive_a_crowd() {
    let origin = origin(&[]);
    let foxy = start(&origin);
    get(&foxy, "/x", "");
    std::thread::scope(|scope| {
        for client in 0..16 {
            let foxy = &foxy;
            scope.spawn(move || {
                for round in 0..40 {
                    let fields = [BR, GZIP, ""][(client + round) % 3];
                    assert_eq!(plain(&get(foxy, "/x", fields)), text(1));
                }
            });
        }
    });
    for fields in [BR, GZIP] {
        compressed(&foxy, "/x", fields);
    }
    let made = foxy.proxy.totals().event(Event::Compressed);
    assert_eq!(made, 2, "each form once");
    assert_eq!(origin.asked(), 1);
}
