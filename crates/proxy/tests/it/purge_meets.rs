//! Purges of many objects while fetches run. A purge must also remove the objects of fetches that began
//! before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Asked, Client, Foxy, Origin, until};
use foxy_proxy::{Config, Role, Token};

const TOKEN: &str = "0123456789abcdef0123";
const FIELDS: &str = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nSurrogate-Key: page\r\n";

/// An origin that waits for `open` before it answers a request. It has one version of each page.
fn gated(open: &Arc<AtomicBool>) -> Origin {
    let open = Arc::clone(open);
    Origin::start(move |asked: &mut Asked| {
        while !open.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        match asked.field("If-None-Match") {
            Some(_) => asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{FIELDS}\r\n")),
            None => asked.reply("200 OK", FIELDS, "page"),
        }
        true
    })
}

fn start() -> Foxy {
    let mut config = Config::default();
    config.access.token = Token::new(TOKEN);
    Foxy::start(Role::Forward, config, 1)
}

fn ask(foxy: &Foxy, origin: &Origin, path: &str) -> Client {
    let mut client = foxy.connect();
    let to = origin.authority();
    client.send(format!("GET http://{to}{path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    client
}

fn purge(foxy: &Foxy, origin: &Origin, fields: &str) {
    let answer = foxy.ask(&format!(
        "PURGE http://{}/ HTTP/1.1\r\nHost: x\r\nX-Foxy-Token: {TOKEN}\r\n{fields}\r\n",
        origin.authority()
    ));
    assert_eq!(answer.status, 200, "{}", answer.head);
}

/// Four kinds of purges that can cover many objects. In this test, each of them covers all pages.
const PURGES: [&str; 4] = [
    "Surrogate-Key: page\r\n",
    "X-Purge-Method: prefix\r\n",
    "X-Purge-Method: host\r\n",
    "X-Purge-Method: all\r\n",
];

#[test]
fn what_was_asked_for_before_a_purge_answers_no_later_request() {
    for fields in PURGES {
        let open = Arc::new(AtomicBool::new(false));
        let (foxy, origin) = (start(), gated(&open));
        let mut before = ask(&foxy, &origin, "/a");
        until(|| origin.asked() == 1);
        purge(&foxy, &origin, fields);
        open.store(true, Ordering::SeqCst);
        assert_eq!(before.answer().text(), "page");
        until(|| foxy.proxy.fills() == 0);
        let after = foxy.get(&origin, "/a");
        assert!(!after.cache().contains("hit"), "{fields}: {}", after.head);
        assert_eq!(origin.asked(), 2, "{fields}");
        assert!(foxy.get(&origin, "/a").cache().contains("hit"), "{fields}");
    }
}

#[test]
fn nobody_joins_a_fetch_from_before_a_purge() {
    for fields in PURGES {
        let open = Arc::new(AtomicBool::new(false));
        let (foxy, origin) = (start(), gated(&open));
        let mut before = ask(&foxy, &origin, "/a");
        until(|| origin.asked() == 1);
        purge(&foxy, &origin, fields);
        let mut after = ask(&foxy, &origin, "/a");
        until(|| foxy.proxy.followers() == 2);
        assert_eq!(foxy.proxy.fills(), 2, "{fields}");
        open.store(true, Ordering::SeqCst);
        assert_eq!(before.answer().text(), "page");
        assert_eq!(after.answer().text(), "page");
    }
}

#[test]
fn a_304_that_was_asked_for_before_a_purge_keeps_nothing() {
    for fields in PURGES {
        for softly in ["", "Fastly-Soft-Purge: 1\r\n"] {
            let open = Arc::new(AtomicBool::new(true));
            let (foxy, origin) = (start(), gated(&open));
            assert_eq!(foxy.get(&origin, "/a").text(), "page");
            foxy.clock.advance(Duration::from_secs(61));
            open.store(false, Ordering::SeqCst);
            let mut before = ask(&foxy, &origin, "/a");
            until(|| origin.asked() == 2);
            purge(&foxy, &origin, &format!("{fields}{softly}"));
            open.store(true, Ordering::SeqCst);
            assert_eq!(before.answer().text(), "page");
            until(|| foxy.proxy.fills() == 0);
            let asked = origin.asked();
            // A hit is right only if its object was fetched after the purge.
            let hit = foxy.get(&origin, "/a").cache().contains("hit");
            assert!(!hit || asked > 2, "{fields}{softly}: {asked}");
        }
    }
}

#[test]
fn a_soft_purge_makes_stale_what_it_covers() {
    for fields in PURGES {
        let (foxy, origin) = (start(), gated(&Arc::new(AtomicBool::new(true))));
        foxy.get(&origin, "/a");
        purge(&foxy, &origin, &format!("{fields}Fastly-Soft-Purge: 1\r\n"));
        let after = foxy.get(&origin, "/a");
        let said = after.cache();
        assert!(
            said.contains("fwd=stale; fwd-status=304"),
            "{fields}: {said}"
        );
        assert!(foxy.get(&origin, "/a").cache().contains("hit"), "{fields}");
    }
}
