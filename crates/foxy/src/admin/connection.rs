//! One connection to the admin listener: one request, one answer.

use std::time::Duration;

use foxy_http1::{BodyFraming, FieldSlots, HeadScanner, Limits, RequestHead, write};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::State;
use super::guard::ListenerKind;
use super::open::ConnState;

const HEAD_BYTES: usize = 16 << 10;
/// Longest body of a request in bytes.
const BODY_BYTES: u64 = 64 << 10;
/// Time within which a client must finish its request and receive the answer.
const TIME: Duration = Duration::from_secs(15);

/// An answer that will be sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
    /// Further pieces of the body, which are sent as they arrive. Such an answer has no `Content-Length`.
    pub(super) more: Option<mpsc::Receiver<Vec<u8>>>,
}

impl Answer {
    /// Returns an answer with a line of text.
    pub(super) fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{text}\n").into_bytes(),
            more: None,
        }
    }

    /// Returns a value as JSON, or status 500 if it cannot be written as JSON.
    pub(super) fn json<T: serde::Serialize>(status: u16, value: &T) -> Self {
        match serde_json::to_vec_pretty(value) {
            Ok(mut body) => {
                body.push(b'\n');
                Self {
                    status,
                    content_type: "application/json",
                    body,
                    more: None,
                }
            }
            Err(error) => Self::text(500, &error.to_string()),
        }
    }
}

/// Reads a request, sends the answer and closes the connection. Errors affect only this client.
pub(super) async fn serve<S>(
    mut stream: S,
    kind: ListenerKind,
    state: &State,
    conn_state: &ConnState,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let exchanged = exchange(&mut stream, (kind, state), conn_state);
    let exchanged = tokio::time::timeout(TIME, exchanged).await;
    if let Ok(Ok(Some(mut more))) = exchanged {
        while let Some(piece) = more.recv().await {
            let written = tokio::time::timeout(TIME, stream.write_all(&piece)).await;
            if !matches!(written, Ok(Ok(()))) {
                return;
            }
        }
        let _ = tokio::time::timeout(TIME, finish(&mut stream)).await;
    }
}

/// Reads a request and sends the answer. If further pieces of the body will follow, returns their receiver.
async fn exchange<S>(
    stream: &mut S,
    asked: (ListenerKind, &State),
    conn_state: &ConnState,
) -> std::io::Result<Option<mpsc::Receiver<Vec<u8>>>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let limits = Limits {
        head_bytes: HEAD_BYTES,
        ..Limits::default()
    };
    let mut slots = FieldSlots::new();
    let mut buffer = Vec::with_capacity(1024);
    let (mut answer, head_only) = loop {
        match RequestHead::parse(&buffer, &mut HeadScanner::new(), &mut slots, &limits) {
            Ok(Some(head)) => {
                let parts = head.parts();
                let body = match parts.framing() {
                    BodyFraming::None => 0,
                    BodyFraming::Length(length) if length <= BODY_BYTES => length as usize,
                    BodyFraming::Length(_) => break (Answer::text(413, "too long"), false),
                    _ => break (Answer::text(411, "say the length of the body"), false),
                };
                if let Some(body) = buffer.get(parts.len()..parts.len() + body) {
                    let head_only = head.method_text() == b"HEAD";
                    conn_state.working();
                    break (super::answer(&head, body, asked).await, head_only);
                }
            }
            Ok(None) => {}
            Err(reject) => break (Answer::text(reject.status, reject.reason), false),
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(None);
        }
    };
    conn_state.sending();
    stream.write_all(&encode(&answer, head_only)).await?;
    let more = answer.more.take().filter(|_| !head_only);
    if more.is_none() {
        finish(stream).await?;
    }
    Ok(more)
}

async fn finish<S>(stream: &mut S) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.shutdown().await?;
    // If the connection is closed while input is unread, the system resets it, and the client may lose the
    // answer. So the rest of the input is read until the client closes the connection.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

fn encode(answer: &Answer, head_only: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + answer.body.len());
    write::status_line(&mut out, answer.status);
    write::field(&mut out, b"Content-Type", answer.content_type.as_bytes());
    if answer.more.is_none() {
        write::number_field(&mut out, b"Content-Length", answer.body.len() as u64);
    }
    match answer.status {
        401 => write::field(&mut out, b"WWW-Authenticate", b"Bearer"),
        // Too many purges are running. Another purge can start when the sweep of a purge (its pass over the
        // stores) has ended, which takes some seconds.
        429 => write::field(&mut out, b"Retry-After", b"10"),
        _ => {}
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_purge_states_once_when_to_try_again() {
        let answer = Answer::text(429, "the purge is refused");
        let head = String::from_utf8(encode(&answer, true)).unwrap();
        let lines: Vec<_> = head.lines().filter(|l| l.contains("Retry-After")).collect();
        assert_eq!(lines, ["Retry-After: 10"]);
    }
}
