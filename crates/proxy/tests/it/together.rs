//! Requests that arrive together: requests that wait for another request, requests that do not wait, and
//! clients that disconnect.

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use crate::common::{Foxy, Origin, until};
use foxy_proxy::{Config, Event, Role};

#[test]
fn uncacheable_answers_are_remembered_and_not_waited_for() {
    let busy = Arc::new(Mutex::new((0usize, 0usize)));
    let seen = busy.clone();
    let origin = Origin::start(move |asked| {
        {
            let mut busy = seen.lock().unwrap();
            busy.0 += 1;
            busy.1 = busy.1.max(busy.0);
        }
        std::thread::sleep(Duration::from_millis(100));
        seen.lock().unwrap().0 -= 1;
        asked.reply("200 OK", "Cache-Control: no-store\r\n", "own");
        true
    });
    let foxy = Foxy::forward();
    foxy.get(&origin, "/own");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(foxy.get(&origin, "/own").text(), "own"));
        }
    });
    assert_eq!(foxy.proxy.totals().event(Event::Followers), 0);
    assert!(busy.lock().unwrap().1 > 1, "one after the other");
}

#[test]
fn variants_that_come_together_are_stored_beside_each_other() {
    let origin = Origin::start(|asked| {
        std::thread::sleep(Duration::from_millis(50));
        let cookie = asked.field("Cookie").unwrap_or("none").to_owned();
        asked.reply(
            "200 OK",
            "Cache-Control: max-age=60\r\nVary: Cookie\r\n",
            cookie,
        );
        true
    });
    let foxy = Foxy::forward();
    let get = |n: usize| {
        let cookie = format!("Cookie: c={n}\r\n");
        let answer = foxy.get_with(&origin, "/page", &cookie);
        assert_eq!(answer.text(), format!("c={n}"));
        answer
    };
    std::thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || get(n));
        }
    });
    let asked = origin.asked();
    for n in 0..8 {
        assert!(get(n).cache().contains("hit"), "variant {n}");
    }
    assert_eq!(origin.asked(), asked);
}

#[test]
fn a_client_that_resets_ends_a_fetch_that_says_nothing() {
    let origin = Origin::start(|_| {
        std::thread::sleep(Duration::from_secs(30));
        false
    });
    let foxy = Foxy::forward();
    let client = foxy.connect();
    let socket = socket2::SockRef::from(&client.stream);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    let mut sending = client.stream.try_clone().unwrap();
    let authority = origin.authority();
    let text = format!("GET http://{authority}/silent HTTP/1.1\r\nHost: x\r\n\r\n");
    std::io::Write::write_all(&mut sending, text.as_bytes()).unwrap();
    while origin.asked() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(foxy.proxy.fills(), 1);
    drop((client, sending));
    // The fetch ends, because nobody waits for it.
    until(|| foxy.proxy.fills() == 0);
}

/// Clients on two workers request one page at about the same time. A client may find no stored page, and the
/// fetch of another client may end before the first client can join it. Nevertheless, the page must be
/// fetched only once.
#[test]
fn a_page_is_fetched_once_though_its_fetch_ends_between_lookup_and_join() {
    const PAGES: usize = 3_000;
    const CLIENTS: usize = 4;
    let origin = Origin::start(|asked| {
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", "page");
        true
    });
    let foxy = Foxy::start(Role::Forward, Config::default(), 2);
    let (authority, start) = (origin.authority(), Barrier::new(CLIENTS));
    std::thread::scope(|scope| {
        for n in 0..CLIENTS {
            let (foxy, authority, start) = (&foxy, &authority, &start);
            scope.spawn(move || {
                let mut client = foxy.connect();
                for page in 0..PAGES {
                    start.wait();
                    // The clients send their requests at slightly different times. The times differ by at
                    // most about the duration of a fetch.
                    for _ in 0..n * page {
                        std::hint::spin_loop();
                    }
                    client.send(format!(
                        "GET http://{authority}/{page} HTTP/1.1\r\nHost: x\r\n\r\n"
                    ));
                    assert_eq!(client.answer().text(), "page");
                }
            });
        }
    });
    assert_eq!(origin.asked(), PAGES);
}
