//! Requests that wait for one fetch. Each request gets the answer of the fetch only if the caching rules
//! permit this (RFC 9111 sections 4 and 5.2.2.4).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Asked, Foxy, Gate, Origin, until};
use foxy_proxy::{Collapse, Config, Role, Site, UpstreamConfig};

/// Answers with a page for the user in Cookie. The page has a different ETag for each user. A request with
/// the user's ETag gets a 304.
fn personal(asked: &mut Asked, fields: &str) {
    let user = asked.field("Cookie").unwrap_or("nobody").to_owned();
    let etag = format!("\"{user}\"");
    if asked.field("If-None-Match") == Some(&etag) {
        asked.raw(format!(
            "HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n{fields}\r\n"
        ));
    } else {
        asked.reply(
            "200 OK",
            &format!("ETag: {etag}\r\n{fields}"),
            format!("page of {user}"),
        );
    }
}

/// All `users` request the same page at the same time. The origin sends its first answer when all of them
/// wait.
fn crowd(
    foxy: &Foxy,
    origin: &Origin,
    path: &str,
    users: usize,
    gate: &Gate,
) -> Vec<crate::common::Answer> {
    gate.close();
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..users)
            .map(|n| {
                scope.spawn(move || {
                    let cookie = format!("Cookie: u{n}\r\n");
                    foxy.get_with(origin, path, &cookie)
                })
            })
            .collect();
        until(|| foxy.proxy.followers() >= users);
        gate.open();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn pages_that_need_validation_are_not_shared_unvalidated() {
    for fields in [
        "",
        "Cache-Control: no-cache\r\n",
        "Cache-Control: max-age=0\r\n",
        "Cache-Control: max-age=0, must-revalidate\r\n",
        "Cache-Control: s-maxage=0\r\n",
        "Expires: Thu, 01 Jan 2015 00:00:00 GMT\r\n",
    ] {
        let gate = Gate::default();
        let held = gate.clone();
        let origin = Origin::start(move |asked| {
            held.wait();
            personal(asked, fields);
            true
        });
        let foxy = Foxy::start(Role::Forward, Config::default(), 2);
        for round in 0..2 {
            for (n, got) in crowd(&foxy, &origin, "/me", 12, &gate).iter().enumerate() {
                assert_eq!(
                    got.text(),
                    format!("page of u{n}"),
                    "{fields:?}, round {round}: {}",
                    got.head
                );
            }
        }
    }
}

/// The page of each user has the same date. So an origin that uses only dates as validators answers 304 to
/// every client.
#[test]
fn the_page_of_a_user_is_not_validated_by_its_date_for_others() {
    for control in [
        "",
        "Cache-Control: no-cache\r\n",
        "Cache-Control: no-cache, max-age=60\r\n",
        "Cache-Control: max-age=0\r\n",
    ] {
        let gate = Gate::default();
        let held = gate.clone();
        let origin = Origin::start(move |asked| {
            held.wait();
            let user = asked.field("Cookie").unwrap_or("nobody").to_owned();
            let date =
                "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\nContent-Type: text/html\r\n";
            match asked.field("If-Modified-Since") {
                Some(_) => asked.reply("304 Not Modified", date, ""),
                None => asked.reply(
                    "200 OK",
                    &format!("{date}{control}"),
                    format!("page of {user}"),
                ),
            }
            true
        });
        let foxy = Foxy::start(Role::Forward, Config::default(), 2);
        for round in 0..2 {
            for (n, got) in crowd(&foxy, &origin, "/me", 4, &gate).iter().enumerate() {
                assert_eq!(got.text(), format!("page of u{n}"), "{control:?}, {round}");
            }
        }
        gate.open();
        let nobody = foxy.get(&origin, "/me");
        assert_eq!(nobody.text(), "page of nobody", "{control:?}");
    }
}

#[test]
fn a_crowd_on_a_page_that_all_share_costs_one_body() {
    let bodies = Arc::new(AtomicUsize::new(0));
    let (gate, sent) = (Gate::default(), bodies.clone());
    let held = gate.clone();
    let origin = Origin::start(move |asked| {
        held.wait();
        if asked.field("If-None-Match") == Some("\"v1\"") {
            asked.raw(
                "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: no-cache\r\n\r\n",
            );
        } else {
            sent.fetch_add(1, Ordering::SeqCst);
            asked.reply(
                "200 OK",
                "ETag: \"v1\"\r\nCache-Control: no-cache\r\n",
                "for all",
            );
        }
        true
    });
    let foxy = Foxy::forward();
    for round in 1..=2 {
        for got in crowd(&foxy, &origin, "/page", 20, &gate) {
            assert_eq!((got.status, got.text().as_str()), (200, "for all"));
        }
        assert_eq!(origin.asked(), 20 * round, "each has asked");
        assert_eq!(bodies.load(Ordering::SeqCst), 1, "one body");
    }
}

#[test]
fn a_validation_renews_the_answer_for_all_waiting_requests() {
    let gate = Gate::default();
    let held = gate.clone();
    let origin = Origin::start(move |asked| {
        if asked.field("If-None-Match").is_some() {
            held.wait();
            asked.raw("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\n\r\n");
        } else {
            asked.reply(
                "200 OK",
                "ETag: \"v1\"\r\nCache-Control: max-age=60\r\n",
                "page",
            );
        }
        true
    });
    let foxy = Foxy::forward();
    foxy.get(&origin, "/");
    foxy.clock.advance(Duration::from_secs(61));
    let mut words = Vec::new();
    for got in crowd(&foxy, &origin, "/", 20, &gate) {
        assert_eq!((got.status, got.text().as_str()), (200, "page"));
        assert!(
            got.cache().contains("fwd=stale; fwd-status=304"),
            "{}",
            got.cache()
        );
        assert!(!got.cache().contains("hit"), "{}", got.cache());
        words.push(got.cache().contains("collapsed"));
    }
    assert_eq!(origin.asked(), 2, "one question for all");
    assert_eq!(words.iter().filter(|collapsed| **collapsed).count(), 19);
}

/// A page whose body is sent when the gate opens. The origin counts conditional requests and bodies.
fn slow_page(control: &'static str, gate: &Gate) -> (Origin, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (held, checks, bodies) = (gate.clone(), Arc::default(), Arc::default());
    let (checked, sent): (Arc<AtomicUsize>, Arc<AtomicUsize>) =
        (Arc::clone(&checks), Arc::clone(&bodies));
    let origin = Origin::start(move |asked| {
        if asked.field("If-None-Match").is_some() {
            checked.fetch_add(1, Ordering::SeqCst);
            asked.raw("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n");
            return true;
        }
        if asked.field("Range").is_some() {
            // On a slow machine, the origin may be silent for so long that Foxy requests the rest of the
            // body. Then the origin closes the connection without an answer.
            return false;
        }
        sent.fetch_add(1, Ordering::SeqCst);
        asked.raw(format!(
            "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nCache-Control: {control}\r\nContent-Length: 10\r\n\r\n01234"
        ));
        held.wait();
        asked.raw("56789");
        true
    });
    (origin, checks, bodies)
}

#[test]
fn late_joiners_of_a_body_are_judged_as_of_now() {
    for (control, fields, asks) in [
        ("no-cache", "", 1),
        ("max-age=60", "", 0),
        ("max-age=60", "Cache-Control: no-cache\r\n", 1),
        ("max-age=60", "Cache-Control: max-age=0\r\n", 1),
    ] {
        let gate = Gate::default();
        let (origin, checks, bodies) = slow_page(control, &gate);
        let foxy = Foxy::forward();
        let to = origin.authority();
        let ask = |fields: &str| {
            let mut client = foxy.connect();
            client.send(format!(
                "GET http://{to}/ HTTP/1.1\r\nHost: x\r\n{fields}\r\n"
            ));
            let head = client.head();
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            client
        };
        // Both clients get the head before the body is sent. The second client gets it through the fetch of
        // the first client.
        let mut clients = [ask(""), ask(fields)];
        assert_eq!(checks.load(Ordering::SeqCst), asks, "{control} {fields:?}");
        gate.open();
        for client in &mut clients {
            assert_eq!(client.exactly(10), b"0123456789");
        }
        assert_eq!(bodies.load(Ordering::SeqCst), 1, "{control} {fields:?}");
    }
}

#[test]
fn interim_answers_reach_only_the_forwarded_request() {
    let gate = Gate::default();
    let held = gate.clone();
    let origin = Origin::start(move |asked| {
        held.wait();
        let user = asked.field("Cookie").unwrap_or_default().to_owned();
        asked.raw(format!(
            "HTTP/1.1 103 Early Hints\r\nSet-Cookie: hint={user}\r\n\r\n"
        ));
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", "page");
        true
    });
    let foxy = Foxy::forward();
    let (mut first, mut second) = (foxy.connect(), foxy.connect());
    for (n, client) in [&mut first, &mut second].into_iter().enumerate() {
        let to = origin.authority();
        client.send(format!(
            "GET http://{to}/ HTTP/1.1\r\nHost: x\r\nCookie: u{n}\r\n\r\n"
        ));
        until(|| foxy.proxy.followers() > n);
    }
    gate.open();
    let hint = first.head();
    assert!(hint.contains("103") && hint.contains("hint=u0"), "{hint}");
    let other = second.head();
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
}

#[test]
fn one_visitor_does_not_end_the_sharing_of_others() {
    let origin = Origin::start(|asked| {
        std::thread::sleep(Duration::from_millis(100));
        match asked.field("Cookie") {
            Some(_) => asked.reply("200 OK", "Cache-Control: private\r\n", "own"),
            None => asked.reply("200 OK", "Cache-Control: max-age=1\r\n", "all"),
        }
        true
    });
    let foxy = Foxy::forward();
    foxy.get_with(&origin, "/", "Cookie: a\r\n");
    let asked = origin.asked();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| foxy.get(&origin, "/"));
        }
    });
    assert_eq!(origin.asked() - asked, 1, "those without a cookie share");
}

#[test]
fn waits_for_one_origin_are_limited() {
    let gate = Gate::default();
    let held = gate.clone();
    let origin = Origin::start(move |asked| {
        held.wait();
        asked.reply("200 OK", "Cache-Control: no-store\r\n", "own");
        true
    });
    let upstream = UpstreamConfig {
        origin_concurrency: 3,
        origin_queue: 2,
        ..UpstreamConfig::default()
    };
    let config = Config {
        upstream,
        ..Config::default()
    };
    let foxy = Foxy::start(Role::Forward, config, 1);
    std::thread::scope(|scope| {
        let ask = |n: usize| {
            let (foxy, origin) = (&foxy, &origin);
            scope.spawn(move || foxy.get(origin, &format!("/{n}")))
        };
        let waiting: Vec<_> = (0..5).map(ask).collect();
        until(|| foxy.proxy.followers() == 5);
        until(|| origin.asked() == 3);
        let refused = foxy.get(&origin, "/too-many");
        assert_eq!(refused.status, 503, "{}", refused.head);
        assert!(refused.cache().contains("origin-busy"), "{}", refused.head);
        gate.open();
        for one in waiting {
            assert_eq!(one.join().unwrap().text(), "own");
        }
    });
    assert_eq!(origin.asked(), 5);
}

/// A site in front of a slow origin. Its answers are fresh for a second.
#[test]
fn a_site_may_give_short_lived_answers_to_all_waiting_requests() {
    for (collapse, cookie, expected) in [
        (Collapse::Arrived, "", 1),
        (Collapse::Arrived, "Cookie: u\r\n", 8),
        (Collapse::Fresh, "", 8),
    ] {
        let gate = Gate::default();
        let held = gate.clone();
        let origin = Origin::start(move |asked| {
            held.wait();
            asked.reply("200 OK", "Cache-Control: max-age=1\r\n", "page");
            true
        });
        let site = Role::Site(Site {
            name: "s".into(),
            host: "127.0.0.1".into(),
            port: origin.addr.port(),
            collapse,
            ..Site::default()
        });
        let foxy = Foxy::start(site, Config::default(), 1);
        std::thread::scope(|scope| {
            let get = || foxy.ask(&format!("GET / HTTP/1.1\r\nHost: s\r\n{cookie}\r\n"));
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
            until(|| foxy.proxy.followers() == 8);
            // The age of the answer counts from the request to the origin. So the clock advances only after
            // this request has arrived.
            until(|| origin.asked() == 1);
            foxy.clock.advance(Duration::from_secs(2));
            gate.open();
            for one in asking {
                assert_eq!(one.join().unwrap().text(), "page");
            }
        });
        assert_eq!(origin.asked(), expected, "{collapse:?} {cookie:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_validated_is_a_504() {
    let origin = Origin::start(|asked: &mut Asked| {
        if asked.field("X-Gone").is_some() {
            return false;
        }
        let control = match asked.path() {
            "/must" => "max-age=10, must-revalidate",
            "/proxy" => "max-age=10, proxy-revalidate",
            _ => "s-maxage=10",
        };
        asked.reply("200 OK", &format!("Cache-Control: {control}\r\n"), "page");
        true
    });
    let foxy = Foxy::forward();
    for path in ["/must", "/proxy", "/s"] {
        foxy.get(&origin, path);
        foxy.clock.advance(Duration::from_secs(11));
        let answer = foxy.get_with(&origin, path, "X-Gone: 1\r\n");
        assert_eq!(answer.status, 504, "{answer:?}");
        assert!(answer.text().contains("origin-closed"), "{answer:?}");
    }
    assert_eq!(foxy.get_with(&origin, "/new", "X-Gone: 1\r\n").status, 502);
}

#[test]
fn a_client_that_has_the_new_version_gets_a_304() {
    let origin = Origin::start(|asked: &mut Asked| {
        let version = asked.field("X-Version").unwrap_or("1").to_owned();
        let fields = format!("Cache-Control: max-age=10\r\nETag: \"v{version}\"\r\n");
        asked.reply("200 OK", &fields, format!("version {version}"));
        true
    });
    let foxy = Foxy::forward();
    foxy.get(&origin, "/");
    foxy.clock.advance(Duration::from_secs(11));
    let has = "X-Version: 2\r\nIf-None-Match: \"v2\"\r\n";
    let known = foxy.get_with(&origin, "/", has);
    assert_eq!(
        (
            known.status,
            known.field("ETag"),
            known.field("Content-Length")
        ),
        (304, Some("\"v2\""), None)
    );
    assert_eq!(foxy.get(&origin, "/").text(), "version 2");
    assert_eq!(origin.asked(), 2);
    foxy.clock.advance(Duration::from_secs(11));
    let has = "X-Version: 3\r\nIf-None-Match: \"v2\"\r\n";
    let other = foxy.get_with(&origin, "/", has);
    assert_eq!((other.status, other.text().as_str()), (200, "version 3"));
}

#[test]
fn cache_status_does_not_say_stored_of_bodies_that_may_be_too_large() {
    let origin = Origin::start(|asked: &mut Asked| {
        let fields = "Cache-Control: max-age=60\r\n";
        match asked.path() {
            "/open" => asked.raw(format!(
                "HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n"
            )),
            "/large" => asked.reply("200 OK", fields, "0123456789a"),
            _ => asked.reply("200 OK", fields, "0123456789"),
        }
        true
    });
    let mut config = Config::default();
    config.rules.store_bytes_max = 10;
    let foxy = Foxy::start(Role::Forward, config, 1);
    assert!(foxy.get(&origin, "/fits").cache().contains("stored"));
    for path in ["/large", "/open"] {
        for _ in 0..2 {
            let answer = foxy.get(&origin, path);
            assert!(!answer.cache().contains("stored"), "{answer:?}");
        }
    }
    assert_eq!(origin.asked(), 5);
}

#[test]
fn cache_status_does_not_say_stored_of_bodies_longer_than_the_store_takes() {
    let length = Arc::new(AtomicUsize::new(0));
    let body = Arc::clone(&length);
    let origin = Origin::start(move |asked: &mut Asked| {
        let fields = "Cache-Control: max-age=60\r\n";
        asked.reply("200 OK", fields, "x".repeat(body.load(Ordering::Relaxed)));
        true
    });
    let foxy = Foxy::start(Role::Forward, Config::default(), 1);
    let most = usize::try_from(foxy.engine.object_bytes_max()).unwrap();
    for (path, bytes, stored) in [("/longest", most, true), ("/longer", most + 1, false)] {
        length.store(bytes, Ordering::Relaxed);
        let answer = foxy.get(&origin, path);
        let said = answer.cache();
        assert_eq!(said.contains("; stored"), stored, "{said}");
        assert_eq!(said.contains("detail=no-room"), !stored, "{said}");
    }
}
