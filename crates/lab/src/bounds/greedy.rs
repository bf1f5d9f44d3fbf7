//! Measures the latency of other clients while one greedy client uses as many resources of Foxy as it can.
//! The client makes two visits. First it puts its load on another Foxy, which is not measured, and then on
//! the measured Foxy.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::clients::{Clients, Sources};
use super::conn::{Conn, Fault, Seen};
use super::fixture::Fixture;
use super::load::{GREEDY, Outcome, Scale};
use super::loads::{SMALL, half_head, large, small};
use super::origin::slow;
use super::row::milliseconds;
use super::tally::Tally;
use super::watch::{Sample, Summary, Watched};
use crate::kit::runtime;

/// Number of connections that the greedy client tries to open. Foxy with its default settings permits fewer.
const CONNECTIONS: usize = 17_000;
/// Connections are divided into groups of `OF`. In each group, `HALF_HEADS` connections send half a head, and
/// `SLOW_READERS` connections read slowly. `SLOW_MISSES` connections request objects that are not stored and
/// that the origin sends slowly (slow misses). The remaining connections are idle. More slow misses would
/// need more open files than the usual limit of a process permits.
const OF: usize = 17;
const HALF_HEADS: usize = 5;
const SLOW_READERS: usize = 5;
const SLOW_MISSES: usize = 2;
/// Size of the objects that the slow misses request, in bytes.
const SLOW: usize = 2_000_000;
/// Pause after the visit to the other Foxy.
const BETWEEN: Duration = Duration::from_secs(2);
/// Pause after the visit to the measured Foxy.
const AFTER: Duration = Duration::from_secs(5);
/// Bytes that a slow reader reads every [`SIP_TIME`].
const SIP: usize = 1_000;
/// Time between two reads of a slow reader.
const SIP_TIME: Duration = Duration::from_millis(500);

/// Times at which the phases of this load begin and end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phases {
    begun: Instant,
    /// Beginning and end of the visit to the other Foxy.
    elsewhere: [Instant; 2],
    came: Instant,
    left: Instant,
    ended: Instant,
}

/// Calls [`run`] on a thread of the lowest priority. A real greedy client has its own machine. So the work of
/// this client must not take processor time from Foxy or from the other clients.
pub(super) async fn beside(fixture: &Arc<Fixture>, other: &Arc<Fixture>, scale: Scale) -> Outcome {
    let (fixture, other) = (Arc::clone(fixture), Arc::clone(other));
    let on_thread = move || {
        let _ = rustix::process::nice(19);
        runtime().map(|runtime| runtime.block_on(run(&fixture, &other, scale)))
    };
    match tokio::task::spawn_blocking(on_thread).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(problem)) => Outcome::of(Err(problem)),
        Err(error) => Outcome::of(Err(format!("the greedy client: {error}"))),
    }
}

/// Waits, then visits another Foxy on this machine, and then visits the measured Foxy.
///
/// The first visit only takes processor time from the other clients and from the measured Foxy. If requests
/// are slower during the second visit than during the first visit, Foxy causes the difference.
async fn run(fixture: &Arc<Fixture>, other: &Arc<Fixture>, scale: Scale) -> Outcome {
    let begun = Instant::now();
    let short = u32::try_from(scale.divisor).unwrap_or(1).clamp(1, 4);
    sleep(scale.time).await;
    let elsewhere = Instant::now();
    visit(other, scale).await;
    let elsewhere = [elsewhere, Instant::now()];
    sleep(BETWEEN / short).await;
    let came = Instant::now();
    let others = visit(fixture, scale).await;
    let left = Instant::now();
    sleep(AFTER / short).await;
    Outcome {
        others,
        phases: Some(Phases {
            begun,
            elsewhere,
            came,
            left,
            ended: Instant::now(),
        }),
        ..Outcome::default()
    }
}

/// Opens the connections of the client and closes them when the time is over.
async fn visit(fixture: &Arc<Fixture>, scale: Scale) -> Tally {
    let until = Instant::now() + scale.time;
    let count = CONNECTIONS.div_ceil(scale.divisor);
    let clients = Clients::new(fixture, Sources::One(GREEDY), count, until);
    clients.all(connection).await
}

/// One connection of this client. It sends half a head, reads slowly, requests a slow miss, or is idle.
async fn connection(clients: Arc<Clients>, number: usize) -> Tally {
    let mut tally = Tally::default();
    let reads = (HALF_HEADS..HALF_HEADS + SLOW_READERS).contains(&(number % OF));
    match begun(&clients, number).await {
        Ok(conn) => {
            let mut seen = Seen::Silent;
            while reads && !clients.is_over() && seen != Seen::Closed {
                // The first bytes contain the status.
                if seen == Seen::Silent {
                    seen = conn.seen();
                } else if !conn.sip(SIP) {
                    seen = Seen::Closed;
                }
                sleep_until(clients.until.min(Instant::now() + SIP_TIME)).await;
            }
            sleep_until(clients.until).await;
            tally.hold(if reads { seen } else { conn.seen() });
        }
        Err(fault) => tally.add(Err(fault)),
    }
    tally
}

/// Opens a connection and sends the first bytes on it.
async fn begun(clients: &Clients, number: usize) -> Result<Conn, Fault> {
    let mut conn = clients.open(number).await?;
    let kind = number % OF;
    if kind < HALF_HEADS {
        conn.write(&half_head()).await?;
    } else if kind < HALF_HEADS + SLOW_READERS {
        conn.ask(&large(number)).await?;
    } else if kind < HALF_HEADS + SLOW_READERS + SLOW_MISSES {
        let path = slow(SLOW, &format!("slow{}", clients.fixture.unique()));
        conn.ask(&path).await?;
    } else {
        conn.get(&small(), SMALL).await?;
    }
    Ok(conn)
}

/// Returns lines of text about the other clients' requests: summaries before, during and after the visits,
/// and their ratios. The last line is the time from the end of the visits until requests are fast again.
pub(super) fn phases(phases: &Phases, watched: &Watched) -> Vec<String> {
    let part = |name: &str, from, to| {
        let requests = Summary::between(&watched.requests, from, to);
        let health = Summary::between(&watched.health, from, to);
        let text = format!(
            "others {name}: p99 {}, failed {}/{}, health {}",
            milliseconds(requests.p99),
            requests.tally.failed(),
            requests.tally.failed() + requests.tally.right,
            milliseconds(health.max)
        );
        (requests.p99, text)
    };
    let [there, gone] = phases.elsewhere;
    let (usual, before) = part("before", phases.begun, there);
    let (shared, elsewhere) = part("while it is at another Foxy", there, gone);
    let (taken, during) = part("during", phases.came, phases.left);
    let (_, after) = part("after", phases.left, phases.ended);
    let ratios = format!(
        "p99 during is {:.1} times that before, {:.1} times that with the client at another Foxy",
        ratio(taken, usual),
        ratio(taken, shared)
    );
    let limit = (usual * 3).max(Duration::from_millis(50));
    let recovery = recovery(&watched.requests, phases.left, limit);
    let recovery = format!(
        "recovered {} after it left (all answers in {})",
        milliseconds(recovery),
        milliseconds(limit)
    );
    vec![before, elsewhere, during, ratios, after, recovery]
}

fn ratio(time: Duration, of: Duration) -> f64 {
    time.as_secs_f64() / of.as_secs_f64().max(1e-6)
}

/// Time from `left` to the end of the last request that failed or took longer than `limit`.
fn recovery(requests: &[Sample], left: Instant, limit: Duration) -> Duration {
    requests
        .iter()
        .filter(|sample| sample.result.is_err() || sample.took > limit)
        .map(|sample| (sample.at + sample.took).saturating_duration_since(left))
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_ends_with_the_last_bad_request() {
        let left = Instant::now() + Duration::from_secs(10);
        let sample = |at: Duration, took, result| Sample {
            at: left + at,
            took,
            result,
        };
        let (ms, second) = (Duration::from_millis(1), Duration::from_secs(1));
        let requests = [
            sample(ms, second, Ok(())),
            sample(second * 2, ms, Err(Fault::Cut)),
            sample(second * 3, ms, Ok(())),
        ];
        assert_eq!(recovery(&requests, left, ms * 50), second * 2 + ms);
        assert_eq!(recovery(&requests[2..], left, ms * 50), Duration::ZERO);
    }
}
