//! The client that a trusted proxy names at the beginning of a connection (PROXY protocol).

use std::net::SocketAddr;

use foxy_base::rule;
use tokio::net::TcpStream;

use crate::Event;
use crate::client::listen::proxy_header::{HEADER_MAX, parse};
use crate::state::local::Local;

/// The answer to a connection whose header cannot be read, on listeners without TLS.
const REFUSAL: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Reads the header from the connection, and no byte after it. The time limit is the same as for a request
/// head. Returns the client that the header names, or `peer` if it names none. Returns `None` if there is no
/// valid header. The caller then ends the connection.
pub(crate) async fn client(
    local: &Local,
    stream: &TcpStream,
    peer: SocketAddr,
    secure: bool,
) -> Option<SocketAddr> {
    let limit = local.proxy.config.timeouts.head;
    let read = tokio::time::timeout(limit, read(stream)).await;
    if let Ok(Ok(source)) = read {
        return Some(source.unwrap_or(peer));
    }
    local.count(Event::ProxyHeadersRefused);
    match read {
        Ok(Err(word)) => {
            tracing::debug!(%peer, word, "a trusted proxy sent no PROXY header that can be read");
            if !secure {
                let _ = stream.try_write(REFUSAL);
            }
        }
        _ => local.count(Event::Timeouts),
    }
    rule!(
        "client: a trusted proxy that names nobody gets no answer",
        None,
        Some(peer)
    )
}

async fn read(stream: &TcpStream) -> Result<Option<SocketAddr>, &'static str> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
    loop {
        let ended = |_| "closed";
        let n = stream.peek(&mut piece).await.map_err(ended)?;
        if n == 0 {
            return Err("closed");
        }
        let before = bytes.len();
        bytes.extend_from_slice(&piece[..n]);
        let header = parse(&bytes)?;
        // Until the header is complete, all bytes belong to the header.
        let taken = rule!(
            "smuggling: nothing behind a PROXY header belongs to it",
            header.map_or(n, |header| header.length - before),
            n
        );
        take(stream, &mut piece[..taken]).await.map_err(ended)?;
        if let Some(header) = header {
            return Ok(header.source);
        }
        if bytes.len() > HEADER_MAX {
            return Err("proxy-header-too-long");
        }
    }
}

/// Removes bytes from the receive queue of the socket. They belong to the header, and an earlier `peek` has
/// already returned them.
async fn take(stream: &TcpStream, mut into: &mut [u8]) -> std::io::Result<()> {
    while !into.is_empty() {
        stream.readable().await?;
        match stream.try_read(into) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => into = &mut into[n..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
