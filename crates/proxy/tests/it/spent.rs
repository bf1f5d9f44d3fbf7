//! Requests while the memory for requests is spent, and clients beyond their places.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Answer, Client, Foxy, Origin, Stored, until};
use foxy_proxy::{Config, Event, Role};

fn origin(size: usize) -> Origin {
    Origin::start(move |asked| {
        asked.reply("200 OK", "Cache-Control: max-age=600\r\n", "x".repeat(size));
        true
    })
}

/// A proxy with this many bytes for requests.
fn with_memory(bytes: usize) -> Foxy {
    let mut config = Config::default();
    config.limits.memory = bytes;
    config.fill.memory = bytes / 2;
    Foxy::start(Role::Forward, config, 1)
}

fn get(origin: &Origin, path: &str) -> String {
    let authority = origin.authority();
    format!("GET http://{authority}{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
}

#[test]
fn work_that_finds_no_memory_is_refused_with_the_time_to_come_back() {
    let (origin, foxy) = (origin(10), with_memory(1));
    let mut client = foxy.connect();
    client.send(get(&origin, "/a"));
    let answer = client.answer();
    assert_eq!(answer.status, 503);
    assert_eq!(answer.field("Retry-After"), Some("1"));
    assert!(foxy.proxy.totals().event(Event::MemoryRefused) > 0);
    // The connection ends, and gives its memory to others.
    assert_eq!(answer.field("Connection"), Some("close"));
    assert_eq!(client.to_end(), b"");
}

#[test]
fn the_body_of_a_refused_request_is_no_request() {
    let (origin, foxy) = (origin(10), with_memory(1));
    let authority = origin.authority();
    let hidden = get(&origin, "/hidden");
    let mut client = foxy.connect();
    client.send(format!(
        "POST http://{authority}/a HTTP/1.1\r\nHost: {authority}\r\nContent-Length: {}\r\n\r\n{hidden}",
        hidden.len()
    ));
    assert_eq!(client.answer().status, 503);
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    let rest = String::from_utf8_lossy(&rest);
    assert!(!rest.contains("HTTP/1.1"), "a second answer: {rest}");
}

/// Clients whose requests an origin holds back until `ends` is dropped. `ends` is the first field, and so
/// dropped first, since the proxy waits for requests when it ends.
struct Held {
    ends: Sender<()>,
    clients: Vec<Client>,
    foxy: Foxy,
    origin: Origin,
}

impl Held {
    fn with_memory(bytes: usize) -> Self {
        let (ends, ended) = channel::<()>();
        let ended = Mutex::new(ended);
        let origin = Origin::start(move |asked| {
            // Until the sender is dropped.
            let _ = ended.lock().unwrap().recv();
            asked.reply("200 OK", "", "late");
            true
        });
        Self {
            ends,
            clients: Vec::new(),
            foxy: with_memory(bytes),
            origin,
        }
    }

    fn ask(&mut self) {
        let mut client = self.foxy.connect();
        client.send(get(&self.origin, &format!("/{}", self.clients.len())));
        self.clients.push(client);
    }

    fn counts(&self) -> (u64, u64) {
        let accepted = self.foxy.proxy.totals().event(Event::ConnectionsAccepted);
        (accepted, self.origin.asked() as u64)
    }

    /// Connections that were accepted and requests that the origin has, once neither changes.
    fn settled(&self) -> (u64, u64) {
        let unchanged = |_| {
            let before = self.counts();
            sleep(Duration::from_millis(100));
            (before.0 > 0 && before == self.counts()).then_some(before)
        };
        (0..100).find_map(unchanged).unwrap()
    }

    /// Opens connections until one has to wait; one after the other, so that each that enters has the memory
    /// that its request needs. The clock stands still: none enters because its time to wait is over.
    fn fill(&mut self) {
        while {
            self.ask();
            let (accepted, served) = self.settled();
            accepted == served
        } {}
    }
}

#[test]
fn connections_beyond_those_that_may_wait_are_left_to_the_kernel() {
    let mut held = Held::with_memory(256 << 10);
    held.fill();
    // No more than one client may have: further ones could be refused as they enter.
    (0..12).for_each(|_| held.ask());
    assert!(held.clients.len() <= 32, "{}", held.clients.len());
    let (accepted, served) = held.settled();
    assert_eq!(accepted, served + 8, "eight may wait");
    drop(held.ends);
    for mut client in held.clients {
        let answer = client.answer();
        assert_eq!(answer.text(), "late", "{answer:?}");
    }
}

impl Held {
    /// Lets the origin answer its oldest request. Returns the client and the answer.
    fn answered(&mut self) -> (Client, Answer) {
        self.ends.send(()).unwrap();
        let mut client = self.clients.remove(0);
        let answer = client.answer();
        assert_eq!(answer.text(), "late");
        (client, answer)
    }

    /// From now on the process has far more memory than it may, whatever ends.
    fn have_too_much(&self) {
        self.foxy.proxy.observe_memory(1 << 30, false);
    }
}

#[test]
fn a_connection_that_ends_lets_in_one_that_waits() {
    let mut held = Held::with_memory(256 << 10);
    held.fill();
    held.have_too_much();
    let (client, answer) = held.answered();
    assert_ne!(answer.field("Connection"), Some("close"), "few wait");
    let (accepted, served) = held.settled();
    assert_eq!(accepted, served + 1, "one waits");
    drop(client);
    assert_eq!(held.settled(), (accepted, served + 1));
}

#[test]
fn the_first_answer_ends_its_connection_while_many_wait() {
    let mut held = Held::with_memory(256 << 10);
    held.fill();
    held.have_too_much();
    (0..12).for_each(|_| held.ask());
    let (accepted, served) = held.settled();
    assert_eq!(accepted, served + 8, "eight may wait");
    let (client, _) = held.answered();
    drop(client);
    // The next in line enters, and another one may wait.
    assert_eq!(held.settled(), (accepted + 1, served + 1));
    let mut entered = held.clients.remove(served as usize - 1);
    // Not its first request.
    let again = get(&held.origin, "/again");
    held.clients[0].send(again);
    drop(held.ends);
    let answer = entered.answer();
    assert_eq!(answer.field("Connection"), Some("close"));
    assert_eq!(entered.to_end(), b"");
    for _ in 0..2 {
        let answer = held.clients[0].answer();
        assert_eq!(answer.text(), "late");
        assert_ne!(answer.field("Connection"), Some("close"));
    }
}

#[test]
fn a_client_that_waited_is_not_served_beyond_its_share() {
    /// Connections that one client may have served where memory is short.
    const SHARE: u64 = 32;
    let mut held = Held::with_memory(2 << 20);
    held.fill();
    (0..60).for_each(|_| held.ask());
    let (accepted, served) = held.settled();
    assert!(accepted > SHARE && served < SHARE, "{accepted}, {served}");
    let refused = || held.foxy.proxy.totals().event(Event::ConnectionsRefused);
    let before = refused();
    // From now on one enters after the other, whatever the memory is.
    held.foxy.clock.advance(Duration::from_secs(2));
    let (_, now) = held.settled();
    assert!(served < now && now <= SHARE, "{served} to {now}");
    assert!(refused() > before);
}

#[test]
fn an_idle_connection_makes_room_for_a_new_one() {
    let origin = origin(10);
    let mut config = Config::default();
    config.limits.connections = 1;
    let foxy = Foxy::start(Role::Forward, config, 1);
    let mut idle = foxy.connect();
    idle.send(get(&origin, "/a"));
    assert_eq!(idle.answer().status, 200);
    // A connection that is idle for so short a time is not closed for want of memory.
    sleep(Duration::from_millis(50));
    let mut new = foxy.connect();
    new.send(get(&origin, "/a"));
    assert_eq!(new.answer().status, 200);
    assert_eq!(idle.to_end(), b"", "the idle connection is closed");
    foxy.counts(Event::ConnectionsShed, 1);
}

#[test]
fn a_connection_with_a_request_is_not_closed_for_a_new_one() {
    let origin = Origin::start(|asked| {
        sleep(Duration::from_secs(2));
        asked.reply("200 OK", "", "late");
        true
    });
    let mut config = Config::default();
    config.limits.connections = 1;
    let foxy = Foxy::start(Role::Forward, config, 1);
    let mut busy = foxy.connect();
    busy.send(get(&origin, "/a"));
    sleep(Duration::from_secs(1));
    let mut new = foxy.connect();
    let mut byte = [0];
    assert!(!matches!(new.stream.read(&mut byte), Ok(1..)), "refused");
    assert_eq!(busy.answer().text(), "late");
}

#[test]
fn a_client_has_its_places_and_no_more() {
    let origin = origin(10);
    let mut config = Config::default();
    config.limits.client_connections = 2;
    let foxy = Foxy::start(Role::Forward, config, 1);
    let mut clients: Vec<_> = (0..2).map(|_| foxy.connect()).collect();
    for client in &mut clients {
        client.send(get(&origin, "/a"));
        assert_eq!(client.answer().status, 200);
    }
    let mut third = foxy.connect();
    let mut byte = [0];
    assert!(!matches!(third.stream.read(&mut byte), Ok(1..)), "refused");
    clients.clear();
    let mut tries = 100;
    while foxy.proxy.connections() > 0 && tries > 0 {
        tries -= 1;
        sleep(Duration::from_millis(20));
    }
    let mut again = foxy.connect();
    again.send(get(&origin, "/a"));
    assert_eq!(again.answer().status, 200);
}

#[test]
fn a_large_answer_waits_for_a_place_and_small_ones_do_not() {
    const LARGE: usize = 8 << 20;
    let large = origin(LARGE);
    let small = origin(10);
    // One place: three eighths of this is more than 64 KiB and less than twice that.
    let foxy = with_memory(200 << 10);
    let mut first = foxy.connect();
    first.send(get(&large, "/1"));
    let mut byte = [0];
    assert_eq!(first.stream.read(&mut byte).unwrap(), 1);
    let mut second = foxy.connect();
    second.send(get(&large, "/2"));
    let wait = Some(Duration::from_millis(700));
    second.stream.set_read_timeout(wait).unwrap();
    let nothing = second.stream.read(&mut byte).unwrap_err().kind();
    assert!(matches!(
        nothing,
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
    assert_eq!(foxy.get(&small, "/s").status, 200);
    drop(first);
    let patience = Some(Duration::from_secs(20));
    second.stream.set_read_timeout(patience).unwrap();
    assert_eq!(second.answer().body.len(), LARGE);
}

/// Clients wait for a place while the fill that they follow goes past them: each starts over and gets
/// the whole.
#[test]
fn a_crowd_that_waits_for_places_gets_whole_answers() {
    const LARGE: usize = 4 << 20;
    let origin = origin(LARGE);
    let mut config = Config::default();
    config.limits.memory = 200 << 10;
    config.fill.memory = 100 << 10;
    config.fill.lag = Duration::from_millis(50);
    let foxy = Foxy::start(Role::Forward, config, 1);
    let mut clients: Vec<_> = (0..6).map(|_| foxy.connect()).collect();
    for client in &mut clients {
        client.send(get(&origin, "/crowd"));
    }
    // All read at the same time: a client that does not read may be closed for the others.
    std::thread::scope(|scope| {
        for mut client in clients {
            scope.spawn(move || {
                let patience = Some(Duration::from_secs(20));
                client.stream.set_read_timeout(patience).unwrap();
                assert_eq!(client.answer().body.len(), LARGE);
            });
        }
    });
}

/// Sets a flag when it is dropped, also by a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// There is one place. A client that reads has it, and gives it to each that has waited for long: while the
/// fill runs, and when the object is stored.
#[test]
fn clients_of_a_crowd_have_the_places_in_turns() {
    const LARGE: usize = 8 << 20;
    let body: Arc<Vec<u8>> = Arc::new((0..LARGE).map(|i| (i / 251) as u8).collect());
    let sent = Arc::clone(&body);
    let origin = Origin::start(move |asked| {
        let fields = "Cache-Control: max-age=9999999\r\nETag: \"1\"\r\n";
        asked.reply("200 OK", fields, &*sent);
        true
    });
    let mut config = Config::default();
    config.limits.memory = 600 << 10;
    config.fill.memory = 64 << 20;
    let stored = Stored::start_as(config, 4 << 20, 128 << 20, 1);
    let foxy = &stored.foxy;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                foxy.clock.advance(Duration::from_millis(500));
                sleep(Duration::from_millis(2));
            }
        });
        let _ticks = Ends(&over);
        for _ in 0..2 {
            let begun = AtomicBool::new(false);
            let mut first = foxy.connect();
            first.send(get(&origin, "/turns"));
            first.head();
            let mut got = first.exactly(64 << 10);
            let mut others: Vec<_> = (0..3).map(|_| foxy.connect()).collect();
            for client in &mut others {
                client.send(get(&origin, "/turns"));
            }
            std::thread::scope(|crowd| {
                for client in &mut others {
                    crowd.spawn(|| {
                        client.head();
                        begun.store(true, Ordering::SeqCst);
                        assert!(client.exactly(LARGE) == *body, "other bytes");
                    });
                }
                while got.len() < LARGE {
                    if !begun.load(Ordering::SeqCst) {
                        assert!(got.len() < LARGE / 2, "one client alone has the place");
                        sleep(Duration::from_millis(2));
                    }
                    got.extend(first.exactly(16 << 10));
                }
            });
            assert!(got == *body, "other bytes");
        }
    });
    assert_eq!(origin.asked(), 1);
}

/// Others have all memory of fills, so that the first request of a crowd gets a fetch with a small window.
/// The second one finds its beginning gone, and its own fetch is stored for all that follow.
#[test]
fn a_crowd_without_memory_for_fills_needs_two_fetches() {
    const LARGE: usize = 2 << 20;
    /// More than a small window.
    const BEGINNING: usize = 300 << 10;
    let go = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&go);
    let origin = Origin::start(move |asked| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n";
        asked.raw(format!("{head}Content-Length: {LARGE}\r\n\r\n"));
        asked.raw("x".repeat(BEGINNING));
        until(|| gate.load(Ordering::SeqCst));
        asked.raw("x".repeat(LARGE - BEGINNING));
        true
    });
    let mut config = Config::default();
    config.fill.memory = 8 << 20;
    let stored = Stored::start_as(config, 64 << 20, 64 << 20, 1);
    let foxy = &stored.foxy;
    let begins = |path: &str| {
        let mut client = foxy.connect();
        client.send(get(&origin, path));
        assert!(client.head().starts_with("HTTP/1.1 200"), "{path}");
        client.exactly(BEGINNING);
        client
    };
    let _others: Vec<_> = (0..12).map(|i| begins(&format!("/{i}"))).collect();
    let before = origin.asked();
    let mut crowd: Vec<_> = (0..8).map(|_| begins("/crowd")).collect();
    assert_eq!(origin.asked() - before, 2);
    go.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        for client in &mut crowd {
            scope.spawn(|| assert_eq!(client.exactly(LARGE - BEGINNING).len(), LARGE - BEGINNING));
        }
    });
}

/// There is memory for one fragment or two: the clients of a crowd wait for each other, and each gets the
/// right bytes.
#[test]
fn a_crowd_with_memory_for_few_fragments_gets_whole_answers() {
    const LARGE: usize = 4 << 20;
    let body: Arc<Vec<u8>> = Arc::new((0..LARGE).map(|i| (i / 251) as u8).collect());
    let sent = Arc::clone(&body);
    let origin = Origin::start(move |asked| {
        asked.reply("200 OK", "Cache-Control: max-age=600\r\n", &*sent);
        true
    });
    let mut config = Config::default();
    config.limits.memory = 400 << 10;
    let stored = Stored::start_as(config, 4 << 20, 64 << 20, 1);
    let foxy = &stored.foxy;
    // The store may have dropped a part of what came faster than its disk writes.
    until(|| {
        let asked = origin.asked();
        assert_eq!(foxy.get(&origin, "/large").body, *body);
        stored.settle(0);
        origin.asked() == asked
    });
    let reads = || foxy.proxy.totals().event(Event::DiskReads);
    let before = reads();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(foxy.get(&origin, "/large").body == *body, "other bytes"));
        }
    });
    assert!(reads() > before, "it comes from disk");
}

/// Fills have no memory, and the window of the first answer has moved on. The next answer is private: of two
/// users that wait for its head together, each gets an answer of their own.
#[test]
fn users_that_come_too_late_and_meet_a_private_answer_get_their_own() {
    const LARGE: usize = 1 << 20;
    const BEGINNING: usize = 300 << 10;
    let (head_sent, go) = (
        Arc::new(AtomicBool::new(true)),
        Arc::new(AtomicBool::new(false)),
    );
    let (heads, gate) = (Arc::clone(&head_sent), Arc::clone(&go));
    let origin = Origin::start(move |asked| {
        let user = asked.field("Cookie").unwrap_or("-").to_owned();
        until(|| heads.load(Ordering::SeqCst));
        let control = if user == "1" { "public" } else { "private" };
        asked.raw(format!(
            "HTTP/1.1 200 OK\r\nCache-Control: {control}, max-age=600\r\nContent-Length: {LARGE}\r\n\r\n"
        ));
        asked.raw(user.repeat(BEGINNING));
        until(|| gate.load(Ordering::SeqCst));
        asked.raw(user.repeat(LARGE - BEGINNING));
        true
    });
    let mut config = Config::default();
    config.fill.memory = 0;
    let foxy = Foxy::start(Role::Forward, config, 1);
    let asks = |user: &str| {
        let mut client = foxy.connect();
        client.send(
            get(&origin, "/mine").replace("\r\n\r\n", &format!("\r\nCookie: {user}\r\n\r\n")),
        );
        client
    };
    let begins = |client: &mut Client, user: u8| {
        assert!(client.head().starts_with("HTTP/1.1 200"));
        assert!(client.exactly(BEGINNING).iter().all(|byte| *byte == user));
    };
    let mut first = asks("1");
    begins(&mut first, b'1');
    head_sent.store(false, Ordering::SeqCst);
    let (mut second, mut third) = (asks("2"), asks("3"));
    until(|| foxy.proxy.followers() == 3);
    assert_eq!(origin.asked(), 2, "the third waits for the second");
    head_sent.store(true, Ordering::SeqCst);
    begins(&mut second, b'2');
    begins(&mut third, b'3');
    go.store(true, Ordering::SeqCst);
    for (client, user) in [(&mut first, b'1'), (&mut second, b'2'), (&mut third, b'3')] {
        let rest = client.exactly(LARGE - BEGINNING);
        assert_eq!(rest.len(), LARGE - BEGINNING);
        assert!(rest.iter().all(|byte| *byte == user));
    }
    assert_eq!(origin.asked(), 3);
}
