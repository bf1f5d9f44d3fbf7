//! One client of a burst.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, MonoTime};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::BodyKey;

/// Behaviour of a client.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The client reads everything as fast as it arrives.
    Wants,
    /// The client disconnects after this many body bytes.
    Leaves(u64),
    /// The client reads this many bytes per second, until the stop signal.
    Slow(u64),
}

/// The results of one client.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) first: Option<MonoTime>,
    pub(super) bytes: u64,
    pub(super) whole: bool,
    pub(super) hit: bool,
    pub(super) collapsed: bool,
    pub(super) problem: Option<String>,
}

impl Seen {
    pub(super) fn lost(problem: &str) -> Self {
        Self {
            problem: Some(problem.to_owned()),
            ..Self::default()
        }
    }
}

/// The buffer that all clients share, the clock, and the signal that stops the slow clients.
type Shared = (Rc<RefCell<Vec<u8>>>, Arc<dyn Clock>, watch::Receiver<bool>);

pub(super) struct Client {
    stream: TcpStream,
    kind: Kind,
    key: BodyKey,
    size: u64,
    buffer: Rc<RefCell<Vec<u8>>>,
    clock: Arc<dyn Clock>,
    stopped: watch::Receiver<bool>,
    head: Vec<u8>,
    in_body: bool,
    seen: Seen,
}

/// Bytes of the first read.
const FIRST: usize = 1024;
/// Greatest length of a head in bytes.
const HEAD_MAX: usize = 16 << 10;
/// Number of reads per second of a slow client.
const READS_PER_SECOND: u64 = 10;

impl Client {
    pub(super) fn new(
        stream: TcpStream,
        kind: Kind,
        object: (BodyKey, u64),
        shared: Shared,
    ) -> Self {
        let (buffer, clock, stopped) = shared;
        Self {
            stream,
            kind,
            key: object.0,
            size: object.1,
            buffer,
            clock,
            stopped,
            head: Vec::new(),
            in_body: false,
            seen: Seen::default(),
        }
    }

    /// Sends the request.
    pub(super) async fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await
    }

    /// Reads until the answer is complete, the connection fails, or the client must stop.
    pub(super) async fn read(mut self) -> Seen {
        if let Err(problem) = self.read_all().await {
            self.seen.problem = Some(problem);
        }
        self.seen
    }

    async fn read_all(&mut self) -> Result<(), String> {
        let mut stopped = self.stopped.clone();
        while !self.seen.whole {
            let most = self.next_length();
            tokio::select! {
                ready = self.stream.readable() => ready.map_err(|e| self.lost(&e))?,
                _ = stopped.changed(), if matches!(self.kind, Kind::Slow(_)) => return Ok(()),
            }
            let first = self.seen.first.is_none();
            if !self.read_some(most)? {
                continue;
            }
            match self.kind {
                Kind::Leaves(bytes) if self.seen.bytes >= bytes => {
                    // If bytes have arrived that the client did not read, the close becomes a reset.
                    return Ok(());
                }
                Kind::Slow(_) => {
                    let pause = Duration::from_millis(1000 / READS_PER_SECOND);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        _ = stopped.changed() => return Ok(()),
                    }
                }
                // Lets the other clients run, because one of them may have got its first byte.
                _ if first => tokio::task::yield_now().await,
                _ => {}
            }
        }
        Ok(())
    }

    /// Greatest number of bytes of the next read.
    fn next_length(&self) -> usize {
        let most = match self.kind {
            Kind::Slow(rate) => usize::try_from(rate / READS_PER_SECOND)
                .unwrap_or(usize::MAX)
                .max(1),
            Kind::Wants | Kind::Leaves(_) => usize::MAX,
        };
        if self.seen.first.is_none() {
            most.min(FIRST)
        } else {
            most
        }
    }

    /// Reads the bytes that have arrived. Returns false if there were none.
    fn read_some(&mut self, most: usize) -> Result<bool, String> {
        let buffer = Rc::clone(&self.buffer);
        let mut buffer = buffer.borrow_mut();
        let most = most.min(buffer.len());
        let n = match self.stream.try_read(&mut buffer[..most]) {
            Ok(0) => return Err(self.lost(&ErrorKind::UnexpectedEof.into())),
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(self.lost(&error)),
        };
        if self.seen.first.is_none() {
            self.seen.first = Some(self.clock.mono());
        }
        if self.in_body {
            self.body(&buffer[..n])?;
        } else {
            self.head.extend_from_slice(&buffer[..n]);
            self.try_head()?;
        }
        Ok(true)
    }

    fn lost(&self, error: &io::Error) -> String {
        format!("{error} after {} of {} bytes", self.seen.bytes, self.size)
    }

    fn try_head(&mut self) -> Result<(), String> {
        let end = self.head.windows(4).position(|w| w == b"\r\n\r\n");
        let Some(end) = end else {
            return match self.head.len() > HEAD_MAX {
                true => Err("an endless head".to_owned()),
                false => Ok(()),
            };
        };
        let rest = self.head.split_off(end + 4);
        let head = std::mem::take(&mut self.head);
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = format!("content-length: {}\r\n", self.size);
        if !text.starts_with("http/1.1 200 ") || !text.contains(&length) {
            return Err(format!("not the object: {text}"));
        }
        let status = text.lines().find(|line| line.starts_with("cache-status:"));
        let status = status.unwrap_or_default();
        self.seen.hit = status.contains("; hit");
        self.seen.collapsed = status.contains("; collapsed");
        self.in_body = true;
        self.body(&rest)
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.seen.bytes + bytes.len() as u64 > self.size {
            return Err("more bytes than announced".to_owned());
        }
        let checked = self.key.check(self.seen.bytes, bytes);
        checked.map_err(|at| format!("a wrong byte at {at}"))?;
        self.seen.bytes += bytes.len() as u64;
        self.seen.whole = self.seen.bytes == self.size;
        Ok(())
    }
}
