//! Isolation of clients by cookies and credentials, on real sockets.

use std::time::Duration;

use crate::common::{Asked, Foxy, Origin};
use foxy_proxy::{Config, Role};

/// Pages that set a different cookie for each client.
fn cookies(control: &'static str) -> Origin {
    Origin::start(move |asked: &mut Asked| {
        let user = asked.field("X-User").unwrap_or("?").to_owned();
        let fields =
            format!("Cache-Control: {control}\r\nETag: \"e\"\r\nSet-Cookie: sid={user}\r\n");
        asked.reply("200 OK", &fields, "page");
        true
    })
}

fn cookie(foxy: &Foxy, origin: &Origin, user: &str) -> Option<String> {
    let answer = foxy.get_with(origin, "/p", &format!("X-User: {user}\r\n"));
    answer.field("Set-Cookie").map(str::to_owned)
}

#[test]
fn a_session_cookie_is_not_replayed() {
    let (foxy, origin) = (Foxy::forward(), cookies("max-age=60"));
    for user in ["1", "2"] {
        let own = format!("sid={user}");
        assert_eq!(cookie(&foxy, &origin, user), Some(own));
    }
    let answer = foxy.get(&origin, "/p");
    assert!(
        answer.cache().contains("detail=set-cookie") && !answer.cache().contains("stored"),
        "{answer:?}"
    );
    assert!(foxy.logged().iter().all(|line| line.contains("set-cookie")));
}

#[test]
fn a_cookie_for_everybody_is_stored() {
    for control in ["public, max-age=60", "s-maxage=60"] {
        let (foxy, origin) = (Foxy::forward(), cookies(control));
        assert_eq!(cookie(&foxy, &origin, "1").as_deref(), Some("sid=1"));
        assert_eq!(cookie(&foxy, &origin, "2").as_deref(), Some("sid=1"));
    }
    let mut config = Config::default();
    config.rules.store_set_cookie = true;
    let foxy = Foxy::start(Role::Forward, config, 1);
    let origin = cookies("max-age=60");
    assert_eq!(cookie(&foxy, &origin, "1").as_deref(), Some("sid=1"));
    assert_eq!(cookie(&foxy, &origin, "2").as_deref(), Some("sid=1"));
}

#[test]
fn the_cookie_of_a_304_is_for_the_client_that_validated() {
    let origin = Origin::start(|asked: &mut Asked| {
        let session = match asked.field("X-User") {
            Some(user) => format!("Set-Cookie: sid={user}\r\n"),
            None => String::new(),
        };
        let fields = format!("Cache-Control: max-age=10\r\nETag: \"e\"\r\n{session}");
        if asked.field("If-None-Match").is_some() {
            asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"));
        } else {
            asked.reply("200 OK", &fields, "page");
        }
        true
    });
    let foxy = Foxy::forward();
    assert_eq!(foxy.get(&origin, "/p").field("Set-Cookie"), None);
    foxy.clock.advance(Duration::from_secs(11));
    let own = foxy.get_with(&origin, "/p", "X-User: 1\r\n");
    assert_eq!(
        (own.status, own.text().as_str(), own.field("Set-Cookie")),
        (200, "page", Some("sid=1"))
    );
    for _ in 0..2 {
        let other = foxy.get(&origin, "/p");
        assert_eq!(
            (other.text().as_str(), other.field("Set-Cookie")),
            ("page", None)
        );
    }
}

/// Pages that name their user. They have no validator except Last-Modified.
fn pages(kind: &'static str) -> Origin {
    Origin::start(move |asked: &mut Asked| {
        let user = asked.field("Cookie").unwrap_or("nobody").to_owned();
        let fields =
            format!("Content-Type: {kind}\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n");
        asked.reply("200 OK", &fields, user);
        true
    })
}

#[test]
fn a_page_with_nothing_but_last_modified_is_not_shared_between_users() {
    let (foxy, origin) = (Foxy::forward(), pages("text/html"));
    for user in ["a=1", "a=2", "a=1"] {
        let answer = foxy.get_with(&origin, "/p", &format!("Cookie: {user}\r\n"));
        assert_eq!(answer.text(), user, "{answer:?}");
    }
    assert_eq!(foxy.get(&origin, "/p").text(), "nobody");
    assert_eq!(foxy.get(&origin, "/p").text(), "nobody");
    assert_eq!(origin.asked(), 4, "it is kept for those without a cookie");
    let user = foxy.get_with(&origin, "/p", "Cookie: a=3\r\n");
    assert_eq!(user.text(), "a=3");
}

#[test]
fn an_image_with_nothing_but_last_modified_is_shared() {
    let (foxy, origin) = (Foxy::forward(), pages("image/png"));
    for _ in 0..2 {
        assert_eq!(
            foxy.get_with(&origin, "/i", "Cookie: a=1\r\n").text(),
            "a=1"
        );
    }
    assert_eq!(
        foxy.get_with(&origin, "/i", "Cookie: a=2\r\n").text(),
        "a=1"
    );
    assert_eq!(origin.asked(), 1);
}

#[test]
fn a_user_gets_no_page_of_another_when_the_origin_is_away() {
    let origin = Origin::start(|asked: &mut Asked| {
        let user = asked.field("Cookie").unwrap_or("nobody").to_owned();
        if user == "gone" {
            return false;
        }
        let control = if asked.path() == "/0" {
            "Cache-Control: max-age=0\r\n"
        } else {
            ""
        };
        asked.reply("200 OK", &format!("{control}ETag: \"{user}\"\r\n"), user);
        true
    });
    let foxy = Foxy::forward();
    for path in ["/", "/0"] {
        foxy.get_with(&origin, path, "Cookie: a=1\r\n");
        let answer = foxy.get_with(&origin, path, "Cookie: gone\r\n");
        assert_eq!(answer.status, 502, "{answer:?}");
    }
}
