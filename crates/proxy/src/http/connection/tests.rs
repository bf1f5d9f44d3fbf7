//! Tests of connections over real sockets: requests when memory is used up, and clients that do not read
//! their answers.

use std::io::{ErrorKind, IoSlice};
use std::os::fd::AsFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use foxy_base::{ManualClock, WallTime};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::spawn_local;

use super::room::{LONG_HEAD, MEMORY as SPENT};
use super::*;
use crate::Event;
use crate::http::net::{Activity, Io, Ticks, Transport as _};
use crate::state::ledger::Use;
use crate::state::local::Local;
use crate::state::turns::{GRANT, Turn};
use crate::testing::{connection, with_worker, with_worker_at};

const MEMORY: usize = 1 << 20;
/// Memory for requests that does not count as small.
const LARGE_MEMORY: usize = 64 << 20;

/// A waker that notes that it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads the next request from a client that sends a head of `bytes` bytes.
async fn request(local: &Local, bytes: usize) -> Result<usize, NoRequest> {
    let (mut client, mut link) = connection(local).await;
    let begin = b"GET /a HTTP/1.1\r\nHost: a.test\r\nX-Long: ";
    let mut head = begin.to_vec();
    head.resize(bytes - 4, b'x');
    head.extend_from_slice(b"\r\n\r\n");
    let sent = spawn_local(async move {
        let _ = client.write_all(&head).await;
        client
    });
    let parts = link.next_request(local).await;
    drop(link);
    drop(sent.await);
    parts.map(|parts| parts.len())
}

#[test]
fn a_long_head_waits_where_connections_have_their_part_of_the_memory() {
    with_worker(MEMORY, |local| async move {
        let long = LONG_HEAD + 1000;
        assert_eq!(request(&local, long).await.unwrap(), long);
        let held = local.proxy.ledger.take(Use::Connections, MEMORY / 4 * 3);
        let usual = LONG_HEAD / 2;
        assert_eq!(request(&local, usual).await.unwrap(), usual);
        let refused = request(&local, long).await;
        let spent = |refused: &NoRequest| matches!(refused, NoRequest::Refused(SPENT));
        assert!(refused.as_ref().is_err_and(spent), "{refused:?}");
        drop(held);
        assert_eq!(request(&local, long).await.unwrap(), long);
    });
}

#[test]
fn a_request_that_waits_for_readers_ends_where_connections_have_all_memory() {
    with_worker(MEMORY, |local| async move {
        let ledger = &local.proxy.ledger;
        // Other answers hold all memory for send queues, and their clients do not read.
        let _reservations = ledger.take(Use::Queues, MEMORY);
        let (_client, waiting) = connection(&local).await;
        let (_other, other) = connection(&local).await;
        let there = Rc::clone(&local);
        let waits = spawn_local(async move { waiting.queue(&there, 1 << 20).await.err() });
        // When Foxy closes the waiting connection, the memory that becomes free is enough for the other
        // connection.
        let _held = ledger.take(Use::Connections, MEMORY - (8 << 10));
        assert!(!other.lacks_room(&local).await, "it finds room in time");
        assert_eq!(
            waits.await.unwrap(),
            Some(SliceLost::Memory),
            "no reservation"
        );
        assert_eq!(local.proxy.totals().event(Event::MemoryRefused), 1);
    });
}

/// The memory suffices for two reservations in send queues, so each reservation has the smallest size.
#[test]
fn the_kernel_keeps_no_more_than_the_reservation_of_an_answer() {
    with_worker(MEMORY, |local| async move {
        let (_client, link) = connection(&local).await;
        let kept = |link: &Link<TcpStream>| {
            let socket = SockRef::from(link.io().transport());
            socket.send_buffer_size().unwrap()
        };
        let before = kept(&link);
        drop(link.queue(&local, 60_000).await);
        assert_eq!(kept(&link), before, "a short body has no reservation");
        let _reservation = link.queue(&local, 1 << 20).await.unwrap();
        assert_eq!(kept(&link), local.proxy.ledger.used(Use::Queues));
    });
}

#[test]
fn an_answer_gives_its_reservation_to_one_that_has_waited_for_long() {
    with_worker(MEMORY, |local| async move {
        let ledger = &local.proxy.ledger;
        let mut others: Vec<_> = std::iter::from_fn(|| ledger.send_reservation()).collect();
        drop(others.pop());
        let (_client, link) = connection(&local).await;
        let mut queued = link.queue(&local, 1 << 20).await.unwrap();
        assert!(ledger.send_reservation().is_none());
        let (_other_client, other) = connection(&local).await;
        let there = Rc::clone(&local);
        let waits = spawn_local(async move { other.queue(&there, 1 << 20).await.unwrap() });
        // The first answer has sent nothing. Its time slice ends because the time limit is reached.
        while !queued.is_over(&local, link.io()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(!waits.is_finished());
        let other_ends = async { drop(waits.await.unwrap()) };
        let (next, ()) = tokio::join!(queued.next_slice(&local, link.io()), other_ends);
        assert_eq!(next, Ok(()));
        assert!(!queued.is_over(&local, link.io()), "a new time slice");
    });
}

#[test]
fn an_answer_with_a_reservation_waits_for_its_turn() {
    with_worker(LARGE_MEMORY, |local| async move {
        let turns = local.sweep.turns();
        let (mut client, link) = connection(&local).await;
        spawn_local(
            async move { while client.read(&mut [0; 64 << 10]).await.is_ok_and(|n| n > 0) {} },
        );
        let (_other_client, other) = connection(&local).await;
        let _queued = link.queue(&local, 16 << 20).await.unwrap();
        let io = link.io();
        // An answer may send `GRANT` bytes with one grant. This write uses up the first grant.
        let in_time = Ticks::of(Duration::from_secs(5));
        io.write(&[7; GRANT], in_time).await.unwrap();
        let of_others = Turn::default();
        while turns.take(&of_others) {}
        let is_ready = |io: &Io<TcpStream>| {
            let mut cx = Context::from_waker(Waker::noop());
            pin!(io.turn()).poll(&mut cx).is_ready()
        };
        assert!(!is_ready(io), "no grant is left");
        assert!(is_ready(other.io()), "its answer is not long");
        io.turn().await;
        let sent = io.try_write(&[IoSlice::new(&[7; 2 * GRANT])]).unwrap();
        assert!(sent <= GRANT, "{sent}");
    });
}

#[test]
fn a_waiting_answer_is_woken_if_its_connection_must_end() {
    with_worker(MEMORY, |local| async move {
        let _used = local.proxy.ledger.take(Use::Queues, MEMORY);
        let (_client, link) = connection(&local).await;
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut waits = pin!(link.queue(&local, 1 << 20));
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        // The answer has now waited for so long that `shed_queued` ends it.
        (0..30).for_each(|_| local.sweep.tick());
        assert!(!woken.0.load(Ordering::Relaxed));
        assert_eq!(local.sweep.shed_queued(1), 1);
        assert!(woken.0.load(Ordering::Relaxed));
        assert_eq!(waits.await.err(), Some(SliceLost::Memory));
    });
}

#[test]
fn a_slow_answer_has_a_shorter_slice_if_another_has_waited_for_very_long() {
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
    let time = Arc::clone(&clock);
    with_worker_at(clock, MEMORY, |local| async move {
        let ledger = &local.proxy.ledger;
        let after = |millis| time.advance(Duration::from_millis(millis));
        let (_client, link) = connection(&local).await;
        let queued = link.queue(&local, 1 << 20).await.unwrap();
        let one = ledger.used(Use::Queues);
        after(2000);
        assert!(!queued.has_lasted(&local), "no other answer waits");
        after(1000);
        assert!(queued.has_lasted(&local));
        drop(queued);
        // Two answers wait for 2 s. Then there is memory for the first one.
        let mut used = ledger.take(Use::Queues, ledger.limit(Use::Queues));
        let waits = async {
            let line = ledger.wait_for_reservation(local.mono());
            after(2000);
            used.shrink_to(used.bytes() - one);
            line
        };
        let (queued, line) = tokio::join!(link.queue(&local, 1 << 20), waits);
        let queued = queued.unwrap();
        after(1900);
        assert!(!queued.has_lasted(&local), "the other has waited for 3.9 s");
        after(100);
        assert!(queued.has_lasted(&local), "the other has waited for 4 s");
        drop(line);
        assert!(!queued.has_lasted(&local), "no other answer waits");
    });
}

/// The client of this answer does not read.
#[test]
fn an_answer_that_is_not_taken_keeps_a_reservation_for_the_bytes_in_the_kernel() {
    with_worker(MEMORY, |local| async move {
        let used = || local.proxy.ledger.used(Use::Queues);
        let (client, link) = connection(&local).await;
        let queued = link.queue(&local, 1 << 20).await;
        let reservation = used();
        let io = link.io();
        let timeout = Ticks::of(Duration::from_secs(1));
        // Foxy also sets this option on the connections of clients when memory is short.
        let unsent = SockRef::from(io.transport()).set_tcp_notsent_lowat(16 << 10);
        unsent.unwrap();
        let piece = vec![7; 16 << 10];
        let written = loop {
            if let Err(error) = io.write(&piece, timeout).await {
                break error;
            }
        };
        assert_eq!(written.kind(), ErrorKind::TimedOut);
        let kept = io.transport().unacknowledged();
        assert!(
            kept < used() && used() < reservation,
            "{kept} {} {reservation}",
            used()
        );
        let drained = io.drained(timeout).await;
        assert_eq!(drained.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(kept < used());
        drop((queued, client));
    });
}

#[test]
fn a_client_that_leaves_gives_its_reservation_back() {
    with_worker(MEMORY, |local| async move {
        let long = Ticks::of(Duration::from_secs(3600));
        let (client, link) = connection(&local).await;
        let io = link.io();
        let short = Ticks::of(Duration::from_millis(500));
        let full = io.write(&vec![7; 16 << 20], short).await;
        assert_eq!(full.unwrap_err().kind(), ErrorKind::TimedOut);
        let drained = io.drained(long);
        // If a client closes a connection with unread bytes, its kernel resets the connection.
        drop(client);
        assert_eq!(drained.await.unwrap_err().kind(), ErrorKind::NotConnected);
        let _reservations: Vec<_> =
            std::iter::from_fn(|| local.proxy.ledger.send_reservation()).collect();
        let (client, link) = connection(&local).await;
        let there = Rc::clone(&local);
        let waits = spawn_local(async move { link.queue(&there, 1 << 20).await.err() });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!waits.is_finished());
        SockRef::from(&client)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(client);
        assert_eq!(waits.await.unwrap(), Some(SliceLost::Client));
        assert_eq!(local.proxy.totals().event(Event::MemoryRefused), 0);
    });
}

/// The client has no unread bytes when it disconnects. So its kernel closes its side first, and resets the
/// connection when bytes arrive.
#[test]
fn a_client_that_has_left_before_its_answer_gives_its_reservation_back() {
    with_worker(MEMORY, |local| async move {
        let long = Ticks::of(Duration::from_secs(3600));
        let (client, link) = connection(&local).await;
        let _queued = link.queue(&local, 1 << 20).await.unwrap();
        let io = link.io();
        drop(client);
        io.readable(long).await.unwrap();
        io.write(&[7; 1000], long).await.unwrap();
        let drained = tokio::time::timeout(Duration::from_secs(20), io.drained(long)).await;
        let drained = drained.expect("the reset is noticed");
        assert_eq!(drained.unwrap_err().kind(), ErrorKind::NotConnected);
    });
}

/// A reset is noticed although the next request of the client is still unread.
#[test]
fn a_client_that_resets_the_connection_behind_another_request_is_gone() {
    with_worker(MEMORY, |local| async move {
        let (mut client, link) = connection(&local).await;
        client.write_all(b"GET /next").await.unwrap();
        let io = link.io();
        let short = Duration::from_millis(200);
        let gone = tokio::time::timeout(short, io.gone()).await;
        assert!(gone.is_err(), "the client is there");
        SockRef::from(&client)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(client);
        let gone = tokio::time::timeout(Duration::from_secs(20), io.gone()).await;
        assert!(gone.is_ok(), "the reset is noticed");
    });
}

#[test]
fn a_client_that_has_closed_its_side_and_reads_slowly_receives_its_bytes() {
    with_worker(MEMORY, |local| async move {
        let long = Ticks::of(Duration::from_secs(3600));
        let (mut client, link) = connection(&local).await;
        let _queued = link.queue(&local, 1 << 20).await.unwrap();
        let short = Ticks::of(Duration::from_millis(500));
        let full = link.io().write(&vec![7; 16 << 20], short).await;
        assert_eq!(full.unwrap_err().kind(), ErrorKind::TimedOut);
        client.shutdown().await.unwrap();
        let reads = spawn_local(async move {
            let mut bytes = vec![0; 32 << 10];
            // All reads together take longer than the time for which Foxy waits for a client that has closed
            // its side.
            while client.read_exact(&mut bytes).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(600)).await;
            }
        });
        link.io().drained(long).await.unwrap();
        drop(link);
        reads.await.unwrap();
    });
}

/// Sends an answer to a client in time slices while another answer waits. The client gets five eighths of its
/// TCP window in each time slice. If it reads none of these bytes, it gets one time slice that uses up its
/// window. Stops when Foxy knows whether the client reads, and returns true if the client reads. Calls
/// `shrink` after each time slice.
async fn known_to_read(local: &Local, link: &Link<TcpStream>, shrink: impl Fn()) -> bool {
    let (ledger, io) = (&local.proxy.ledger, link.io());
    let mut queued = link.queue(local, 16 << 20).await.unwrap();
    assert_eq!(queued.left_in_trial(io), None, "no other answer waits");
    // Another answer waits, and all memory for queues is used.
    let wait = || {
        let used = ledger.take(Use::Queues, ledger.limit(Use::Queues));
        (ledger.wait_for_reservation(local.mono()), used)
    };
    // True if the last wait was long enough for a time slice that uses up the window.
    let mut unclear = false;
    for _ in 0..40 {
        let (line, used) = wait();
        let Some(left) = queued.left_in_trial(io) else {
            return true;
        };
        let window = io.window().unwrap();
        let usual = (window / 8 * 5).max(4 << 10);
        assert!(
            left == usual || unclear && left == window,
            "{left} of {window}"
        );
        assert!(!queued.is_over(local, io));
        let timeout = Ticks::of(Duration::from_secs(5));
        io.write(&vec![7; left as usize], timeout).await.unwrap();
        assert!(queued.is_over(local, io), "at once");
        shrink();
        let mut next = std::pin::pin!(queued.next_slice(local, io));
        let mut waits = async |short| {
            let short = Duration::from_millis(short);
            tokio::time::timeout(short, &mut next).await
        };
        // This loop may poll `next` for the first time. Then the wait for the client begins here.
        let began = local.mono();
        while ledger.used(Use::Queues) > used.bytes() {
            assert!(waits(10).await.is_err(), "the other answer is first");
        }
        drop((line, used));
        match waits(3000).await {
            Ok(next) => assert_eq!(next, Ok(())),
            Err(_) => {
                let can_try = !ledger.is_small() && local.entrance.waiting() == 0;
                let last = if can_try { window } else { usual };
                assert_eq!((left, io.activity()), (last, Activity::Unread));
                assert_eq!(local.sweep.shed(1, 1), 1);
                assert_eq!(next.await, Err(SliceLost::Client));
                return false;
            }
        }
        unclear = local.mono().since(began) >= Duration::from_millis(900);
    }
    panic!("the client's behaviour stays unknown");
}

#[test]
fn a_client_that_does_not_read_gets_no_slice_after_its_window_is_used_up() {
    with_worker(LARGE_MEMORY, |local| async move {
        let (client, link) = connection(&local).await;
        assert!(!known_to_read(&local, &link, || ()).await);
        drop(client);
    });
}

/// The client gets no time slice that uses up its window if the memory for requests is small, or while a
/// connection waits to be served.
#[test]
fn a_client_that_does_not_read_gets_no_further_slice() {
    for (memory, waits) in [(MEMORY, false), (LARGE_MEMORY, true)] {
        with_worker(memory, |local| async move {
            let _waiting = waits.then(|| local.entrance.count_waiting());
            let (client, link) = connection(&local).await;
            assert!(!known_to_read(&local, &link, || ()).await);
            drop(client);
        });
    }
}

#[test]
fn a_client_that_reads_gets_usual_turns_after_short_ones() {
    with_worker(MEMORY, |local| async move {
        let (mut client, link) = connection(&local).await;
        let reads =
            spawn_local(async move { tokio::io::copy(&mut client, &mut tokio::io::sink()).await });
        assert!(known_to_read(&local, &link, || ()).await);
        drop(link);
        let _ = reads.await;
    });
}

/// The kernel of this client has little memory from the first time slice on. It keeps the TCP window that it
/// has announced, but announces no more bytes until this window is used up.
#[test]
fn a_client_whose_kernel_makes_its_window_smaller_is_known_to_read() {
    with_worker(LARGE_MEMORY, |local| async move {
        let (mut client, link) = connection(&local).await;
        let socket = client.as_fd().try_clone_to_owned().unwrap();
        let small = Rc::new(Notify::new());
        let begins = Rc::clone(&small);
        let reads = spawn_local(async move {
            begins.notified().await;
            tokio::io::copy(&mut client, &mut tokio::io::sink()).await
        });
        let shrink = || {
            let buffer = SockRef::from(&socket).set_recv_buffer_size(8 << 10);
            buffer.unwrap();
            small.notify_one();
        };
        assert!(known_to_read(&local, &link, shrink).await);
        drop(link);
        let _ = reads.await;
    });
}

#[test]
fn short_bodies_are_entered_where_memory_is_short() {
    with_worker(MEMORY, |local| async move {
        let ledger = &local.proxy.ledger;
        let (_client, link) = connection(&local).await;
        let used = || ledger.used(Use::Connections);
        let before = used();
        let roomy = link.queue(&local, 60_000).await.unwrap();
        assert_eq!((ledger.used(Use::Queues), used()), (0, before));
        drop(roomy);
        let _others = ledger.take(Use::Queues, MEMORY / 2);
        let short = link.queue(&local, 60_000).await.unwrap();
        assert_eq!(used(), before + 60_000);
        drop(short);
        assert_eq!(used(), before);
    });
}
