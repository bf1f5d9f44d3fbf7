//! An origin that can be stopped, made to fail or slowed down. A stopped origin can be started again on the
//! same port.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::kit::{AfterResponse, BufferedConn, ReceivedRequest, Respond, serve};

/// Behaviour of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mode {
    /// The origin answers after its delay.
    Well,
    /// The origin answers after ten times its delay.
    Slow,
    /// The origin answers 500 without its delay.
    Errors,
    /// The origin resets a connection when a request has arrived.
    Resets,
    /// The origin does not listen, so connections are refused.
    Dead,
}

impl Mode {
    const ALL: [Self; 5] = [
        Self::Well,
        Self::Slow,
        Self::Errors,
        Self::Resets,
        Self::Dead,
    ];
}

/// One origin with its own port.
#[derive(Debug)]
pub(super) struct Server {
    port: u16,
    site: Arc<Site>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Site {
    mode: AtomicU8,
    asked: AtomicU64,
    delay: Duration,
}

impl Server {
    pub(super) async fn start(delay: Duration) -> Result<Self, String> {
        let listener = listen(0).await?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        let site = Arc::new(Site {
            mode: AtomicU8::new(Mode::Well as u8),
            asked: AtomicU64::new(0),
            delay,
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&site)));
        Ok(Self {
            port,
            site,
            listening: Mutex::new(Some(task)),
        })
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Number of requests that arrived.
    pub(super) fn asked(&self) -> u64 {
        self.site.asked.load(Ordering::Relaxed)
    }

    /// Changes the behaviour of the origin.
    pub(super) async fn set(&self, mode: Mode) -> Result<(), String> {
        self.site.mode.store(mode as u8, Ordering::Relaxed);
        let mut listening = self.listening.lock().await;
        match (mode, listening.take()) {
            (Mode::Dead, Some(task)) => task.abort(),
            (Mode::Dead, None) => {}
            (_, Some(task)) => *listening = Some(task),
            (_, None) => {
                let listener = listen(self.port).await?;
                *listening = Some(tokio::spawn(serve(listener, Arc::clone(&self.site))));
            }
        }
        Ok(())
    }
}

async fn listen(port: u16) -> Result<TcpListener, String> {
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, port).into();
    TcpListener::bind(address)
        .await
        .map_err(|error| format!("an origin has no port: {error}"))
}

impl Respond for Site {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let mode = Mode::ALL[usize::from(self.mode.load(Ordering::Relaxed)) % Mode::ALL.len()];
        if mode == Mode::Dead {
            return AfterResponse::Reset;
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        let status = match mode {
            Mode::Resets => return AfterResponse::Reset,
            Mode::Errors => "500 Internal Server Error",
            Mode::Slow => {
                sleep(self.delay * 10).await;
                "200 OK"
            }
            _ => {
                sleep(self.delay).await;
                "200 OK"
            }
        };
        let life = match request.path.starts_with("/kept/") {
            true => "max-age=1, stale-if-error=3600",
            false => "no-store",
        };
        let head =
            format!("HTTP/1.1 {status}\r\nCache-Control: {life}\r\nContent-Length: 4\r\n\r\npage");
        match conn.write(head.as_bytes()).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}
