//! Good clients: they behave well, and send requests at an even rate on connections that stay open.

use std::io;
use std::time::Duration;

use foxy_bench::Histogram;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::PAGE;
use crate::kit::{BufferedConn, Secured, TlsTarget};

/// Number of good clients.
const CLIENTS: u64 = 8;
/// Time between two requests of one client. All clients together send 1,000 requests per second.
const INTERVAL: Duration = Duration::from_millis(8);
/// A request fails after this time.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Results of all good clients.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) requests: u64,
    pub(super) failed: u64,
    /// Times of the requests, in nanoseconds.
    pub(super) times: Histogram,
}

/// Runs the good clients for `length`.
pub(super) async fn run(foxy: &Secured, length: Duration) -> Times {
    let all = async {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| spawn_local(client(foxy.target(), length)))
            .collect();
        let mut all = Times::default();
        for client in clients {
            let Ok(times) = client.await else {
                all.failed += 1;
                continue;
            };
            all.requests += times.requests;
            all.failed += times.failed;
            all.times.merge(&times.times);
        }
        all
    };
    LocalSet::new().run_until(all).await
}

async fn client(target: TlsTarget, length: Duration) -> Times {
    let mut all = Times::default();
    let mut conn = None;
    let begun = Instant::now();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while begun.elapsed() < length {
        ticks.tick().await;
        let asked = Instant::now();
        let request = async {
            let mut open = match conn.take() {
                Some(open) => open,
                None => BufferedConn::over(target.connect(None).await?),
            };
            ask(&mut open).await?;
            Ok::<_, io::Error>(open)
        };
        all.requests += 1;
        match timeout(TIMEOUT, request).await {
            Ok(Ok(open)) => {
                conn = Some(open);
                all.times.add(asked.elapsed().as_nanos() as u64);
            }
            _ => all.failed += 1,
        }
    }
    all
}

async fn ask<S>(conn: &mut BufferedConn<S>) -> io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    conn.write(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await?;
    let head = conn.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut body = Vec::new();
    conn.counted(head.length().unwrap_or(0), &mut body).await?;
    match head.status() == 200 && body.len() == PAGE {
        true => Ok(()),
        false => Err(io::Error::other("another answer")),
    }
}
