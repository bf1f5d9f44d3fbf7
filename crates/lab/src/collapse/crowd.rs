//! Crowds: many clients request one object at the same moment. The origin counts the requests that reach
//! it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::object::{Behaviour, Object};
use super::{Fixture, Row, sent};
use crate::kit::{Answer, ClientRequest, Progress};

const TIMEOUT: Duration = Duration::from_secs(60);
const SIZE: usize = 10_000;
/// After this wait, all requests of a crowd have reached the proxy.
const SETTLE: Duration = Duration::from_millis(500);
/// After this wait, a lifetime of one second has expired.
const EXPIRY: Duration = Duration::from_millis(2500);

/// The expected number of requests to the origin, and the expected number of bodies that the origin sends.
struct Expected {
    requests: u32,
    bodies: u32,
}

/// Runs all crowds, one after the other.
pub(super) async fn run(fixture: &Arc<Fixture>, clients: usize) -> Vec<Row> {
    vec![
        miss(fixture, clients).await,
        expired(fixture, clients).await,
        validated(fixture, clients).await,
        late(fixture).await,
    ]
}

/// A crowd requests an object that is not stored, and whose answer may be shared.
async fn miss(fixture: &Arc<Fixture>, clients: usize) -> Row {
    let object = fixture.origin.add("/miss", Behaviour::Fresh, SIZE, false);
    let right = crowd(fixture, "/miss", &object, clients).await;
    let expected = Expected {
        requests: 1,
        bodies: 1,
    };
    row(
        format!("{clients} clients, a miss"),
        &object,
        right,
        clients,
        &expected,
    )
}

/// A crowd requests an expired object. The origin's 304 makes the object fresh again.
async fn expired(fixture: &Arc<Fixture>, clients: usize) -> Row {
    let object = fixture
        .origin
        .add("/expired", Behaviour::Expiring, SIZE, true);
    let first = ClientRequest::get("/expired".to_owned());
    let primed = first.send(&fixture.target, TIMEOUT, None).await;
    sleep(EXPIRY).await;
    let right = crowd(fixture, "/expired", &object, clients).await;
    let expected = Expected {
        requests: 2,
        bodies: 1,
    };
    row(
        format!("{clients} clients, expired, 304 gives 60 s (1 before)"),
        &object,
        right + usize::from(is_right(&primed, &object)),
        clients + 1,
        &expected,
    )
}

/// A crowd requests a page that must be validated for each client.
async fn validated(fixture: &Arc<Fixture>, clients: usize) -> Row {
    let object = fixture
        .origin
        .add("/no-cache", Behaviour::NoCache, SIZE, false);
    let right = crowd(fixture, "/no-cache", &object, clients).await;
    let expected = Expected {
        requests: u32::try_from(clients).unwrap_or(u32::MAX),
        bodies: 1,
    };
    row(
        format!("{clients} clients, no-cache and ETag"),
        &object,
        right,
        clients,
        &expected,
    )
}

/// Each second, one client requests a page that must be validated for each client. The body takes 8 s.
async fn late(fixture: &Arc<Fixture>) -> Row {
    const CLIENTS: usize = 8;
    let object = fixture
        .origin
        .add("/slow", Behaviour::SlowNoCache, 80_000, true);
    let mut running = Vec::new();
    for number in 0..CLIENTS {
        if number > 0 {
            sleep(Duration::from_secs(1)).await;
        }
        running.push(sent(fixture, ClientRequest::get("/slow".to_owned()), TIMEOUT).1);
    }
    let mut right = 0;
    for client in running {
        right += usize::from(client.await.is_ok_and(|answer| is_right(&answer, &object)));
    }
    let expected = Expected {
        requests: 8,
        bodies: 1,
    };
    row(
        "8 clients a second apart, no-cache, body of 8 s".to_owned(),
        &object,
        right,
        CLIENTS,
        &expected,
    )
}

/// Sends the requests of a crowd while the origin holds back its first answer. Returns the number of clients
/// that got the object.
async fn crowd(fixture: &Arc<Fixture>, path: &str, object: &Object, clients: usize) -> usize {
    let mut running = Vec::new();
    for _ in 0..clients {
        running.push(sent(fixture, ClientRequest::get(path.to_owned()), TIMEOUT));
    }
    for (progress, _) in &mut running {
        let _ = progress.wait_for(|at| *at >= Progress::Sent).await;
    }
    sleep(SETTLE).await;
    object.released.send_replace(true);
    let mut right = 0;
    for (_, client) in running {
        right += usize::from(client.await.is_ok_and(|answer| is_right(&answer, object)));
    }
    right
}

fn is_right(answer: &Result<Answer, String>, object: &Object) -> bool {
    let Ok(answer) = answer else { return false };
    answer.whole && answer.head.status() == 200 && answer.body == object.body
}

/// Judges a row. Every client must get the object. The origin must get exactly the expected number of
/// requests, and must send exactly the expected number of bodies.
fn row(name: String, object: &Object, right: usize, clients: usize, expected: &Expected) -> Row {
    let requests = object.requests();
    let bodies = object.bodies.load(Ordering::Relaxed);
    let confirmed = object.confirmed.load(Ordering::Relaxed);
    Row {
        name,
        measured: format!(
            "{right}/{clients} right, {requests} requests, {bodies} bodies, {confirmed} x 304"
        ),
        wanted: format!("{} requests, {} body", expected.requests, expected.bodies),
        met: right == clients && requests == expected.requests && bodies == expected.bodies,
    }
}
