//! Origin of the memory measurements. The path determines the answer. `/o/SIZE/NAME` has a body of SIZE
//! bytes. `/t/SIZE/NAME` has the same body and the tag [`TAG`]. `/s/SIZE/NAME` sends its body in parts over
//! the time [`SLOW`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::kit::{AfterResponse, Body, BufferedConn, ReceivedRequest, Respond};

/// Value of Surrogate-Key in answers to `/t/`.
pub(super) const TAG: &str = "many";
/// Duration of an answer to `/s/`.
const SLOW: Duration = Duration::from_secs(30);
/// Number of parts of an answer to `/s/`.
const PARTS: u32 = 60;
/// Bodies up to this size are written together with the head.
const SMALL: usize = 16 << 10;

/// Path of a plain object.
pub(super) fn plain(size: usize, name: &str) -> String {
    format!("/o/{size}/{name}")
}

/// Path of an object with the tag.
pub(super) fn tagged(size: usize, name: &str) -> String {
    format!("/t/{size}/{name}")
}

/// Path of an object with a slow body.
pub(super) fn slow(size: usize, name: &str) -> String {
    format!("/s/{size}/{name}")
}

/// The size contained in a path of this origin; `None` for other paths.
pub(super) fn size_of(path: &str) -> Option<usize> {
    path.split('/').nth(2)?.parse().ok()
}

/// The origin.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// Number of all requests.
    pub(super) requests: AtomicU64,
    /// Number of requests for paths that contain `crowd`.
    pub(super) crowd: AtomicU64,
}

impl Origin {
    async fn answer(
        &self,
        request: &ReceivedRequest,
        conn: &mut BufferedConn,
    ) -> std::io::Result<()> {
        let Some(size) = size_of(&request.path) else {
            return conn
                .write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .await;
        };
        let tag = match request.path.starts_with("/t/") {
            true => format!("Surrogate-Key: {TAG}\r\n"),
            false => String::new(),
        };
        let mut head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n{tag}Content-Length: {size}\r\n\r\n"
        )
        .into_bytes();
        let mut body = Body::of(&request.path);
        if size <= SMALL {
            head.extend_from_slice(body.next(size));
            return conn.write(&head).await;
        }
        conn.write(&head).await?;
        let slow = request.path.starts_with("/s/");
        let part = match slow {
            true => size.div_ceil(PARTS as usize),
            false => size,
        };
        let mut left = size;
        while left > 0 {
            if slow {
                sleep(SLOW / PARTS).await;
            }
            let mut now = part.min(left);
            left -= now;
            while now > 0 {
                let bytes = body.next(now);
                conn.write(bytes).await?;
                now -= bytes.len();
            }
        }
        Ok(())
    }
}

impl Respond for Origin {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if request.path.contains("crowd") {
            self.crowd.fetch_add(1, Ordering::Relaxed);
        }
        match self.answer(request, conn).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}
