//! Mirrors of registries of crates. The index of crates contains name, version and digest, but no URL.

use std::sync::Arc;
use std::sync::Mutex;

use foxy_proxy::Event;

use super::{download, file, hex, repr};
use crate::common::{Foxy, Origin, until};
use crate::mirrors::{get, start};

const INDEX: &str = "/cargo/de/mo/demo";
const FILE: &str = "/cargo/dl/demo/1.0.0/download";

/// A registry whose storage sends `sent`. `asked` contains the number of requests for the file, and the
/// number of these requests that have `no-cache`.
struct Registry {
    origin: Origin,
    sent: Arc<Mutex<Vec<u8>>>,
    asked: Arc<Mutex<(usize, usize)>>,
}

fn line(name: &str, digest: &str) -> String {
    format!(
        "{{\"name\":\"{name}\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"{digest}\",\"features\":{{}},\"yanked\":false}}\n"
    )
}

impl Registry {
    fn start(named: &[u8], sent: &[u8]) -> Self {
        let sent = Arc::new(Mutex::new(sent.to_vec()));
        let asked = Arc::new(Mutex::new((0, 0)));
        let (bytes, count, named) = (Arc::clone(&sent), Arc::clone(&asked), hex(named));
        let origin = Origin::start(move |asked| {
            let fields = "Content-Type: text/plain\r\nETag: \"i\"\r\n";
            match asked.path() {
                "/de/mo/demo" if asked.field("If-None-Match") == Some("\"i\"") => {
                    asked.reply("304 Not Modified", "ETag: \"i\"\r\n", "");
                }
                "/de/mo/demo" => asked.reply("200 OK", fields, line("demo", &named)),
                // This index file of the crate `evil` has a line about the crate `demo`.
                "/ev/il/evil" => asked.reply("200 OK", fields, line("demo", &"00".repeat(32))),
                "/dl/demo/1.0.0/download" => {
                    let mut count = count.lock().unwrap();
                    count.0 += 1;
                    count.1 += usize::from(asked.field("Cache-Control") == Some("no-cache"));
                    asked.reply("200 OK", "", &*bytes.lock().unwrap());
                }
                _ => asked.reply("404 Not Found", "", ""),
            }
            true
        });
        Self {
            origin,
            sent,
            asked,
        }
    }

    fn asked(&self) -> (usize, usize) {
        *self.asked.lock().unwrap()
    }
}

fn index(foxy: &Foxy) {
    let answer = get(foxy, INDEX, "");
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("\"vers\":\"1.0.0\""));
}

#[test]
fn a_crate_with_another_digest_reaches_nobody_whole() {
    for size in super::SIZES {
        let right = file(20, size);
        let mut wrong = right.clone();
        wrong[size / 2] ^= 1;
        let registry = Registry::start(&right, &wrong);
        let foxy = start("cargo", &registry.origin);
        index(&foxy);
        assert!(!download(&foxy, FILE).1, "one byte is another");
        foxy.counts(Event::MirrorMismatch, 1);
        registry.sent.lock().unwrap().clone_from(&right);
        let answer = get(&foxy, FILE, "");
        assert!(answer.body == right);
        until(|| get(&foxy, FILE, "").cache().contains("hit"));
        let stored = get(&foxy, FILE, "");
        assert_eq!(stored.field("Repr-Digest"), Some(&repr(&right)[..]));
        assert_eq!(
            registry.asked(),
            (2, 1),
            "caches on the way are passed by once"
        );
        foxy.counts(Event::MirrorMismatch, 1);
    }
}

#[test]
fn the_index_of_one_crate_says_nothing_about_another() {
    let right = file(21, 1000);
    let registry = Registry::start(&right, &right);
    let foxy = start("cargo", &registry.origin);
    index(&foxy);
    assert_eq!(get(&foxy, "/cargo/ev/il/evil", "").status, 200);
    assert!(download(&foxy, FILE) == (right, true));
    foxy.counts(Event::MirrorMismatch, 0);
}

/// Foxy does not write its own URLs into index files of crates. So one copy serves clients that use different
/// names for Foxy, and conditional requests of cargo work.
#[test]
fn an_index_file_is_the_registrys_own_for_everybody() {
    let right = file(22, 1000);
    let registry = Registry::start(&right, &right);
    let foxy = start("cargo", &registry.origin);
    let named = |host: &str, fields: &str| {
        foxy.ask(&format!(
            "GET {INDEX} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
        ))
    };
    let one = named("anything.test", "");
    assert_eq!(one.text(), line("demo", &hex(&right)));
    let two = named("cache.test:3128", "Accept-Encoding: gzip\r\n");
    assert!(two.cache().contains("hit"), "{}", two.cache());
    let etag = one.field("ETag").unwrap();
    let known = named("cache.test:3128", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!(known.status, 304);
    assert_eq!(registry.origin.asked(), 1);
}
