//! Origin of the collapse measurements: objects with prescribed behaviour and counters.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::leaders::Bad;
use crate::kit::{AfterResponse, BufferedConn, ReceivedRequest, Respond};

/// A request that is held back continues after this time, even if nothing releases it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Number of parts of a slow body.
const PARTS: usize = 80;
/// Time before each part of a slow body. All parts together take 8 s.
const PART_TIME: Duration = Duration::from_millis(100);

/// Behaviour of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Fresh for one minute.
    Fresh,
    /// Fresh for one second; a 304 makes it fresh for one minute.
    Expiring,
    /// The answer must be validated for every client.
    NoCache,
    /// The answer must be validated for every client, and its body takes 8 s.
    SlowNoCache,
    /// The first answer fails; later answers are fresh for one minute.
    Leader(Bad),
}

/// An object and its request counters.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) behaviour: Behaviour,
    pub(super) body: Vec<u8>,
    /// The first answer waits until this value is true.
    pub(super) released: watch::Sender<bool>,
    pub(super) asked: watch::Sender<u32>,
    /// Number of answers with a body.
    pub(super) bodies: AtomicU32,
    /// Number of answers with status 304.
    pub(super) confirmed: AtomicU32,
}

impl Object {
    fn new(path: &str, behaviour: Behaviour, size: usize, released: bool) -> Self {
        let line = format!("{path} ");
        let body = line.bytes().cycle().take(size).collect();
        Self {
            behaviour,
            body,
            released: watch::Sender::new(released),
            asked: watch::Sender::new(0),
            bodies: AtomicU32::new(0),
            confirmed: AtomicU32::new(0),
        }
    }

    /// Waits for the first request.
    pub(super) async fn first_asked(&self) {
        let mut asked = self.asked.subscribe();
        let _ = timeout(TIMEOUT, asked.wait_for(|count| *count > 0)).await;
    }

    /// Number of requests so far.
    pub(super) fn requests(&self) -> u32 {
        *self.asked.borrow()
    }

    async fn hold(&self) {
        let mut released = self.released.subscribe();
        let _ = timeout(TIMEOUT, released.wait_for(|released| *released)).await;
    }

    /// Returns the field lines of an answer that does not fail. `confirms` is true for a 304.
    fn fields(&self, confirms: bool) -> &'static str {
        match self.behaviour {
            Behaviour::Expiring if !confirms => "Cache-Control: max-age=1\r\nETag: \"v1\"\r\n",
            Behaviour::NoCache | Behaviour::SlowNoCache => {
                "Cache-Control: no-cache\r\nETag: \"v1\"\r\n"
            }
            _ => "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n",
        }
    }

    async fn good(
        &self,
        request: &ReceivedRequest,
        conn: &mut BufferedConn,
    ) -> std::io::Result<()> {
        let condition = request.head.get("If-None-Match").unwrap_or_default();
        if condition.contains("\"v1\"") {
            self.confirmed.fetch_add(1, Ordering::Relaxed);
            let head = format!("HTTP/1.1 304 Not Modified\r\n{}\r\n", self.fields(true));
            return conn.write(head.as_bytes()).await;
        }
        self.bodies.fetch_add(1, Ordering::Relaxed);
        let fields = self.fields(false);
        let whole = self.body.len();
        let (head, body) = match from(request).filter(|from| *from < whole) {
            Some(from) => {
                let left = whole - from;
                let head = format!(
                    "HTTP/1.1 206 Partial Content\r\n{fields}Content-Range: bytes {from}-{}/{whole}\
                     \r\nContent-Length: {left}\r\n\r\n",
                    whole - 1
                );
                (head, &self.body[from..])
            }
            None => (
                format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {whole}\r\n\r\n"),
                self.body.as_slice(),
            ),
        };
        conn.write(head.as_bytes()).await?;
        if self.behaviour != Behaviour::SlowNoCache {
            return conn.write(body).await;
        }
        for part in body.chunks(whole.div_ceil(PARTS)) {
            sleep(PART_TIME).await;
            conn.write(part).await?;
        }
        Ok(())
    }
}

/// Returns the first byte position in the Range field of a request; `None` if the request has no such field.
fn from(request: &ReceivedRequest) -> Option<usize> {
    let range = request.head.get("Range")?.strip_prefix("bytes=")?;
    range
        .strip_suffix('-')
        .unwrap_or(range)
        .split('-')
        .next()?
        .parse()
        .ok()
}

/// The origin.
#[derive(Debug, Default)]
pub(super) struct Origin {
    objects: Mutex<HashMap<String, Arc<Object>>>,
}

impl Origin {
    /// Adds an object at a path. The first answer waits unless `released` is true.
    pub(super) fn add(
        &self,
        path: &str,
        behaviour: Behaviour,
        size: usize,
        released: bool,
    ) -> Arc<Object> {
        let object = Arc::new(Object::new(path, behaviour, size, released));
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.insert(path.to_owned(), Arc::clone(&object));
        object
    }

    fn find(&self, path: &str) -> Option<Arc<Object>> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(path).cloned()
    }
}

impl Respond for Origin {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let Some(object) = self.find(&request.path) else {
            let nothing = b"HTTP/1.1 404 No Object\r\nContent-Length: 0\r\n\r\n";
            return match conn.write(nothing).await {
                Ok(()) => AfterResponse::Keep,
                Err(_) => AfterResponse::Close,
            };
        };
        let mut first = false;
        object.asked.send_modify(|count| {
            first = *count == 0;
            *count += 1;
        });
        if first {
            object.hold().await;
            if let Behaviour::Leader(bad) = object.behaviour {
                return bad.respond(&object.body, conn).await;
            }
        }
        match object.good(request, conn).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}
