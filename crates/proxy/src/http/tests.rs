//! Clients and requests where memory is spent, over real sockets.

use std::cell::Cell;
use std::net::{Ipv4Addr, TcpListener};
use std::rc::Rc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::room::{LONG_HEAD, MEMORY as SPENT};
use super::*;
use crate::Event;
use crate::ledger::Use;
use crate::local::Local;
use crate::testing::with_worker;

const MEMORY: usize = 1 << 20;

/// A client, and the proxy's side of its connection.
async fn connection(local: &Local) -> (TcpStream, Link<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let client = client.await.unwrap();
    let (served, _) = listener.accept().unwrap();
    served.set_nonblocking(true).unwrap();
    let served = TcpStream::from_std(served).unwrap();
    let link = Link::new(local, served, &Rc::new(Cell::new(false)));
    (client, link)
}

/// The next request, of a client that sends a head of `bytes` bytes.
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
fn a_long_head_waits_where_connections_have_half_of_the_memory() {
    with_worker(MEMORY, |local| async move {
        let long = LONG_HEAD + 1000;
        assert_eq!(request(&local, long).await.unwrap(), long);
        let held = local.proxy.ledger.take(Use::Connections, MEMORY / 2);
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
        // Others have all places, and do not read.
        let _places = ledger.take(Use::Queues, MEMORY);
        let (_client, waiting) = connection(&local).await;
        let (_other, other) = connection(&local).await;
        let there = Rc::clone(&local);
        let waits = spawn_local(async move { waiting.queue(&there, 1 << 20).await.is_some() });
        // Without the connection that waits there is room for the other.
        let _held = ledger.take(Use::Connections, MEMORY - (8 << 10));
        assert!(!other.lacks_room(&local).await, "it finds room in time");
        assert!(!waits.await.unwrap(), "the one that waits gets no place");
        assert_eq!(local.proxy.totals().event(Event::MemoryRefused), 1);
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
        assert_eq!((roomy.bytes(), used()), (0, before));
        let _others = ledger.take(Use::Queues, MEMORY / 2);
        let short = link.queue(&local, 60_000).await.unwrap();
        assert_eq!(used(), before + 60_000);
        drop(short);
        assert_eq!(used(), before);
    });
}
