//! A connection from which heads and bodies are read one after the other.

use std::io;

use foxy_bench::{Dechunk, Piece};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Head;

/// Longest head, in bytes.
const HEAD_MAX: usize = 1 << 20;
/// Free space that the buffer gets before a read, in bytes.
const ROOM: usize = 16 << 10;
/// Free space that the buffer gets before a read of a body that may be long, in bytes.
const LONG: usize = 256 << 10;

/// A connection, and the bytes that were read from it but were not returned to the caller yet.
#[derive(Debug)]
pub struct BufferedConn<S = TcpStream> {
    stream: S,
    ahead: Vec<u8>,
}

impl BufferedConn {
    /// A TCP connection from which nothing was read yet.
    #[must_use]
    pub fn new(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        Self::over(stream)
    }

    /// Makes the connection end with a reset (RST) when this value is dropped, not with a normal close.
    pub fn reset(&self) {
        // A linger time of zero makes the close a reset.
        let _ = self.stream.set_zero_linger();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> BufferedConn<S> {
    /// A connection over any stream. Nothing was read from the stream yet.
    #[must_use]
    pub const fn over(stream: S) -> Self {
        Self {
            stream,
            ahead: Vec::new(),
        }
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// An error if the peer has disconnected.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads the next head; `None` if the peer closed the connection before the first byte.
    ///
    /// # Errors
    /// An error if the connection broke, or if it was closed inside the head.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            let end = self.ahead.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let text = String::from_utf8_lossy(&self.ahead[..end]).into_owned();
                self.ahead.drain(..end + 4);
                return Ok(Some(Head::parse(&text)));
            }
            if self.ahead.len() > HEAD_MAX {
                return Err(io::Error::other("a head without an end"));
            }
            if !self.more().await? {
                return match self.ahead.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// Reads until the peer closes or breaks the connection.
    pub async fn until_gone(&mut self) {
        while self.more().await.unwrap_or(false) {
            self.ahead.clear();
        }
    }

    /// Reads a body of this length.
    ///
    /// # Errors
    /// An error if the connection ended before the end of the body. In this case, `into` contains the bytes
    /// that arrived.
    pub async fn counted(&mut self, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
        let mut left = usize::try_from(length).map_err(io::Error::other)?;
        loop {
            let now = left.min(self.ahead.len());
            into.extend_from_slice(&self.ahead[..now]);
            self.ahead.drain(..now);
            left -= now;
            if left == 0 {
                return Ok(());
            }
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads a body in chunks.
    ///
    /// # Errors
    /// An error if the chunked coding is invalid or truncated. In this case, `into` contains the bytes that
    /// arrived.
    pub async fn chunked(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut decoder = Dechunk::default();
        loop {
            while !self.ahead.is_empty() {
                match decoder.next(&self.ahead).map_err(io::Error::other)? {
                    Piece::Framing(bytes) => drop(self.ahead.drain(..bytes)),
                    Piece::Data(bytes) => {
                        into.extend_from_slice(&self.ahead[..bytes]);
                        self.ahead.drain(..bytes);
                    }
                    Piece::End(bytes) => {
                        self.ahead.drain(..bytes);
                        return Ok(());
                    }
                }
            }
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads a body that ends with the connection.
    ///
    /// # Errors
    /// An error if the connection broke.
    pub async fn until_close(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        loop {
            into.append(&mut self.ahead);
            if !self.more().await? {
                return Ok(());
            }
        }
    }

    /// Reads the body that `head` announces by length or in chunks, and passes it to `take` piece by piece.
    ///
    /// # Errors
    /// An error if the connection ended before the end of the body, or if the chunked coding is invalid.
    pub async fn pieces(&mut self, head: &Head, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut decoder = head.is_chunked().then(Dechunk::default);
        let mut left = head.length().unwrap_or(0);
        loop {
            let mut used = 0;
            while let Some(decoder) = &mut decoder
                && used < self.ahead.len()
            {
                let piece = decoder.next(&self.ahead[used..]);
                match piece.map_err(io::Error::other)? {
                    Piece::Framing(bytes) => used += bytes,
                    Piece::Data(bytes) => {
                        take(&self.ahead[used..used + bytes]);
                        used += bytes;
                    }
                    Piece::End(bytes) => {
                        self.ahead.drain(..used + bytes);
                        return Ok(());
                    }
                }
            }
            if decoder.is_none() {
                used = usize::try_from(left).map_or(self.ahead.len(), |l| l.min(self.ahead.len()));
                take(&self.ahead[..used]);
                left -= used as u64;
            }
            self.ahead.drain(..used);
            if decoder.is_none() && left == 0 {
                return Ok(());
            }
            if !self.read(LONG).await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads once. Returns false at the end of the stream.
    async fn more(&mut self) -> io::Result<bool> {
        self.read(ROOM).await
    }

    async fn read(&mut self, room: usize) -> io::Result<bool> {
        self.ahead.reserve(room);
        Ok(self.stream.read_buf(&mut self.ahead).await? > 0)
    }
}
