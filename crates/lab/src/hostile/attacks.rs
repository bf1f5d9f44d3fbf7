//! Kinds of attacks by TLS clients. Each attack runs on its own thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_base::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::STRANGER;
use crate::kit::{Secured, TlsTarget, runtime};

/// Attempts per second of all attackers together, after their first attempts. With a higher rate, the result
/// would show the speed of the machine, because attackers share the machine with Foxy.
const RATE: f64 = 500.0;
/// Time between two checks whether the attack is over.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Longest time of one attempt.
const HOLD: Duration = Duration::from_secs(60);

/// A kind of misbehaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// The client sends bytes that are not TLS.
    Garbage,
    /// The client sends the first half of a ClientHello, and nothing after it.
    HalfHandshake,
    /// The client completes a handshake and closes the connection.
    Handshakes,
    /// The client changes its TLS keys again and again.
    NewKeys,
    /// The client sends a request with one byte in each TLS record.
    SingleBytes,
}

impl Attack {
    pub(super) const ALL: [Self; 5] = [
        Self::Garbage,
        Self::HalfHandshake,
        Self::Handshakes,
        Self::NewKeys,
        Self::SingleBytes,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Garbage => "garbage",
            Self::HalfHandshake => "half handshakes",
            Self::Handshakes => "handshakes",
            Self::NewKeys => "new keys",
            Self::SingleBytes => "single bytes",
        }
    }

    /// Makes one attempt. Except for [`Self::Handshakes`], it lasts until Foxy ends the connection.
    async fn run(self, target: &TlsTarget, rng: &mut Rng) -> io::Result<()> {
        match self {
            Self::Garbage => {
                let mut tcp = target.reach(Some(STRANGER)).await?;
                let bytes: Vec<u8> = (0..1000).map(|_| rng.below(256) as u8).collect();
                tcp.write_all(&bytes).await?;
                until_closed(&mut tcp).await
            }
            Self::HalfHandshake => {
                let mut tcp = target.reach(Some(STRANGER)).await?;
                let hello = target.hello()?;
                tcp.write_all(&hello[..hello.len() / 2]).await?;
                until_closed(&mut tcp).await
            }
            Self::Handshakes => target.connect(Some(STRANGER)).await.map(drop),
            Self::NewKeys => {
                let mut tls = target.connect(Some(STRANGER)).await?;
                for _ in 0..1000 {
                    let session = tls.get_mut().1;
                    session.refresh_traffic_keys().map_err(io::Error::other)?;
                    tls.flush().await?;
                }
                until_closed(&mut tls).await
            }
            Self::SingleBytes => {
                let mut tls = target.connect(Some(STRANGER)).await?;
                let request = b"GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                for byte in request {
                    tls.write_all(&[*byte]).await?;
                    tls.flush().await?;
                }
                until_closed(&mut tls).await
            }
        }
    }
}

async fn until_closed(from: &mut (impl AsyncReadExt + Unpin)) -> io::Result<()> {
    let mut bytes = [0; 4096];
    while from.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// Running attackers.
#[derive(Debug)]
pub(super) struct Attackers {
    stop: Arc<AtomicBool>,
    attempts: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Attackers {
    /// Starts `count` attackers.
    pub(super) fn start(attack: Attack, foxy: &Secured, count: usize) -> Self {
        let (stop, attempts) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (target, ended, made) = (foxy.target(), Arc::clone(&stop), Arc::clone(&attempts));
        let pause = Duration::from_secs_f64(count as f64 / RATE);
        let thread = std::thread::spawn(move || {
            let Ok(runtime) = runtime() else { return };
            for number in 0..count {
                let (target, made) = (target.clone(), Arc::clone(&made));
                let mut rng = Rng::new(number as u64);
                runtime.spawn(async move {
                    loop {
                        made.fetch_add(1, Ordering::Relaxed);
                        // Foxy is expected to end the attempt with an error, so the error is ignored.
                        let _ = timeout(HOLD, attack.run(&target, &mut rng)).await;
                        sleep(pause).await;
                    }
                });
            }
            runtime.block_on(async {
                while !ended.load(Ordering::Relaxed) {
                    sleep(POLL_INTERVAL).await;
                }
            });
        });
        Self {
            stop,
            attempts,
            thread,
        }
    }

    /// Ends the attackers. Returns the number of their attempts.
    pub(super) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        self.attempts.load(Ordering::Relaxed)
    }
}
