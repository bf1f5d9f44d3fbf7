//! The simplest possible server: for each request, one `recv` into a buffer and one `send` of bytes that
//! never change.
//!
//! The server parses no request and looks nothing up. So its CPU time per answer is the time that the kernel,
//! the loopback device and the readiness call (epoll on Linux) need on this machine. No HTTP server with the
//! same system calls can need less CPU time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Clock;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::body::Identity;

const LISTENER: Token = Token(usize::MAX);

/// A baseline server that is bound to its address; [`run`](Self::run) answers requests.
#[derive(Debug)]
pub struct BaselineServer {
    poll: Poll,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    answer: Vec<u8>,
    work: Duration,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// Bytes of the answer that are still to be sent.
    left: usize,
}

impl BaselineServer {
    /// Binds to `listen`. Before each answer, the server keeps its core busy for the time `work`. This time
    /// represents the work of a real server. Every answer is object 0 of `host` with a body of `size` bytes.
    /// So a load with one object on one server can check the complete answer.
    ///
    /// # Errors
    /// Returned if the address cannot be bound.
    pub fn bind(
        listen: SocketAddr,
        host: &str,
        size: u64,
        work: Duration,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(listen)?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            poll,
            listener,
            connections: Vec::new(),
            answer: answer(host, size, &**clock),
            work,
            clock: clock.clone(),
        })
    }

    /// Address of the listener.
    ///
    /// # Errors
    /// Returned if the system does not report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until the process ends.
    ///
    /// # Errors
    /// Returned if the readiness call fails.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = [0; 4096];
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    Token(at) => self.serve(at, event.is_readable(), &mut buffer),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let free = self.connections.iter().position(Option::is_none);
            let at = free.unwrap_or(self.connections.len());
            let interest = Interest::READABLE | Interest::WRITABLE;
            // A connection that cannot be registered is closed when it is dropped.
            let ready = stream.set_nodelay(true).is_ok()
                && self
                    .poll
                    .registry()
                    .register(&mut stream, Token(at), interest)
                    .is_ok();
            if ready {
                self.connections
                    .resize_with(self.connections.len().max(at + 1), || None);
                self.connections[at] = Some(Connection { stream, left: 0 });
            }
        }
    }

    /// If bytes have arrived, sends one answer: all bytes that one read returns count as one request.
    /// Otherwise sends the rest of an answer that did not fit into the socket's buffer.
    fn serve(&mut self, at: usize, readable: bool, buffer: &mut [u8]) {
        let Some(Some(connection)) = self.connections.get_mut(at) else {
            return;
        };
        if readable {
            match connection.stream.read(buffer) {
                Ok(0) => {
                    self.connections[at] = None;
                    return;
                }
                Ok(_) => {
                    connection.left = self.answer.len();
                    compute(&*self.clock, self.work);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => {
                    self.connections[at] = None;
                    return;
                }
            }
        }
        while connection.left > 0 {
            let from = self.answer.len() - connection.left;
            match connection.stream.write(&self.answer[from..]) {
                Ok(n) => connection.left -= n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.connections[at] = None;
                    return;
                }
            }
        }
    }
}

/// Keeps the core busy for this time.
fn compute(clock: &dyn Clock, time: Duration) {
    let begun = clock.mono();
    while !time.is_zero() && clock.mono().since(begun) < time {
        std::hint::spin_loop();
    }
}

/// The answer to every request. Its head is as long as the head that a cache sends.
fn answer(host: &str, size: u64, clock: &dyn Clock) -> Vec<u8> {
    let seconds = u64::try_from(clock.wall().secs()).unwrap_or(0);
    let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(seconds));
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {size}\r\nAccept-Ranges: bytes\r\nCache-Control: max-age=86400\r\n\
         ETag: \"0-0\"\r\nBench-Object: {host} 0 0 {size}\r\nAge: 1\r\n\
         Cache-Status: floor; hit\r\n\r\n"
    )
    .into_bytes();
    let head = bytes.len();
    bytes.resize(head + size as usize, 0);
    let identity = Identity {
        host: host.as_bytes(),
        id: 0,
        version: 0,
        size,
    };
    identity.key().fill(0, &mut bytes[head..]);
    bytes
}

#[cfg(test)]
mod tests {
    use foxy_base::SystemClock;
    use std::net::Ipv4Addr;

    use super::*;
    use crate::load::{LoadConfig, Mode, RequestSpec, Style, run};

    #[test]
    fn its_answer_is_right_and_a_hit_for_a_load_that_never_sleeps() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut server =
            BaselineServer::bind(any, "h1", 300_000, Duration::from_nanos(300), &clock).unwrap();
        let style = Style {
            mode: Mode::Reverse {
                host: "floor".into(),
            },
            same_url: false,
            extra: String::new(),
            knobs: String::new(),
        };
        let mut config = LoadConfig::new(server.address().unwrap(), style);
        std::thread::spawn(move || server.run());
        config.poll = true;
        let spec = RequestSpec {
            server: 1,
            id: 0,
            size: 300_000,
            ..RequestSpec::default()
        };
        let report = run(&config, Box::new(std::iter::repeat_n(spec, 500)), &clock).unwrap();
        assert_eq!((report.answers, report.errors), (500, 0), "{report}");
        assert_eq!((report.checked, report.hits.count), (500, 500));
    }
}
