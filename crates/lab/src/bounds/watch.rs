//! The watching clients. They are well-behaved clients that run beside every load and measure its effect on
//! others. They request small hits and small misses at a low rate, on new connections and on kept
//! connections. They also request the health check of the admin address.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use foxy_bench::Histogram;
use tokio::time::{Instant, interval, sleep, timeout};

use super::conn::{Fault, TIMEOUT};
use super::fixture::{Client, Fixture};
use super::loads::{SMALL, small};
use super::origin::plain;
use super::tally::Tally;
use crate::kit::{ClientRequest, Target, runtime};

/// Time between two rounds. Each round sends one request on a new connection and one request on a kept
/// connection.
const INTERVAL: Duration = Duration::from_millis(20);
/// Time between two health checks.
const HEALTH_INTERVAL: Duration = Duration::from_millis(100);
/// Size of small misses, in bytes.
const MISS: usize = 4_000;
/// Source addresses of the watching clients.
pub(super) const SOURCES: [Ipv4Addr; 3] = [
    Ipv4Addr::new(127, 0, 0, 3),
    Ipv4Addr::new(127, 0, 0, 4),
    Ipv4Addr::new(127, 0, 0, 5),
];

/// One measured request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Time at which the request began.
    pub(super) at: Instant,
    /// Time from the beginning of the request to the last byte.
    pub(super) took: Duration,
    pub(super) result: Result<(), Fault>,
}

/// All samples of one load: the requests of the watching clients, and the health checks.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    pub(super) requests: Vec<Sample>,
    pub(super) health: Vec<Sample>,
}

/// A summary of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    pub(super) tally: Tally,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) max: Duration,
}

impl Summary {
    /// Summary of the requests that began from `from` to `to`.
    pub(super) fn between(samples: &[Sample], from: Instant, to: Instant) -> Self {
        let (mut tally, mut times) = (Tally::default(), Histogram::default());
        for sample in samples {
            if sample.at >= from && sample.at < to {
                tally.add(sample.result);
                times.add(u64::try_from(sample.took.as_nanos()).unwrap_or(u64::MAX));
            }
        }
        Self {
            tally,
            p50: times.quantile(0.5),
            p99: times.quantile(0.99),
            max: times.max(),
        }
    }

    /// Summary of all requests.
    pub(super) fn of(samples: &[Sample]) -> Self {
        let from = samples.iter().map(|sample| sample.at).min();
        let to = samples.iter().map(|sample| sample.at).max();
        match from.zip(to) {
            Some((from, to)) => Self::between(samples, from, to + INTERVAL),
            None => Self::default(),
        }
    }
}

/// The thread that runs the watching clients.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Watched>,
}

impl Watch {
    /// Starts the thread and its clients.
    pub(super) fn start(fixture: &Arc<Fixture>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, fixture) = (Arc::clone(&stop), Arc::clone(fixture));
        let thread = thread::spawn(move || {
            // Raises the priority of this thread, because it competes with the load's own thread. Delays by
            // the scheduler are not caused by the proxy, so they should not be measured. If the process may
            // not raise the priority, these delays are measured too.
            let _ = rustix::process::nice(-15);
            let Ok(runtime) = runtime() else {
                return Watched::default();
            };
            runtime.block_on(async {
                let (requests, health) =
                    tokio::join!(requests(&fixture, &stopped), health(&fixture, &stopped));
                Watched { requests, health }
            })
        });
        Self { stop, thread }
    }

    /// Waits for the last requests and ends the thread.
    pub(super) fn stop(self) -> Watched {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

type Samples = Arc<Mutex<Vec<Sample>>>;
type Kept = Arc<Mutex<Vec<Client>>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn requests(fixture: &Arc<Fixture>, stop: &AtomicBool) -> Vec<Sample> {
    let (samples, kept) = (Samples::default(), Kept::default());
    let mut ticks = interval(INTERVAL);
    let mut running = tokio::task::JoinSet::new();
    for round in 0_usize.. {
        ticks.tick().await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        while running.try_join_next().is_some() {}
        for new in [true, false] {
            let source = SOURCES[round % SOURCES.len()];
            let reused = if new { None } else { lock(&kept).pop() };
            let client = reused.unwrap_or_else(|| Client::new(source, fixture.proxy));
            let (path, size) = match (round / SOURCES.len()) % 2 {
                0 => (small(), SMALL),
                _ => (plain(MISS, &format!("watch{}", fixture.unique())), MISS),
            };
            let (samples, kept) = (Arc::clone(&samples), Arc::clone(&kept));
            running.spawn(async move {
                let mut client = client;
                let at = Instant::now();
                // The client's own time limit is shorter than this limit. So a client without any progress
                // returns its own error first, and this error shows which part of the answer was missing.
                let most = TIMEOUT + INTERVAL;
                let result = timeout(most, client.get(&path, size)).await;
                let result = result.unwrap_or(Err(Fault::Late));
                let took = at.elapsed();
                lock(&samples).push(Sample { at, took, result });
                if !new && result.is_ok() {
                    lock(&kept).push(client);
                }
            });
        }
    }
    while running.join_next().await.is_some() {}
    std::mem::take(&mut *lock(&samples))
}

async fn health(fixture: &Fixture, stop: &AtomicBool) -> Vec<Sample> {
    let target = Target {
        proxy: fixture.admin,
        origin: fixture.admin.to_string(),
        scheme: None,
    };
    let mut samples = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let at = Instant::now();
        let request = ClientRequest::get("/healthz".to_owned());
        let answer = request.send(&target, TIMEOUT, None);
        let result = match answer.await {
            Ok(answer) if answer.head.status() == 200 && answer.whole => Ok(()),
            Ok(answer) => Err(Fault::Status(answer.head.status())),
            Err(_) => Err(Fault::Gone),
        };
        let took = at.elapsed();
        samples.push(Sample { at, took, result });
        sleep(HEALTH_INTERVAL.saturating_sub(took)).await;
    }
    samples
}
