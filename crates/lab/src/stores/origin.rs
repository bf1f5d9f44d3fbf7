//! An origin. The path contains the length of the answer.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use foxy_base::{Clock, SystemClock};
use tokio::net::TcpListener;

use crate::kit::{AfterResponse, BufferedConn, ReceivedRequest, Respond, serve};

/// Starts the origin and returns its port. The origin answers `/LENGTH/...` with LENGTH bytes.
pub(super) async fn start() -> Result<u16, String> {
    let problem = |error| format!("the origin has no port: {error}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.map_err(problem)?;
    let port = listener.local_addr().map_err(problem)?.port();
    tokio::spawn(serve(listener, Arc::new(Lengths::default())));
    Ok(port)
}

#[derive(Default)]
struct Lengths {
    clock: SystemClock,
}

impl Respond for Lengths {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let length = length_of(&request.path);
        let now = u64::try_from(self.clock.wall().millis()).unwrap_or(0);
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(now));
        // Fields that a typical server sends.
        let head = format!(
            "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: {date}\r\nContent-Type: application/json\r\n\
             Last-Modified: Mon, 02 Nov 2026 10:00:00 GMT\r\nETag: \"6907-{length:x}\"\r\n\
             Cache-Control: max-age=86400\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut answer = head.into_bytes();
        answer.extend(body(&request.path, length));
        match conn.write(&answer).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}

fn length_of(path: &str) -> usize {
    let first = path.split('/').nth(1);
    first.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The body of a path: the path, repeated.
fn body(path: &str, length: usize) -> impl Iterator<Item = u8> {
    path.bytes().cycle().take(length)
}

/// Returns true if `found` is the body of that path.
pub(super) fn is_body_of(path: &str, found: &[u8]) -> bool {
    found.len() == length_of(path) && body(path, found.len()).eq(found.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_tells_its_path() {
        let found: Vec<u8> = body("/10/a", 10).collect();
        assert_eq!(found, b"/10/a/10/a");
        assert!(is_body_of("/10/a", &found));
        assert!(!is_body_of("/10/b", &found) && !is_body_of("/9/a", &found));
    }
}
