//! Sends `CONNECT` to a parent. If the parent accepts it, the connection leads to the destination.

use std::future::poll_fn;
use std::io::{self, IoSlice};

use crate::access::parents::{Parent, WANTS_LOGIN};
use crate::http::net::Transport;
use crate::origin::UpstreamError;

/// Longest head of an answer, in bytes.
const LONGEST: usize = 16 << 10;

/// Requests a tunnel to `host` and `port` from the parent. Reads the head of the parent's answer byte by
/// byte, because the bytes after the head come from the destination.
pub(crate) async fn open_tunnel<S: Transport>(
    stream: &S,
    parent: &Parent,
    (host, port): (&str, u16),
) -> Result<(), UpstreamError> {
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    let mut request =
        format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    request.extend_from_slice(parent.login());
    request.extend_from_slice(b"\r\n");
    write(stream, &request)
        .await
        .map_err(|_| UpstreamError::Closed)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST {
            return Err(UpstreamError::BadResponse("head-too-large"));
        }
        head.push(byte(stream).await.map_err(|_| UpstreamError::Closed)?);
    }
    let status = head
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| rest.get(2..5));
    match status {
        Some([b'2', ..]) => Ok(()),
        Some(b"407") => Err(UpstreamError::BadResponse(WANTS_LOGIN)),
        Some(b"403") => Err(UpstreamError::BadResponse("parent-denies")),
        _ => Err(UpstreamError::BadResponse("parent-opens-no-tunnel")),
    }
}

async fn write<S: Transport>(stream: &S, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(&[IoSlice::new(bytes)]) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll_fn(|cx| stream.poll_writable(cx)).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn byte<S: Transport>(stream: &S) -> io::Result<u8> {
    let mut byte = [0];
    loop {
        match stream.try_read(&mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll_fn(|cx| stream.poll_readable(cx)).await?;
            }
            Err(error) => return Err(error),
        }
    }
}
