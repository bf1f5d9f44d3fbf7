//! The clients of the loads that fill Foxy's queues: one function for the clients of each load.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::clients::Clients;
use super::conn::{Conn, Fault};
use super::origin::plain;
use super::tally::Tally;

/// Size of the small object that idle clients request once, in bytes.
pub(super) const SMALL: usize = 2_000;
/// Size of a large object, in bytes.
pub(super) const LARGE: usize = 8_000_000;
/// Number of large objects.
pub(super) const LARGE_OBJECTS: usize = 8;
/// Size of a request head without an end, in bytes.
const HALF_HEAD: usize = 60_000;
/// Size of the object that a crowd requests, in bytes.
const CROWD: usize = 10_000_000;
/// Pause of a client whose request failed.
const PAUSE: Duration = Duration::from_millis(50);

/// Path of a stored small object.
pub(super) fn small() -> String {
    plain(SMALL, "small")
}

/// Path of a stored large object.
pub(super) fn large(number: usize) -> String {
    plain(LARGE, &format!("large{}", number % LARGE_OBJECTS))
}

/// Requests distinct objects that are not stored, one after the other on each connection.
pub(super) async fn misses(clients: Clients, size: usize) -> Tally {
    let client = |clients: Arc<Clients>, number| async move {
        let (mut tally, mut client) = (Tally::default(), clients.client(number));
        while !clients.is_over() {
            let path = plain(size, &format!("miss{}", clients.fixture.unique()));
            let result = match clients.opening(client.open()).await {
                Ok(()) => client.get(&path, size).await,
                Err(fault) => Err(fault),
            };
            tally.add(result);
            if result.is_err() {
                sleep(PAUSE).await;
            }
        }
        tally
    };
    clients.all(client).await
}

/// Requests stored large objects and does not read the answers.
pub(super) async fn unread(clients: Clients) -> Tally {
    let client = |clients: Arc<Clients>, number| async move {
        let opened = async {
            let mut conn = clients.open(number).await?;
            conn.ask(&large(number)).await?;
            Ok(conn)
        };
        held(opened.await, clients.until).await
    };
    clients.all(client).await
}

/// Sends request heads without an end.
pub(super) async fn half_heads(clients: Clients) -> Tally {
    let client = |clients: Arc<Clients>, number| async move {
        let opened = async {
            let mut conn = clients.open(number).await?;
            conn.write(&half_head()).await?;
            Ok(conn)
        };
        held(opened.await, clients.until).await
    };
    clients.all(client).await
}

/// Returns the first bytes of a head: the request line and some fields, but not the empty line that ends a
/// head.
pub(super) fn half_head() -> Vec<u8> {
    let mut head = b"GET /o/1/x HTTP/1.1\r\nHost: bounds.test\r\n".to_vec();
    for number in 0.. {
        let line = format!("X-Fill-{number}: {}\r\n", "f".repeat(980));
        if head.len() + line.len() > HALF_HEAD {
            break;
        }
        head.extend_from_slice(line.as_bytes());
    }
    head
}

/// Keeps a connection open until the end of the load. The returned tally contains the state of the connection
/// at that time.
async fn held(opened: Result<Conn, Fault>, until: Instant) -> Tally {
    let mut tally = Tally::default();
    match opened {
        Ok(conn) => {
            sleep_until(until).await;
            tally.hold(conn.seen());
        }
        Err(fault) => tally.add(Err(fault)),
    }
    tally
}

/// Opens connections, requests a small hit on each connection, and keeps the connections open.
pub(super) async fn idle(clients: Clients) -> Tally {
    let client = |clients: Arc<Clients>, number| async move {
        let mut client = clients.client(number);
        let result = clients.opening(client.get(&small(), SMALL)).await;
        let mut tally = Tally::default();
        tally.add(result);
        if let Some(conn) = client.into_conn() {
            sleep_until(clients.until).await;
            tally.hold(conn.seen());
        }
        tally
    };
    clients.all(client).await
}

/// Many clients request one large object at the same moment. The object is not stored.
pub(super) async fn crowd(clients: Clients) -> Tally {
    let fixture = Arc::clone(&clients.fixture);
    let together = Arc::new(Barrier::new(clients.count));
    let path: Arc<str> = plain(CROWD, &format!("crowd{}", fixture.unique())).into();
    let client = |clients: Arc<Clients>, number| {
        let (together, path) = (Arc::clone(&together), Arc::clone(&path));
        async move {
            let (mut tally, mut client) = (Tally::default(), clients.client(number));
            let opened = clients.opening(client.open()).await;
            // A client that cannot connect must not block the other clients.
            let _ = timeout(Duration::from_secs(3), together.wait()).await;
            tally.add(match opened {
                Ok(()) => client.get(&path, CROWD).await,
                Err(fault) => Err(fault),
            });
            tally
        }
    };
    let mut tally = clients.all(client).await;
    let asked = fixture.origin.crowd.swap(0, Ordering::Relaxed);
    tally.notes.push(format!("{asked} requests to the origin"));
    tally
}
