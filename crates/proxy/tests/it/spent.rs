//! Requests while the memory for requests is used up, and clients that have more connections than Foxy
//! permits.

use std::io::Read;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Answer, Client, Foxy, Origin, until};
use foxy_proxy::{Config, Event, Role, Serves};

pub(crate) fn origin(size: usize) -> Origin {
    Origin::start(move |asked| {
        asked.reply("200 OK", "Cache-Control: max-age=600\r\n", "x".repeat(size));
        true
    })
}

/// Returns settings with `bytes` bytes of memory for requests.
fn memory(bytes: usize) -> Config {
    let mut config = Config::default();
    config.limits.memory = bytes;
    config.fill.memory = bytes / 2;
    config
}

/// Starts a proxy with `bytes` bytes of memory for requests.
pub(crate) fn with_memory(bytes: usize) -> Foxy {
    Foxy::start(Role::Forward, memory(bytes), 1)
}

pub(crate) fn get(origin: &Origin, path: &str) -> String {
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
    // The connection ends, and its memory becomes free for other connections.
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

/// Memory for a few requests, in bytes.
const MEMORY: usize = 256 << 10;

/// Clients whose requests wait at the origin. Each message through `ends` lets the origin answer one request.
/// When `ends` is dropped, the origin answers all of them. When the proxy is dropped, it waits for its
/// requests. So `ends` must be dropped before the proxy, and is the first field.
struct Held {
    ends: Sender<()>,
    clients: Vec<Client>,
    foxy: Foxy,
    origin: Origin,
    /// Number of requests on connections that had carried a request before.
    repeated: u64,
}

impl Held {
    fn with_memory(bytes: usize) -> Self {
        let (ends, ended) = channel::<()>();
        let ended = Mutex::new(ended);
        let origin = Origin::start(move |asked| {
            // The origin waits for a message from `ends`, or until `ends` is dropped.
            let _ = ended.lock().unwrap().recv();
            asked.reply("200 OK", "", "late");
            true
        });
        Self {
            ends,
            clients: Vec::new(),
            foxy: with_memory(bytes),
            origin,
            repeated: 0,
        }
    }

    fn ask(&mut self) {
        let mut client = self.foxy.connect();
        client.send(get(&self.origin, &format!("/{}", self.clients.len())));
        self.clients.push(client);
    }

    /// Returns the number of accepted connections, and the number of connections whose first request has
    /// reached the origin.
    fn counts(&self) -> (u64, u64) {
        let accepted = self.foxy.proxy.totals().event(Event::ConnectionsAccepted);
        (accepted, self.origin.asked() as u64 - self.repeated)
    }

    /// Waits until [`counts`](Self::counts) are `expected`, and checks that they stay the same.
    #[track_caller]
    fn settle_at(&self, expected: (u64, u64), reason: &str) {
        until(|| self.counts() == expected);
        sleep(Duration::from_millis(100));
        assert_eq!(self.counts(), expected, "{reason}");
    }

    /// Opens connections one after the other, until a connection has to wait for memory. Returns the number
    /// of accepted connections. All of them but the last are served. Each connection is opened only after
    /// Foxy has counted the memory of the earlier requests. The clock does not advance, so no connection is
    /// served because it has waited for the longest permitted time.
    fn fill(&mut self) -> u64 {
        loop {
            let before = self.counts().0;
            self.ask();
            until(|| self.counts().0 == before + 1);
            // A thread of the origin may be late on a busy machine. So the connection counts as waiting only
            // if its request does not arrive at the origin for at least two seconds.
            let waits = |_| {
                sleep(Duration::from_millis(2));
                self.counts().1 == before
            };
            if (0..1000).all(waits) {
                return before + 1;
            }
        }
    }
}

#[test]
fn connections_beyond_those_that_may_wait_are_left_to_the_kernel() {
    let mut held = Held::with_memory(MEMORY);
    let full = held.fill();
    // While memory is short, Foxy serves at most 32 connections of one client (its share). The client has no
    // more connections than this. Otherwise Foxy could refuse one of them when its wait ends.
    (0..20).for_each(|_| held.ask());
    assert!(held.clients.len() <= 32, "{}", held.clients.len());
    held.settle_at((full + 7, full - 1), "eight may wait");
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

    /// Makes Foxy believe that the process uses far more memory than permitted, even after connections end.
    fn have_too_much(&self) {
        self.foxy.proxy.observe_memory(1 << 30, false);
    }
}

#[test]
fn a_connection_that_ends_lets_in_one_that_waits() {
    let mut held = Held::with_memory(MEMORY);
    let full = held.fill();
    held.have_too_much();
    let (client, answer) = held.answered();
    // The client leaves. Otherwise Foxy would close its idle connection after a second to free memory, and no
    // waiting connection could take its place.
    drop(client);
    assert_ne!(answer.field("Connection"), Some("close"), "few wait");
    held.settle_at((full, full), "the last one has entered");
}

/// Foxy closes an idle connection because the process uses too much memory. No waiting connection may replace
/// the closed one, because then no memory would become free.
#[test]
fn a_connection_closed_for_its_memory_lets_nobody_in() {
    let mut held = Held::with_memory(MEMORY);
    let full = held.fill();
    held.have_too_much();
    let (mut idle, _) = held.answered();
    assert_eq!(idle.to_end(), b"", "closed while it is idle");
    held.foxy.counts(Event::ConnectionsShed, 1);
    held.settle_at((full, full - 1), "one still waits");
}

/// During a reload, a waiting connection keeps its position in the queue. Later it is served with the new
/// settings.
#[test]
fn a_connection_that_waits_enters_after_a_reload() {
    let mut held = Held::with_memory(MEMORY);
    held.fill();
    held.have_too_much();
    let mut config = memory(MEMORY);
    config.access.allow_clients = vec!["192.0.2.1/32".parse().unwrap()];
    let addr = held.foxy.addr;
    held.foxy
        .renew(config, false, &[(addr, Serves::One(Role::Forward))]);
    let mut waiting = held.clients.pop().unwrap();
    let mut byte = [0];
    let wait = Some(Duration::from_millis(300));
    waiting.stream.set_read_timeout(wait).unwrap();
    assert!(waiting.stream.read(&mut byte).is_err(), "nobody has left");
    let timeout = Some(Duration::from_secs(20));
    waiting.stream.set_read_timeout(timeout).unwrap();
    drop(held.answered());
    assert_eq!(waiting.answer().status, 403);
}

#[test]
fn the_first_answer_ends_its_connection_while_many_wait() {
    let mut held = Held::with_memory(MEMORY);
    let full = held.fill();
    held.have_too_much();
    (0..20).for_each(|_| held.ask());
    held.settle_at((full + 7, full - 1), "eight may wait");
    let (client, _) = held.answered();
    drop(client);
    held.settle_at((full + 8, full), "the next is served, and another may wait");
    let mut entered = held.clients.remove(full as usize - 2);
    // This is the second request on the connection.
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
fn a_connection_with_many_requests_ends_while_many_wait() {
    /// Number of requests after which a connection ends while many connections wait.
    const MANY: u64 = 64;
    let mut held = Held::with_memory(MEMORY);
    held.ask();
    let (mut busy, _) = held.answered();
    let request = |n| get(&held.origin, &format!("/busy{n}"));
    // No connection waits, so this connection may carry any number of requests.
    for n in 2..MANY {
        busy.send(request(n));
        held.ends.send(()).unwrap();
        assert_ne!(busy.answer().field("Connection"), Some("close"), "{n}");
    }
    // Two requests are sent. The first of them reaches the origin before all other requests, so that the
    // origin answers it first.
    busy.send(request(MANY) + &request(MANY + 1));
    until(|| held.origin.asked() as u64 == MANY);
    held.repeated = MANY - 1;
    let full = held.fill();
    held.have_too_much();
    (0..20).for_each(|_| held.ask());
    held.settle_at((full + 7, full - 1), "eight may wait");
    held.ends.send(()).unwrap();
    assert_ne!(busy.answer().field("Connection"), Some("close"));
    held.settle_at((full + 7, full), "the next request");
    drop(held.ends);
    let answer = busy.answer();
    assert_eq!(answer.text(), "late");
    assert_eq!(answer.field("Connection"), Some("close"));
    assert_eq!(busy.to_end(), b"");
}

#[test]
fn a_client_that_waited_is_not_served_beyond_its_share() {
    /// Largest number of connections of one client that are served at the same time when memory is short.
    const SHARE: u64 = 32;
    let mut held = Held::with_memory(2 << 20);
    let served = held.fill() - 1;
    (0..60).for_each(|_| held.ask());
    until(|| held.counts().0 > SHARE);
    assert_eq!(held.counts().1, served, "others wait");
    assert!(served < SHARE, "{served}");
    let refused = || held.foxy.proxy.totals().event(Event::ConnectionsRefused);
    let before = refused();
    // The longest permitted wait is over. So waiting connections are now served one after the other, even if
    // no memory is free.
    held.foxy.clock.advance(Duration::from_secs(2));
    until(|| held.counts().1 > served && refused() > before);
    sleep(Duration::from_millis(100));
    assert!(held.counts().1 <= SHARE, "{:?}", held.counts());
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
    // The connection has been idle only briefly. To free memory, Foxy would not close it yet. But when a
    // new connection exceeds the limit, Foxy closes it.
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
fn a_client_has_its_connections_and_no_more() {
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
    until(|| foxy.proxy.connections() == 0);
    let mut again = foxy.connect();
    again.send(get(&origin, "/a"));
    assert_eq!(again.answer().status, 200);
}

/// A large answer needs a reservation: memory in the kernel's send queues. While other answers wait, a client
/// that does not read receives only a part of the bytes that its TCP window permits. Then its answer loses
/// the reservation. So there is memory for other answers, and Foxy need not close connections.
#[test]
fn a_client_that_reads_is_answered_beside_many_that_do_not() {
    const SIZE: usize = 1_000_000;
    const UNREAD: usize = 28;
    let (origin, foxy) = (origin(SIZE), with_memory(4 << 20));
    let ask = || {
        let mut client = foxy.connect();
        client.send(get(&origin, "/a"));
        client
    };
    assert_eq!(ask().answer().body.len(), SIZE);
    foxy.counts(Event::FillsStored, 1);
    let unread: Vec<_> = (0..UNREAD).map(|_| ask()).collect();
    sleep(Duration::from_millis(200));
    assert_eq!(ask().answer().body.len(), SIZE);
    assert_eq!(foxy.proxy.totals().event(Event::ConnectionsShed), 0);
    assert_eq!(origin.asked(), 1, "the object is stored");
    drop(unread);
}
