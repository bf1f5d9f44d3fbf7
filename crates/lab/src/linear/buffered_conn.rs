//! HTTP/1.1 over a blocking socket, for clients and for the origin. A client sends one request on each
//! connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait of a client.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection, and the bytes that were read from it but not used yet.
#[derive(Debug)]
pub(super) struct BufferedConn {
    stream: TcpStream,
    ahead: Vec<u8>,
}

/// An answer as received.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
    /// True if the body had the announced end.
    pub(super) whole: bool,
}

/// The first field of that name in the text of a head.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// Value of a field as a whole number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }
}

impl BufferedConn {
    pub(super) fn of(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let ahead = Vec::new();
        Ok(Self { stream, ahead })
    }

    pub(super) fn to(port: u16) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self::of(TcpStream::connect_timeout(&address, TIMEOUT)?)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn more(&mut self) -> io::Result<bool> {
        let mut piece = [0; 32 << 10];
        let n = self.stream.read(&mut piece)?;
        self.ahead.extend_from_slice(&piece[..n]);
        Ok(n > 0)
    }

    /// Reads the next head; `None` at the end of the connection.
    pub(super) fn head(&mut self) -> io::Result<Option<String>> {
        loop {
            let end = self.ahead.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head: Vec<u8> = self.ahead.drain(..end + 4).collect();
                return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// Reads this many bytes, or fewer if the connection ends.
    pub(super) fn exactly(&mut self, wanted: usize) -> io::Result<Vec<u8>> {
        while self.ahead.len() < wanted && self.more()? {}
        let there = wanted.min(self.ahead.len());
        Ok(self.ahead.drain(..there).collect())
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.ahead.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.ahead.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads a chunked body. The second value is true if the body is complete.
    pub(super) fn chunks(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let mut body = Vec::new();
        loop {
            let Ok(line) = self.line() else {
                return Ok((body, false));
            };
            let Ok(size) = usize::from_str_radix(&line, 16) else {
                return Ok((body, false));
            };
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok((body, true));
            }
            let piece = self.exactly(size)?;
            let all = piece.len() == size;
            body.extend(piece);
            if !all {
                return Ok((body, false));
            }
            self.exactly(2)?;
        }
    }

    /// Reads the body that a request's head announces. Returns true if the body is complete.
    pub(super) fn request_body(&mut self, head: &str) -> io::Result<bool> {
        if field(head, "Transfer-Encoding").is_some() {
            return Ok(self.chunks()?.1);
        }
        let length = field(head, "Content-Length").and_then(|text| text.parse().ok());
        let length = length.unwrap_or(0);
        Ok(self.exactly(length)?.len() == length)
    }
}

/// Makes one exchange on a new connection.
///
/// # Errors
/// An error if there is no answer, because the server has ended.
pub(super) fn exchange(port: u16, method: &str, request: &[u8]) -> io::Result<Answer> {
    let mut conn = BufferedConn::to(port)?;
    conn.send(request)?;
    let head = loop {
        let head = conn.head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !head.starts_with("HTTP/1.1 1") {
            break head;
        }
    };
    let status = head.get(9..12).and_then(|text| text.parse().ok());
    let mut answer = Answer {
        status: status.unwrap_or(0),
        head,
        body: Vec::new(),
        whole: true,
    };
    if method == "HEAD" || matches!(answer.status, 204 | 304) {
        return Ok(answer);
    }
    let read = if answer.field("Transfer-Encoding").is_some() {
        conn.chunks()
    } else if let Some(length) = answer.number("Content-Length") {
        let length = length as usize;
        conn.exactly(length)
            .map(|body| (body.len() == length, body))
            .map(|(whole, body)| (body, whole))
    } else {
        // The end of the connection ends this body, so it is unknown whether the body is complete.
        Ok((Vec::new(), false))
    };
    (answer.body, answer.whole) = read.unwrap_or_default();
    Ok(answer)
}
