//! A client connection that checks bodies while it reads them and does not store them. So thousands of
//! connections need little memory and CPU.

use std::cell::RefCell;
use std::fmt::{self, Display};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::kit::{Body, Head};

/// Longest time without any progress. After this time the client gives up.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// The greatest length of an answer's head, in bytes.
const HEAD_MAX: usize = 64 << 10;
/// Greatest number of bytes that one read returns.
const READ: usize = 256 << 10;

thread_local! {
    /// The buffer that all connections of a thread share. It contains no bytes between two reads.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// Reason for which a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The connection could not be opened.
    Connect,
    /// The connection ended before the first byte of the answer.
    Gone,
    /// The connection ended in the middle of the answer.
    Cut,
    /// The status was not 200.
    Status(u16),
    /// The body had wrong bytes or a wrong length.
    Wrong,
    /// No connection was made within [`TIMEOUT`], usually because the listener's queue was full at each
    /// attempt.
    Unconnected,
    /// The client waited for [`TIMEOUT`] without success: no byte of the answer arrived, or the proxy did not
    /// accept all bytes of the request.
    Late,
    /// The load ended before the answer was complete.
    Unfinished,
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("no connection"),
            Self::Gone => f.write_str("closed without an answer"),
            Self::Cut => f.write_str("cut short"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Wrong => f.write_str("wrong bytes"),
            Self::Unconnected => f.write_str("no connection in 10 s"),
            Self::Late => f.write_str("no progress in 10 s"),
            Self::Unfinished => f.write_str("unfinished"),
        }
    }
}

/// State of a connection from which nothing was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    /// Nothing arrived.
    Silent,
    /// An answer with this status began.
    Status(u16),
    /// The proxy closed or reset the connection.
    Closed,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Conn {
    stream: TcpStream,
}

impl Conn {
    /// Opens a connection from a source address.
    pub(super) async fn open(from: Ipv4Addr, to: SocketAddr) -> Result<Self, Fault> {
        let connect = async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((from, 0).into())?;
            let stream = socket.connect(to).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(Self { stream })
        };
        match timeout(TIMEOUT, connect).await {
            Ok(connected) => connected.map_err(|_| Fault::Connect),
            Err(_) => Err(Fault::Unconnected),
        }
    }

    /// Writes bytes.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        match timeout(TIMEOUT, self.stream.write_all(bytes)).await {
            Ok(written) => written.map_err(|_| Fault::Gone),
            Err(_) => Err(Fault::Late),
        }
    }

    /// Writes a GET request for `path`.
    pub(super) async fn ask(&mut self, path: &str) -> Result<(), Fault> {
        let text = format!("GET {path} HTTP/1.1\r\nHost: bounds.test\r\n\r\n");
        self.write(text.as_bytes()).await
    }

    /// Requests `path` and checks status, length and every byte of the body. The connection can
    /// be used again after a success.
    pub(super) async fn get(&mut self, path: &str, size: usize) -> Result<(), Fault> {
        self.ask(path).await?;
        let (mut head, mut body) = (Vec::new(), Body::of(path));
        let (mut left, mut in_body, mut right) = (size, false, true);
        let mut begun = false;
        while !in_body || left > 0 {
            let read = self.read(|bytes| {
                let rest = match in_body {
                    true => bytes.len(),
                    false => {
                        head.extend_from_slice(bytes);
                        let Some(end) = end_of(&head) else {
                            return;
                        };
                        let rest = head.len() - end;
                        // The buffer `head` can also contain the first bytes of the body (up to 256 KiB).
                        // They are removed here, because parsing them as text would cost a third of the CPU
                        // of the machine.
                        head.truncate(end);
                        rest
                    }
                };
                in_body = true;
                let bytes = &bytes[bytes.len() - rest..];
                right &= rest <= left && body.continues(bytes);
                left = left.saturating_sub(rest);
            });
            match read.await {
                Ok(true) => begun = true,
                Err(Fault::Late) => return Err(Fault::Late),
                _ if begun => return Err(Fault::Cut),
                _ => return Err(Fault::Gone),
            }
            if in_body && !head.is_empty() {
                let parsed = Head::parse(&String::from_utf8_lossy(&head));
                if parsed.status() != 200 {
                    return Err(Fault::Status(parsed.status()));
                }
                right &= parsed.length() == u64::try_from(size).ok();
                head = Vec::new();
            }
            if !right || head.len() > HEAD_MAX {
                return Err(Fault::Wrong);
            }
        }
        Ok(())
    }

    /// Reads once, at most [`READ`] bytes; false at the end of the stream.
    async fn read(&self, take: impl FnOnce(&[u8])) -> Result<bool, Fault> {
        let mut take = Some(take);
        loop {
            match timeout(TIMEOUT, self.stream.readable()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Fault::Gone),
                Err(_) => return Err(Fault::Late),
            }
            let read = BUFFER.with_borrow_mut(|buffer| {
                let count = self.stream.try_read(buffer)?;
                if let Some(take) = take.take().filter(|_| count > 0) {
                    take(&buffer[..count]);
                }
                Ok::<_, io::Error>(count)
            });
            match read {
                Ok(count) => {
                    // Gives the other connections of this thread a chance to run.
                    if count == READ {
                        yield_now().await;
                    }
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Fault::Gone),
            }
        }
    }

    /// Reads at most `most` bytes without waiting and drops them. Returns false if the connection has
    /// ended.
    pub(super) fn sip(&self, most: usize) -> bool {
        BUFFER.with_borrow_mut(|buffer| {
            let most = most.min(buffer.len());
            match self.stream.try_read(&mut buffer[..most]) {
                Ok(count) => count > 0,
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            }
        })
    }

    /// Returns the state of this connection. The result is correct only if nothing was read from the
    /// connection before this call.
    pub(super) fn seen(&self) -> Seen {
        let mut start = [0; 64];
        match self.stream.try_read(&mut start) {
            Ok(0) => Seen::Closed,
            Ok(count) => {
                let text = String::from_utf8_lossy(&start[..count]);
                Seen::Status(Head::parse(&text).status())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Seen::Silent,
            Err(_) => Seen::Closed,
        }
    }
}

/// Returns the position at which the body begins; `None` if the head is not complete.
fn end_of(head: &[u8]) -> Option<usize> {
    let end = head.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}
