//! Downloads that last as long as the reloads, and their origin. The origin sends a few bytes at intervals.
//! After a call of `finish`, it sends the rest of each body.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::fixture::TIMEOUT;
use crate::kit::{
    AfterResponse, BufferedConn, ClientRequest, Progress, ReceivedRequest, Respond, Target, serve,
};

/// Length of each download in bytes.
const LENGTH: usize = 256 << 10;
/// Number of bytes that the origin sends right after the head.
const FIRST: usize = 32 << 10;
/// Number of bytes that the origin sends after each [`PAUSE`].
const LITTLE: usize = 64;
/// Interval at which the origin sends [`LITTLE`] bytes of a download.
const PAUSE: Duration = Duration::from_millis(500);
/// Time limit of a download. A download may last as long as all reloads.
const LONGEST: Duration = Duration::from_secs(1800);

/// The origin.
#[derive(Debug, Default)]
pub(super) struct Long {
    finish: AtomicBool,
}

impl Long {
    /// Starts the origin on this socket.
    pub(super) fn start(listener: TcpListener) -> Arc<Self> {
        let long = Arc::new(Self::default());
        tokio::spawn(serve(listener, Arc::clone(&long)));
        long
    }

    /// Makes the origin send the rest of every body.
    pub(super) fn finish(&self) {
        self.finish.store(true, Ordering::Relaxed);
    }
}

impl Respond for Long {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let body: Vec<u8> = body(&request.path).collect();
        // The answer for every second URL may be stored.
        let caching = match request.path.ends_with(['0', '2', '4', '6', '8']) {
            true => "max-age=600",
            false => "no-store",
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: {caching}\r\nContent-Length: {LENGTH}\r\n\r\n"
        );
        if conn.write(head.as_bytes()).await.is_err() {
            return AfterResponse::Close;
        }
        let mut sent = 0;
        while sent < body.len() {
            let finish = self.finish.load(Ordering::Relaxed);
            let piece = match sent {
                _ if finish => body.len() - sent,
                0 => FIRST,
                // So few bytes are sent that the body does not end before `finish` is called.
                _ => LITTLE.min(body.len() - sent),
            };
            if conn.write(&body[sent..sent + piece]).await.is_err() {
                return AfterResponse::Close;
            }
            sent += piece;
            if sent < body.len() && !finish {
                sleep(PAUSE).await;
            }
        }
        AfterResponse::Keep
    }
}

/// The body of a path: the path, repeated.
fn body(path: &str) -> impl Iterator<Item = u8> {
    path.bytes().cycle().take(LENGTH)
}

/// Returns the client address of a download. Each download has a different address, so that Foxy's limits for
/// a single client do not affect the downloads.
fn client(number: u64) -> Ipv4Addr {
    let [.., high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 9, high, low)
}

/// Running downloads.
#[derive(Debug)]
pub(super) struct Downloads {
    tasks: JoinSet<Result<(), String>>,
    begun: Arc<AtomicU64>,
    count: u64,
}

impl Downloads {
    /// Starts `count` downloads and uses these targets in turn. Each URL is used by two downloads.
    pub(super) fn start(count: u64, targets: &[Target]) -> Self {
        let mut tasks = JoinSet::new();
        let begun = Arc::new(AtomicU64::new(0));
        for number in 0..count {
            let pair = number / 2;
            let target = targets[pair as usize % targets.len()].clone();
            let begun = Arc::clone(&begun);
            tasks.spawn(async move {
                let path = format!("/long/{pair}");
                let (progress, mut seen) = watch::channel(Progress::Before);
                let request = ClientRequest {
                    from: Some(client(number).into()),
                    ..ClientRequest::get(path.clone())
                };
                let exchange = request.send(&target, LONGEST, Some(progress));
                let told = async {
                    // An error means that the download ended before its head arrived.
                    if seen.wait_for(|at| *at == Progress::Head).await.is_ok() {
                        begun.fetch_add(1, Ordering::Relaxed);
                    }
                };
                let (answer, ()) = tokio::join!(exchange, told);
                let answer = answer.map_err(|error| format!("{path}: {error}"))?;
                let right = answer.head.status() == 200 && answer.whole;
                match right && answer.body.iter().copied().eq(body(&path)) {
                    true => Ok(()),
                    false => Err(format!(
                        "{path} by {}: {}, {} bytes",
                        target.proxy,
                        answer.head.start,
                        answer.body.len()
                    )),
                }
            });
        }
        Self {
            tasks,
            begun,
            count,
        }
    }

    /// Waits until the head of the answer has arrived for every download.
    pub(super) async fn under_way(&self) -> Result<(), String> {
        let step = Duration::from_millis(10);
        for _ in 0..TIMEOUT.as_millis() / step.as_millis() {
            if self.begun.load(Ordering::Relaxed) == self.count {
                return Ok(());
            }
            sleep(step).await;
        }
        let begun = self.begun.load(Ordering::Relaxed);
        Err(format!(
            "only {begun} of {} downloads have begun",
            self.count
        ))
    }

    /// Waits for all downloads. Returns a description of each download that was truncated or wrong.
    pub(super) async fn end(mut self) -> Vec<String> {
        let mut bad = Vec::new();
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => bad.push(fault),
                Err(error) => bad.push(error.to_string()),
            }
        }
        bad
    }
}
