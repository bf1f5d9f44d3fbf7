//! Clients that send requests at a steady rate. Each request is for a different page. The clients count the
//! answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::kit::BufferedConn;

/// An answer that takes longer counts as missing.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The counts of the answers that the clients got since the counts were last read.
#[derive(Debug, Default)]
pub(super) struct Counts {
    good: AtomicU64,
    /// Answers with status 500 or above.
    errors: AtomicU64,
    /// Requests without a complete answer, and answers with a status below 500 other than 200.
    broken: AtomicU64,
    /// The longest time to an answer, in microseconds.
    longest: AtomicU64,
}

/// The values of [`Counts`] at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Got {
    pub(super) good: u64,
    pub(super) errors: u64,
    pub(super) broken: u64,
    pub(super) longest: Duration,
}

impl Got {
    pub(super) const fn all(&self) -> u64 {
        self.good + self.errors + self.broken
    }
}

impl Counts {
    /// Returns the counts since the last call and resets them.
    pub(super) fn take(&self) -> Got {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Got {
            good: take(&self.good),
            errors: take(&self.errors),
            broken: take(&self.broken),
            longest: Duration::from_micros(take(&self.longest)),
        }
    }

    fn note(&self, status: Option<u16>, took: Duration) {
        let count = match status {
            Some(200) => &self.good,
            Some(500..) => &self.errors,
            _ => &self.broken,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.longest.fetch_max(took, Ordering::Relaxed);
    }
}

/// Clients that run until this value is dropped.
#[derive(Debug)]
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    pub(super) counts: Arc<Counts>,
}

impl Load {
    /// Starts clients that send `rate` requests per second over `connections` connections.
    pub(super) fn start(to: SocketAddr, connections: u64, rate: u64) -> Self {
        let load = Self {
            stop: Arc::default(),
            counts: Arc::default(),
        };
        let every = Duration::from_secs_f64(connections as f64 / rate.max(1) as f64);
        for number in 0..connections {
            let (stop, counts) = (Arc::clone(&load.stop), Arc::clone(&load.counts));
            tokio::spawn(async move {
                // The clients do not start at the same time. Their starts are spread over `every`, the
                // interval between two requests of one client.
                sleep(every.mul_f64(number as f64 / connections as f64)).await;
                client(to, number, every, &stop, &counts).await;
            });
        }
        load
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

async fn client(to: SocketAddr, number: u64, every: Duration, stop: &AtomicBool, counts: &Counts) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut conn: Option<BufferedConn> = None;
    for request in 0u64.. {
        ticks.tick().await;
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let asked = Instant::now();
        let exchange = async {
            let mut open = match conn.take() {
                Some(open) => open,
                None => BufferedConn::new(TcpStream::connect(to).await.ok()?),
            };
            let text = format!("GET /{number}/{request} HTTP/1.1\r\nHost: site.test\r\n\r\n");
            open.write(text.as_bytes()).await.ok()?;
            let head = open.head().await.ok()??;
            let mut body = Vec::new();
            open.counted(head.length()?, &mut body).await.ok()?;
            let closes = head.get("Connection").is_some_and(|word| word == "close");
            Some((head.status(), (!closes).then_some(open)))
        };
        let got = timeout(TIMEOUT, exchange).await.ok().flatten();
        let (status, open) = got.map_or((None, None), |(status, open)| (Some(status), open));
        conn = open;
        counts.note(status, asked.elapsed());
    }
}
