//! A connection that sends bytes and reads HTTP messages. Clients of a scenario use it, and also the origin.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::answer::{Answer, field};

/// A connection.
#[derive(Debug)]
pub struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects to this address.
    #[must_use]
    pub fn to(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("a listener"))
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        // If no bytes arrive for this time, the test has failed. It must report the failure and must not
        // hang.
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a time limit");
        stream.set_nodelay(true).expect("no delay");
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Sends bytes. If the other side has disconnected, this is ignored, because reading the answer will
    /// show it.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Closes the sending direction of the connection.
    pub fn end(&mut self) -> &mut Self {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        self
    }

    /// Reads the answer to a request other than HEAD.
    pub fn answer(&mut self) -> Answer {
        self.answer_to("GET")
    }

    /// Reads the answer to a request with this method, including interim answers.
    pub fn answer_to(&mut self, method: &str) -> Answer {
        let mut interim = Vec::new();
        let head = loop {
            let head = self.head();
            if !head.starts_with("HTTP/1.1 1") || head.starts_with("HTTP/1.1 101") {
                break head;
            }
            interim.push(head);
        };
        let status = head
            .get(9..12)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let mut answer = Answer {
            interim,
            status,
            head,
            body: Vec::new(),
            whole: true,
        };
        let tunnel = method == "CONNECT" && status == 200;
        if method != "HEAD" && !tunnel && !matches!(status, 0 | 101 | 204 | 304) {
            let (body, trailers, whole) = self.body(&answer.head, true);
            answer.head += &trailers;
            (answer.body, answer.whole) = (body, whole);
        }
        answer
    }

    /// Reads a request: its head (with trailers) and its body. Returns `None` at the end of the connection.
    pub(crate) fn request(&mut self) -> Option<(String, Vec<u8>)> {
        let head = self.head();
        if head.is_empty() {
            return None;
        }
        if field(&head, "Expect").is_some() {
            self.send("HTTP/1.1 100 Continue\r\n\r\n");
        }
        let (body, trailers, _) = self.body(&head, false);
        Some((head + &trailers, body))
    }

    /// Reads a body and trailers. The last value is true if the body ended as announced.
    fn body(&mut self, head: &str, to_end: bool) -> (Vec<u8>, String, bool) {
        if field(head, "Transfer-Encoding").is_some() {
            return self.chunks();
        }
        match field(head, "Content-Length").and_then(|length| length.parse().ok()) {
            Some(length) => {
                let body = self.exactly(length);
                let whole = body.len() == length;
                (body, String::new(), whole)
            }
            None if to_end => (self.rest(), String::new(), true),
            None => (Vec::new(), String::new(), true),
        }
    }

    fn chunks(&mut self) -> (Vec<u8>, String, bool) {
        let (mut body, mut trailers) = (Vec::new(), String::new());
        loop {
            let line = self.line();
            let size = line.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                return (body, trailers, false);
            };
            if size == 0 {
                break;
            }
            let piece = self.exactly(size);
            let short = piece.len() < size;
            body.extend_from_slice(&piece);
            if short || self.exactly(2) != b"\r\n" {
                return (body, trailers, false);
            }
        }
        loop {
            let line = self.line();
            if line.trim().is_empty() {
                return (body, trailers, line.ends_with('\n'));
            }
            trailers += &line;
        }
    }

    fn more(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(n) => {
                self.buffer.extend_from_slice(&piece[..n]);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer in 30 s"),
            Err(_) => false,
        }
    }

    /// Reads the next head. It is empty at the end of the connection.
    pub fn head(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                return String::from_utf8_lossy(&head).into_owned();
            }
            if !self.more() {
                return String::new();
            }
        }
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return String::from_utf8_lossy(&line).into_owned();
            }
            if !self.more() {
                return String::new();
            }
        }
    }

    /// Reads this number of bytes, or fewer at the end of the connection.
    pub fn exactly(&mut self, bytes: usize) -> Vec<u8> {
        while self.buffer.len() < bytes && self.more() {}
        let bytes = bytes.min(self.buffer.len());
        self.buffer.drain(..bytes).collect()
    }

    /// Reads all bytes until the connection ends.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.buffer)
    }
}
