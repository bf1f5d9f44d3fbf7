//! An origin that holds back one answer until it is released.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::kit::{AfterResponse, BufferedConn, ReceivedRequest, Respond, serve};

/// Length of an answer in bytes.
const LENGTH: usize = 20_000;
/// Number of bytes of a body that are sent before the answer is held.
const FIRST: usize = 10_000;
const STEP: Duration = Duration::from_millis(1);
const STEPS: u32 = 30_000;

/// An origin that holds back one answer until it is released.
#[derive(Debug)]
pub(super) struct Held {
    name: &'static str,
    /// True if the next request is held.
    armed: AtomicBool,
    holding: AtomicBool,
    open: AtomicBool,
    asked: Mutex<HashMap<String, u32>>,
}

impl Held {
    /// Starts the origin on this socket.
    pub(super) fn start(name: &'static str, listener: TcpListener) -> Arc<Self> {
        let held = Arc::new(Self {
            name,
            armed: AtomicBool::new(false),
            holding: AtomicBool::new(false),
            open: AtomicBool::new(true),
            asked: Mutex::default(),
        });
        tokio::spawn(serve(listener, Arc::clone(&held)));
        held
    }

    /// Holds the next answer. An answer is held before its head if the path contains `/head/`, and in its
    /// body if the path contains `/body/`.
    pub(super) fn hold(&self) {
        self.open.store(false, Ordering::SeqCst);
        self.holding.store(false, Ordering::SeqCst);
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Waits until an answer is held.
    pub(super) async fn is_held(&self) -> Result<(), String> {
        for _ in 0..STEPS {
            if self.holding.load(Ordering::SeqCst) {
                return Ok(());
            }
            sleep(STEP).await;
        }
        Err("the origin was not asked".to_owned())
    }

    /// Releases the held answer.
    pub(super) fn release(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    async fn until_open(&self) {
        self.holding.store(true, Ordering::SeqCst);
        for _ in 0..STEPS {
            if self.open.load(Ordering::SeqCst) {
                return;
            }
            sleep(STEP).await;
        }
    }

    /// Number of this request among the requests for the path.
    fn number(&self, path: &str) -> u32 {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    }
}

impl Respond for Held {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let path = &request.path;
        let field = |name| request.head.get(name).unwrap_or("-");
        let first = self.armed.swap(false, Ordering::SeqCst);
        let mut body = format!(
            "{} {path} n={} kind={} tenant={}\n",
            self.name,
            self.number(path),
            field("X-Kind"),
            field("X-Tenant")
        )
        .into_bytes();
        body.resize(LENGTH, b'.');
        let cookie = match path.contains("/cookie/") {
            true => "Set-Cookie: sid=1\r\n",
            false => "",
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n{cookie}Content-Length: {LENGTH}\r\n\r\n"
        );
        if first && path.contains("/head/") {
            self.until_open().await;
        }
        let begin = [head.as_bytes(), &body[..FIRST]].concat();
        if conn.write(&begin).await.is_err() {
            return AfterResponse::Close;
        }
        if first && path.contains("/body/") {
            self.until_open().await;
        }
        match conn.write(&body[FIRST..]).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}
