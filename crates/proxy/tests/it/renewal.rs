//! Settings that change while requests run. Each request uses the settings that applied when it began. No
//! answer is stored or shared under rules that do not apply any more.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use crate::common::{Asked, Client, Foxy, Origin, until};
use foxy_proxy::{Config, Role, Serves, Site};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

/// An origin that waits for `open` before it answers paths that contain `slow`.
fn gated(open: &Arc<AtomicBool>) -> Origin {
    let open = Arc::clone(open);
    Origin::start(move |asked: &mut Asked| {
        while asked.path().contains("slow") && !open.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        asked.reply("200 OK", FRESH, "page");
        true
    })
}

/// Returns settings that permit no client on this machine.
fn closed_to_all() -> Config {
    let mut config = Config::default();
    config.access.allow_clients = vec!["192.0.2.1/32".parse().unwrap()];
    config
}

fn forward() -> Serves {
    Serves::One(Role::Forward)
}

#[test]
fn a_kept_connection_has_the_settings_of_now() {
    let origin = gated(&Arc::new(AtomicBool::new(true)));
    let mut foxy = Foxy::start(Role::Forward, Config::default(), 2);
    let (addr, authority) = (foxy.addr, origin.authority());
    let mut client = foxy.connect();
    let mut ask = || {
        client.send(format!(
            "GET http://{authority}/a HTTP/1.1\r\nHost: x\r\n\r\n"
        ));
        client.answer().status
    };
    assert_eq!(ask(), 200);
    foxy.renew(closed_to_all(), false, &[(addr, forward())]);
    // The answer is stored, but the client is not permitted any more.
    assert_eq!(ask(), 403);
    foxy.renew(Config::default(), false, &[(addr, forward())]);
    assert_eq!(ask(), 200);
    assert_eq!(origin.asked(), 1, "the contents were kept");
}

#[test]
fn a_running_fetch_is_neither_joined_nor_stored_under_other_rules() {
    for alike in [false, true] {
        let open = Arc::new(AtomicBool::new(false));
        let origin = gated(&open);
        let mut foxy = Foxy::forward();
        let addr = foxy.addr;
        let get = format!(
            "GET http://{}/slow HTTP/1.1\r\nHost: x\r\n\r\n",
            origin.authority()
        );
        let mut before = foxy.connect();
        before.send(&get);
        until(|| origin.asked() == 1);
        foxy.renew(Config::default(), alike, &[(addr, forward())]);
        let mut after = foxy.connect();
        after.send(&get);
        match alike {
            true => until(|| foxy.proxy.followers() == 2),
            false => until(|| origin.asked() == 2),
        }
        open.store(true, Ordering::SeqCst);
        assert_eq!(
            (before.answer().text(), after.answer().text()),
            ("page".into(), "page".into())
        );
        assert_eq!(origin.asked(), if alike { 1 } else { 2 });
        until(|| foxy.proxy.fills() == 0);
    }
}

#[test]
fn what_was_fetched_under_old_rules_is_not_stored() {
    let open = Arc::new(AtomicBool::new(false));
    let origin = gated(&open);
    let mut foxy = Foxy::forward();
    let addr = foxy.addr;
    let path = "/slow";
    let mut before = foxy.connect();
    before.send(format!(
        "GET http://origin.test:{}{path} HTTP/1.1\r\nHost: x\r\n\r\n",
        origin.addr.port()
    ));
    until(|| origin.asked() == 1);
    foxy.renew(Config::default(), false, &[(addr, forward())]);
    open.store(true, Ordering::SeqCst);
    assert_eq!(before.answer().text(), "page");
    until(|| foxy.proxy.fills() == 0);
    assert!(foxy.stored(&origin, path).is_none());
    assert_eq!(foxy.get(&origin, path).text(), "page");
    until(|| foxy.stored(&origin, path).is_some());
}

#[test]
fn stored_cookies_are_not_shared_any_more_when_the_rule_is_gone() {
    let origin = Origin::start(|asked: &mut Asked| {
        let fields = "Cache-Control: max-age=60\r\nSet-Cookie: sid=1\r\n";
        asked.reply("200 OK", fields, "page");
        true
    });
    let sharing = || {
        let mut config = Config::default();
        config.rules.store_set_cookie = true;
        config
    };
    let mut stripping = sharing();
    stripping.rules.strip_set_cookie = true;
    for (number, after) in [Config::default(), stripping].into_iter().enumerate() {
        let path = format!("/{number}");
        let mut foxy = Foxy::start(Role::Forward, sharing(), 1);
        let (addr, before) = (foxy.addr, origin.asked());
        foxy.get(&origin, &path);
        until(|| foxy.stored(&origin, &path).is_some());
        let hit = foxy.get(&origin, &path);
        assert_eq!((hit.status, origin.asked()), (200, before + 1));
        foxy.renew(after, false, &[(addr, forward())]);
        assert_eq!(foxy.get(&origin, &path).status, 200);
        assert_eq!(origin.asked(), before + 2, "it was fetched");
    }
}

#[test]
fn a_purge_reaches_fetches_of_before_the_reload() {
    let open = Arc::new(AtomicBool::new(false));
    let origin = gated(&open);
    let mut foxy = Foxy::forward();
    let addr = foxy.addr;
    let mut before = foxy.connect();
    let url = format!("http://origin.test:{}/slow", origin.addr.port());
    before.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    until(|| origin.asked() == 1);
    foxy.renew(Config::default(), true, &[(addr, forward())]);
    let mut purger = foxy.connect();
    purger.send(format!("PURGE {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    purger.answer();
    open.store(true, Ordering::SeqCst);
    assert_eq!(before.answer().text(), "page");
    until(|| foxy.proxy.fills() == 0);
    assert!(foxy.stored(&origin, "/slow").is_none());
}

#[test]
fn listeners_come_and_go_and_no_answer_is_truncated() {
    let open = Arc::new(AtomicBool::new(false));
    let origin = gated(&open);
    let mut foxy = Foxy::start(Role::Forward, Config::default(), 2);
    let old = foxy.addr;
    let get = |path: &str| {
        format!(
            "GET http://{}{path} HTTP/1.1\r\nHost: x\r\n\r\n",
            origin.authority()
        )
    };
    let mut idle = foxy.connect();
    idle.send(get("/a"));
    assert_eq!(idle.answer().status, 200);
    let mut running = foxy.connect();
    running.send(get("/slow"));
    until(|| origin.asked() == 2);
    let new: SocketAddr = free();
    let site = Serves::One(Role::Site(Site {
        name: "new".into(),
        host: "127.0.0.1".into(),
        port: origin.addr.port(),
        ..Site::default()
    }));
    foxy.renew(Config::default(), false, &[(new, site)]);
    let mut client = Client::to(new);
    client.send("GET /a HTTP/1.1\r\nHost: new\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    // The answer that is under way is completed, and announces the end of the connection.
    open.store(true, Ordering::SeqCst);
    let answer = running.answer();
    assert!(answer.status == 200 && answer.whole, "{}", answer.head);
    assert!(running.to_end().is_empty());
    // The idle connection ends without an answer, and no client can connect any more.
    let _ = idle.stream.shutdown(Shutdown::Write);
    assert!(idle.to_end().is_empty());
    until(|| TcpStream::connect(old).is_err());
}

/// Returns an address that is free now.
fn free() -> SocketAddr {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap()
}

#[test]
fn many_reloads_under_load_fail_no_request() {
    let origin = gated(&Arc::new(AtomicBool::new(true)));
    let mut foxy = Foxy::start(Role::Forward, Config::default(), 2);
    let (addr, authority) = (foxy.addr, origin.authority());
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|number| {
                let (stop, answered, authority) = (&stop, &answered, authority.clone());
                scope.spawn(move || {
                    let (mut kept, mut count) = (Client::to(addr), 0);
                    while !stop.load(Ordering::SeqCst) {
                        count += 1;
                        if count % 10 == 0 {
                            kept = Client::to(addr);
                        }
                        let path = format!("/{}", count % (7 + number));
                        kept.send(format!(
                            "GET http://{authority}{path} HTTP/1.1\r\nHost: x\r\n\r\n"
                        ));
                        let answer = kept.answer();
                        assert!(
                            answer.status == 200 && answer.text() == "page",
                            "{}",
                            answer.head
                        );
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        // After each reload, the test waits until some requests have ended, even on a slow machine. The wait
        // also ends if a client fails.
        let failed = || clients.iter().any(ScopedJoinHandle::is_finished);
        for round in 0..100 {
            let before = answered.load(Ordering::SeqCst);
            foxy.renew(Config::default(), round % 2 == 0, &[(addr, forward())]);
            until(|| answered.load(Ordering::SeqCst) > before + 2 || failed());
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert!(
        origin.asked() < 200,
        "the hit ratio was kept: {}",
        origin.asked()
    );
}
