//! Crowds: many clients of large objects while memory is short. A large answer needs a reservation: memory in
//! the kernel's send buffers. The clients wait for reservations and get them for a time slice each. Some
//! tests have only little memory for fragments, or for fills (shared fetches).

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Client, Foxy, Origin, Stored, until};
use crate::spent::{get, origin, with_memory};
use foxy_proxy::{Config, Event, Role};

#[test]
fn a_large_answer_waits_for_a_place_and_small_ones_do_not() {
    const LARGE: usize = 8 << 20;
    let large = origin(LARGE);
    let small = origin(10);
    // The reservations in the send queues may use three eighths of this memory (75 KiB) or less. A
    // reservation usually has at least 128 KiB. So the first reservation uses all memory of the send queues,
    // and there is no second reservation.
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
    let timeout = Some(Duration::from_secs(20));
    second.stream.set_read_timeout(timeout).unwrap();
    assert_eq!(second.answer().body.len(), LARGE);
}

/// Clients wait for a reservation in the send queues. Meanwhile their fill drops the bytes that they need,
/// because its window (buffer) is small. Foxy then starts the request of each client again, and each client
/// gets the complete answer.
#[test]
fn a_crowd_that_waits_for_reservations_gets_whole_answers() {
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
    // All clients read at the same time. Otherwise Foxy could disconnect clients that do not read, because
    // memory is short.
    std::thread::scope(|scope| {
        for mut client in clients {
            scope.spawn(move || {
                let timeout = Some(Duration::from_secs(20));
                client.stream.set_read_timeout(timeout).unwrap();
                assert_eq!(client.answer().body.len(), LARGE);
            });
        }
    });
}

/// Sets a flag when it is dropped, so that the flag is set even if the test panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn clients_of_a_crowd_have_the_reservations_in_time_slices() {
    crowd_in_time_slices("ETag: \"1\"\r\n");
}

/// Without a validator, the rest of an answer cannot be requested from the origin. So the rest must come from
/// the fill or the store.
#[test]
fn clients_of_a_crowd_have_time_slices_of_a_body_without_a_validator() {
    crowd_in_time_slices("");
}

/// There is memory for only one reservation in the send queues. A client that reads its answer has this
/// reservation. Foxy must give it to other clients that have waited for a long time. The test checks this
/// while the fill runs, and after the object is stored. `validator` is a field line of the origin's answer.
fn crowd_in_time_slices(validator: &'static str) {
    const LARGE: usize = 8 << 20;
    /// Number of bytes that the origin sends in one piece.
    const SENT: usize = 64 << 10;
    /// Largest number of bytes by which the origin may be ahead of the store.
    const AHEAD: u64 = 512 << 10;
    let body: Arc<Vec<u8>> = Arc::new((0..LARGE).map(|i| (i / 251) as u8).collect());
    let mut config = Config::default();
    config.limits.memory = 600 << 10;
    config.fill.memory = 64 << 20;
    let stored = Stored::start_as(config, 4 << 20, 128 << 20, 1);
    let foxy = &stored.foxy;
    let (sent, engine) = (Arc::clone(&body), Arc::clone(&foxy.engine));
    let origin = Origin::start(move |asked| {
        asked.raw(format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=9999999\r\n{validator}Content-Length: {LARGE}\r\n\r\n"
        ));
        for (number, piece) in sent.chunks(SENT).enumerate() {
            // If the store's thread is slow, the store drops fragments, and Foxy requests them again. So the
            // origin sends a piece only when it is not too far ahead of the store.
            let keeps_up = || {
                let stats = engine.stats();
                let taken = stats.counts.fragments * u64::from(engine.fragment_bytes());
                (number * SENT) as u64 <= taken + AHEAD && stats.pending_bytes <= AHEAD
            };
            until(keeps_up);
            asked.raw(piece);
        }
        true
    });
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                // The clock advances slowly. Otherwise a thread that waits for a processor could exceed a
                // timeout.
                foxy.clock.advance(Duration::from_millis(24));
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
                        assert!(
                            got.len() < LARGE / 2,
                            "one client alone has the reservation"
                        );
                        // The thread that advances the clock may be late. So this thread advances it too.
                        foxy.clock.advance(Duration::from_millis(24));
                        sleep(Duration::from_millis(2));
                    }
                    let piece = first.exactly(16 << 10);
                    assert!(!piece.is_empty(), "truncated after {} bytes", got.len());
                    got.extend(piece);
                }
            });
            assert!(got == *body, "other bytes");
        }
    });
    assert_eq!(origin.asked(), 1);
}

/// Other fetches use all memory of fills. So the fetch for the first request of a crowd has only a small
/// window (buffer). The second request arrives after this window has lost the beginning of the body. So the
/// second request starts a second fetch. The object of the second fetch is stored for all later requests.
#[test]
fn a_crowd_without_memory_for_fills_needs_two_fetches() {
    const LARGE: usize = 2 << 20;
    /// Number of bytes at the beginning of a body. It is larger than a small window.
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

/// There is memory for one or two fragments of a large object. So the clients of a crowd wait for each other.
/// Each client must get the right bytes.
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
    // The store drops fragments that arrive faster than it can write them. So the test repeats the request
    // until all fragments are stored.
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

/// No memory is configured for fills, so the first fetch has only a small window (buffer). Two other users
/// send their requests after this window has lost the beginning of the body. So they need a second fetch, and
/// both wait for its head. The head is private, so each of the two users gets a separate answer.
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
    until(|| foxy.proxy.followers() == 3 && origin.asked() >= 2);
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
