//! Clients that send the next request as soon as they have an answer, and check every byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::origin::is_body_of;
use crate::kit::BufferedConn;

/// The counts of the answers that the clients got.
#[derive(Debug, Default)]
pub(super) struct Got {
    /// Number of answers from the cache.
    pub(super) hits: AtomicU64,
    /// Number of answers that came from the origin.
    pub(super) misses: AtomicU64,
    /// Number of broken connections, answers with a status other than 200, and answers with wrong bytes.
    pub(super) bad: AtomicU64,
}

impl Got {
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
    pub(super) fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
    pub(super) fn bad(&self) -> u64 {
        self.bad.load(Ordering::Relaxed)
    }
}

/// A function that returns the path of the request with the given number; `None` if the client must end.
pub(super) type Paths = Arc<dyn Fn(u64) -> Option<String> + Send + Sync>;

/// Runs `clients` clients. Each client requests the next path of `paths`. The clients end when there are no
/// more paths or the time is over.
pub(super) async fn run(
    to: SocketAddr,
    clients: usize,
    paths: Paths,
    longest: Option<Duration>,
) -> Arc<Got> {
    let (got, next) = (Arc::new(Got::default()), Arc::new(AtomicU64::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let mut all = JoinSet::new();
    for _ in 0..clients {
        let (got, next, stop) = (Arc::clone(&got), Arc::clone(&next), Arc::clone(&stop));
        let paths = Arc::clone(&paths);
        all.spawn(async move {
            let mut conn = None;
            while !stop.load(Ordering::Relaxed) {
                let Some(path) = paths(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                match ask(to, &path, conn.take()).await {
                    Some((hit, open)) => {
                        let count = if hit { &got.hits } else { &got.misses };
                        count.fetch_add(1, Ordering::Relaxed);
                        conn = Some(open);
                    }
                    None => {
                        got.bad.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
    }
    if let Some(longest) = longest {
        tokio::time::sleep(longest).await;
        stop.store(true, Ordering::Relaxed);
    }
    while all.join_next().await.is_some() {}
    got
}

/// Requests a path. Returns true for a hit, and the connection; `None` if the answer is not correct.
pub(super) async fn ask(
    to: SocketAddr,
    path: &str,
    conn: Option<BufferedConn>,
) -> Option<(bool, BufferedConn)> {
    let mut open = match conn {
        Some(open) => open,
        None => BufferedConn::new(TcpStream::connect(to).await.ok()?),
    };
    let text = format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n");
    open.write(text.as_bytes()).await.ok()?;
    let head = open.head().await.ok()??;
    let mut body = Vec::new();
    open.counted(head.length()?, &mut body).await.ok()?;
    let right = head.status() == 200 && is_body_of(path, &body);
    let hit = head
        .get("Cache-Status")
        .is_some_and(|said| said.contains("; hit"));
    right.then_some((hit, open))
}
