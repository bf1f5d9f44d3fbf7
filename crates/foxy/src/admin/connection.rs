//! One connection to the admin listener: one request, one answer.

use std::time::Duration;

use foxy_http1::{FieldSlots, HeadScanner, Limits, RequestHead, write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{State, routes};

const HEAD_BYTES: usize = 16 << 10;
/// A client has this long for everything.
const TIME: Duration = Duration::from_secs(15);

/// An answer to send.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// A line of text.
    pub(super) fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{text}\n").into_bytes(),
        }
    }
}

/// Reads a request, answers it, closes. What goes wrong on the way concerns that client alone.
pub(super) async fn serve(mut stream: TcpStream, state: &State) {
    let _ = tokio::time::timeout(TIME, exchange(&mut stream, state)).await;
}

async fn exchange(stream: &mut TcpStream, state: &State) -> std::io::Result<()> {
    let limits = Limits {
        head_bytes: HEAD_BYTES,
        ..Limits::default()
    };
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let mut buffer = Vec::with_capacity(1024);
    let (answer, head_only) = loop {
        match RequestHead::parse(&buffer, &mut scanner, &mut slots, &limits) {
            Ok(Some(head)) => {
                let head_only = head.method_text() == b"HEAD";
                break (routes::answer(&head, state).await, head_only);
            }
            Ok(None) => {}
            Err(reject) => break (Answer::text(reject.status, reject.reason), false),
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    };
    stream.write_all(&encode(&answer, head_only)).await?;
    stream.shutdown().await?;
    // Reading on until the client closes keeps unread input from resetting the answer.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

fn encode(answer: &Answer, head_only: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + answer.body.len());
    write::status_line(&mut out, answer.status);
    write::field(&mut out, b"Content-Type", answer.content_type.as_bytes());
    write::number_field(&mut out, b"Content-Length", answer.body.len() as u64);
    write::field(&mut out, b"Cache-Control", b"no-store");
    write::field(&mut out, b"X-Content-Type-Options", b"nosniff");
    write::field(&mut out, b"X-Frame-Options", b"DENY");
    write::field(&mut out, b"Connection", b"close");
    write::end(&mut out);
    if !head_only {
        out.extend_from_slice(&answer.body);
    }
    out
}
