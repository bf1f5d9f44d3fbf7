//! A test client that returns raw answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer as it was received.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// True if the body ended as announced.
    pub whole: bool,
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (n, value) = line.split_once(':')?;
            n.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the value of Cache-Status, or an empty text.
    pub fn cache(&self) -> String {
        self.field("Cache-Status").unwrap_or_default().to_owned()
    }
}

/// A client connection.
pub struct Client {
    pub stream: TcpStream,
    buf: Vec<u8>,
}

impl Client {
    pub fn to(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buf: Vec::new(),
        }
    }

    /// Makes a client from a connection.
    pub fn of(stream: TcpStream) -> Self {
        Self {
            stream,
            buf: Vec::new(),
        }
    }

    pub fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).unwrap();
    }

    fn more(&mut self) -> bool {
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(n) if n > 0 => {
                self.buf.extend_from_slice(&piece[..n]);
                true
            }
            Ok(_) => false,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => panic!("no answer in time"),
            Err(_) => false,
        }
    }

    /// Returns the next head, which may be interim. The text is empty at the end of the connection.
    pub fn head(&mut self) -> String {
        loop {
            if let Some(end) = self.buf.windows(4).position(|w| w == b"\r\n\r\n") {
                let head: Vec<u8> = self.buf.drain(..end + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            if !self.more() {
                return String::new();
            }
        }
    }

    pub fn exactly(&mut self, n: usize) -> Vec<u8> {
        while self.buf.len() < n && self.more() {}
        let n = n.min(self.buf.len());
        self.buf.drain(..n).collect()
    }

    pub fn to_end(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.buf)
    }

    /// Returns the next final answer to a GET.
    pub fn answer(&mut self) -> Answer {
        self.answer_to("GET")
    }

    pub fn answer_to(&mut self, method: &str) -> Answer {
        let head = loop {
            let head = self.head();
            if head.is_empty() || !head.starts_with("HTTP/1.1 1") || head.contains(" 101 ") {
                break head;
            }
        };
        let mut answer = Answer {
            status: head.get(9..12).and_then(|s| s.parse().ok()).unwrap_or(0),
            head,
            body: Vec::new(),
            whole: true,
        };
        if method == "HEAD" || matches!(answer.status, 0 | 101 | 204 | 304) {
            return answer;
        }
        if answer.field("Transfer-Encoding").is_some() {
            self.chunks(&mut answer);
        } else if let Some(n) = answer.field("Content-Length").map(|n| n.parse().unwrap()) {
            answer.body = self.exactly(n);
            answer.whole = answer.body.len() == n;
        } else {
            answer.body = self.to_end();
        }
        answer
    }

    fn chunks(&mut self, answer: &mut Answer) {
        loop {
            let line = self.line();
            let Ok(n) = usize::from_str_radix(line.trim(), 16) else {
                answer.whole = false;
                return;
            };
            if n == 0 {
                while {
                    let trailer = self.line();
                    answer.head.push_str(&trailer);
                    trailer.trim() != ""
                } {}
                return;
            }
            let piece = self.exactly(n);
            answer.whole = piece.len() == n;
            answer.body.extend_from_slice(&piece);
            self.exactly(2);
        }
    }

    pub fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.buf.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buf.drain(..=end).collect();
                return String::from_utf8(line).unwrap();
            }
            if !self.more() {
                return String::new();
            }
        }
    }
}
