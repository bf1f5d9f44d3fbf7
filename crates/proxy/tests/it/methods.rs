//! Methods other than GET, and their effect on stored answers, on real sockets.

use std::time::Duration;

use crate::common::{Asked, Foxy, Origin};
use foxy_proxy::{Config, Role};

fn send(
    foxy: &Foxy,
    origin: &Origin,
    method: &str,
    fields: &str,
    body: &str,
) -> crate::common::Answer {
    let mut client = foxy.connect();
    let length = match body.len() {
        0 => String::new(),
        n => format!("Content-Length: {n}\r\n"),
    };
    let url = format!("http://{}/x", origin.authority());
    client.send(format!(
        "{method} {url} HTTP/1.1\r\nHost: x\r\n{fields}{length}\r\n{body}"
    ));
    client.answer_to(method)
}

fn posting(fields: &'static str) -> Origin {
    Origin::start(move |asked| {
        let post = asked.head.starts_with("POST");
        if post {
            let length = asked.field("Content-Length").unwrap_or("0").parse();
            asked.client.exactly(length.unwrap_or(0));
        }
        let fields = if post {
            fields
        } else {
            "Cache-Control: no-store\r\n"
        };
        asked.reply("200 OK", fields, if post { "posted" } else { "got" });
        true
    })
}

fn storing_posts() -> Foxy {
    let mut config = Config::default();
    config.rules.post = true;
    Foxy::start(Role::Forward, config, 1)
}

#[test]
fn a_post_that_says_so_answers_later_gets() {
    for (fields, expected) in [
        (
            "Cache-Control: max-age=60\r\nContent-Location: /x\r\n",
            "posted",
        ),
        (
            "Cache-Control: max-age=60\r\nContent-Location: /y\r\n",
            "got",
        ),
        ("Cache-Control: max-age=60\r\n", "got"),
        ("ETag: \"a\"\r\nContent-Location: /x\r\n", "got"),
    ] {
        let (foxy, origin) = (storing_posts(), posting(fields));
        assert_eq!(send(&foxy, &origin, "POST", "", "12345").text(), "posted");
        assert_eq!(foxy.get(&origin, "/x").text(), expected, "{fields}");
        // A second POST also goes to the origin, even if an answer is stored.
        send(&foxy, &origin, "POST", "", "12345");
        assert!(origin.asked() >= 2, "{fields}");
    }
}

#[test]
fn a_forward_proxy_stores_no_post_unless_told() {
    let fields = "Cache-Control: max-age=60\r\nContent-Location: /x\r\n";
    let (foxy, origin) = (Foxy::forward(), posting(fields));
    assert_eq!(send(&foxy, &origin, "POST", "", "12345").text(), "posted");
    assert_eq!(foxy.get(&origin, "/x").text(), "got");
}

#[test]
fn a_post_replaces_what_get_stored() {
    let origin = Origin::start(|asked: &mut Asked| {
        let post = asked.head.starts_with("POST");
        let fields = "Cache-Control: max-age=60\r\nContent-Location: /x\r\n";
        asked.reply("200 OK", fields, if post { "second" } else { "first" });
        true
    });
    let foxy = storing_posts();
    assert_eq!(foxy.get(&origin, "/x").text(), "first");
    send(&foxy, &origin, "POST", "", "");
    assert_eq!(foxy.get(&origin, "/x").text(), "second");
    assert_eq!(origin.asked(), 2);
}

/// An origin that answers GET with version 1, and HEAD with these fields.
fn heading(head: &'static str) -> Origin {
    Origin::start(move |asked| {
        let fields = "Cache-Control: max-age=10\r\nETag: \"v1\"\r\nX-Seen: get\r\n";
        if asked.head.starts_with("HEAD") {
            asked.raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n"));
        } else {
            asked.reply("200 OK", fields, "0123456789");
        }
        true
    })
}

#[test]
fn a_head_that_agrees_freshens_and_one_that_does_not_invalidates() {
    let same =
        "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Length: 10\r\nX-Seen: head\r\n";
    for (head, asked, seen) in [
        (same, 2, "head"),
        (
            "Cache-Control: max-age=60\r\nETag: \"v2\"\r\nContent-Length: 10\r\n",
            3,
            "get",
        ),
        (
            "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Length: 11\r\n",
            3,
            "get",
        ),
    ] {
        let (foxy, origin) = (Foxy::forward(), heading(head));
        foxy.get(&origin, "/x");
        foxy.clock.advance(Duration::from_secs(20));
        send(&foxy, &origin, "HEAD", "", "");
        let later = foxy.get(&origin, "/x");
        assert_eq!(later.text(), "0123456789", "{head}");
        assert_eq!(
            (origin.asked(), later.field("X-Seen")),
            (asked, Some(seen)),
            "{head}"
        );
    }
}

#[test]
fn a_trace_shows_the_request_without_its_secrets() {
    let foxy = Foxy::forward();
    let answer = foxy.ask(
        "TRACE http://origin.test/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\nX-Shown: yes\r\n\
         Cookie: secret\r\nAuthorization: secret\r\nProxy-Authorization: secret\r\n\
         X-Foxy-Token: secret\r\n\r\n",
    );
    assert_eq!(answer.status, 200, "{}", answer.head);
    let text = answer.text();
    assert!(
        text.contains("X-Shown: yes") && !text.contains("secret"),
        "{text}"
    );
}
