//! A response that is still arriving, and that several requests share. While it arrives, other answers may
//! change its lifetime or forbid that it is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Asked, Client, Foxy, Origin, until};
use foxy_proxy::{Config, Role};

/// A page of ten bytes. The origin sends the second half of the page when `open` is true.
struct Page {
    open: Arc<AtomicBool>,
    /// Number of answers with a body.
    bodies: Arc<AtomicUsize>,
    origin: Origin,
}

impl Page {
    /// Starts an origin with one page. `fields` are the fields of answers with a body. The origin appends the
    /// number of the answer to the last of them. `checked` are the fields of a 304.
    fn start(fields: &'static str, checked: &'static str) -> Self {
        let (open, bodies) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (held, sent): (_, Arc<AtomicUsize>) = (Arc::clone(&open), Arc::clone(&bodies));
        let origin = Origin::start(move |asked: &mut Asked| {
            if asked.field("If-None-Match").is_some() {
                asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{checked}\r\n"));
                return true;
            }
            if asked.field("Range").is_some() {
                // On a slow machine, the origin may be silent for so long that Foxy requests the rest of the
                // body. Then the origin closes the connection without an answer.
                return false;
            }
            let number = 1 + sent.fetch_add(1, Ordering::SeqCst);
            asked.raw(format!(
                "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 10\r\n{fields}{number}\r\n\r\n01234"
            ));
            while !held.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            asked.raw("56789");
            true
        });
        Self {
            open,
            bodies,
            origin,
        }
    }

    /// Requests the page. Returns the client and the head.
    fn ask(&self, foxy: &Foxy, fields: &str) -> (Client, String) {
        let mut client = foxy.connect();
        let to = self.origin.authority();
        client.send(format!(
            "GET http://{to}/ HTTP/1.1\r\nHost: x\r\n{fields}\r\n"
        ));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        (client, head)
    }

    /// Lets the origin complete all bodies, and waits for the end of all fetches.
    fn end(&self, foxy: &Foxy, clients: Vec<Client>) {
        self.open.store(true, Ordering::SeqCst);
        for mut client in clients {
            assert_eq!(client.exactly(10), b"0123456789");
        }
        until(|| foxy.proxy.fills() == 0);
    }

    fn bodies(&self) -> usize {
        self.bodies.load(Ordering::SeqCst)
    }
}

const AGAIN: &str = "Cache-Control: no-cache\r\n";

#[test]
fn fields_for_one_user_are_not_shared_by_a_response_in_progress() {
    let page = Page::start(
        "Cache-Control: max-age=60, private=\"x-user\"\r\nX-User: user ",
        "",
    );
    let foxy = Foxy::forward();
    let (one, head) = page.ask(&foxy, "");
    assert!(head.contains("X-User: user 1"), "{head}");
    let (two, head) = page.ask(&foxy, "");
    assert!(!head.contains("user 1"), "{head}");
    page.end(&foxy, vec![one, two]);
}

#[test]
fn a_cookie_that_is_stripped_is_sent_to_nobody_beside_fields_for_one_user_either() {
    let page = Page::start(
        "Cache-Control: max-age=60, private=\"x-user\"\r\nSet-Cookie: a=b\r\nX-User: user ",
        "",
    );
    let mut config = Config::default();
    config.rules.strip_set_cookie = true;
    let foxy = Foxy::start(Role::Forward, config, 1);
    let (one, head) = page.ask(&foxy, "");
    assert!(
        head.contains("X-User") && !head.contains("Set-Cookie"),
        "{head}"
    );
    page.end(&foxy, vec![one]);
}

#[test]
fn a_response_in_progress_that_may_not_be_kept_any_more_is_fetched_anew() {
    let page = Page::start(
        "Cache-Control: max-age=60\r\nX-Number: ",
        "ETag: \"v1\"\r\nCache-Control: no-store\r\n",
    );
    let foxy = Foxy::forward();
    let (one, _) = page.ask(&foxy, "");
    let (two, head) = page.ask(&foxy, AGAIN);
    assert!(head.contains("X-Number: 2"), "{head}");
    page.end(&foxy, vec![one, two]);
    assert_eq!(page.bodies(), 2);
}

#[test]
fn a_validation_that_shortens_a_lifetime_ends_the_storing_of_a_response_in_progress() {
    let page = Page::start(
        "Cache-Control: max-age=60\r\nX-Number: ",
        "ETag: \"v1\"\r\nCache-Control: max-age=1\r\n",
    );
    let foxy = Foxy::forward();
    let (one, _) = page.ask(&foxy, "");
    let (two, _) = page.ask(&foxy, AGAIN);
    page.end(&foxy, vec![one, two]);
    assert_eq!(page.bodies(), 1, "the second one was validated");
    foxy.clock.advance(Duration::from_secs(2));
    let later = foxy.get(&page.origin, "/");
    assert!(!later.cache().contains("hit"), "{}", later.head);
}

#[test]
fn what_a_304_forbids_to_keep_is_gone_whatever_comes_next() {
    let gone = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&gone);
    let origin = Origin::start(move |asked: &mut Asked| {
        if asked.field("If-None-Match").is_some() {
            asked.raw(
                "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: no-store\r\n\r\n",
            );
            return true;
        }
        if fails.load(Ordering::SeqCst) {
            return false;
        }
        asked.reply(
            "200 OK",
            "Cache-Control: max-age=10\r\nETag: \"v1\"\r\n",
            "page",
        );
        true
    });
    let foxy = Foxy::forward();
    assert_eq!(foxy.get(&origin, "/").text(), "page");
    foxy.clock.advance(Duration::from_secs(11));
    gone.store(true, Ordering::SeqCst);
    foxy.get(&origin, "/");
    until(|| foxy.proxy.fills() == 0);
    assert!(foxy.stored(&origin, "/").is_none());
}

#[test]
fn a_304_with_another_vary_list_is_followed_by_the_whole() {
    let origin = Origin::start(|asked: &mut Asked| {
        if asked.field("If-None-Match").is_some() {
            asked.raw("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nVary: X-Two\r\n\r\n");
            return true;
        }
        let fields = "Cache-Control: max-age=10\r\nETag: \"v1\"\r\nVary: X-One\r\n";
        asked.reply("200 OK", fields, "page");
        true
    });
    let foxy = Foxy::forward();
    foxy.get(&origin, "/");
    foxy.clock.advance(Duration::from_secs(11));
    assert_eq!(foxy.get(&origin, "/").text(), "page");
    assert_eq!(origin.asked(), 3);
}

#[test]
fn variants_from_before_a_change_do_not_come_back_with_a_new_primary() {
    let version = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&version);
    let origin = Origin::start(move |asked: &mut Asked| {
        if asked.head.starts_with("POST") {
            now.store(2, Ordering::SeqCst);
            asked.reply("200 OK", "", "");
            return true;
        }
        let language = asked.field("Accept-Language").unwrap_or("none").to_owned();
        let fields = "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n";
        let body = format!("{language} {}", now.load(Ordering::SeqCst));
        asked.reply("200 OK", fields, body);
        true
    });
    let foxy = Foxy::forward();
    let get = |language: &str| {
        let fields = format!("Accept-Language: {language}\r\n");
        foxy.get_with(&origin, "/", &fields).text()
    };
    for language in ["en", "de", "en", "de"] {
        assert_eq!(get(language), format!("{language} 1"));
    }
    assert_eq!(origin.asked(), 2, "both are stored");
    let to = origin.authority();
    foxy.ask(&format!(
        "POST http://{to}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    ));
    for language in ["en", "de"] {
        assert_eq!(get(language), format!("{language} 2"));
    }
}
