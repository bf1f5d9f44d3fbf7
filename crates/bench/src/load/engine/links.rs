//! Opens the connections of an engine, and opens them again after they were refused or closed.

use std::io::{self, ErrorKind, Read};

use mio::net::TcpStream;
use mio::{Interest, Token};

use super::super::stats::Fault;
use super::{Engine, Phase, RETRY_NS};

impl Engine<'_> {
    /// Returns true if the connection is established. If the connection was refused, the request that waits
    /// for it (if there is one) fails.
    pub(super) fn connected(&mut self, at: usize) -> bool {
        let connection = &mut self.connections[at];
        let Some(stream) = &connection.stream else {
            return false;
        };
        let error = match stream.take_error() {
            Ok(None) => match stream.peer_addr() {
                Ok(_) => None,
                Err(e) if e.kind() == ErrorKind::NotConnected => return false,
                Err(e) => Some(e),
            },
            Ok(Some(e)) | Err(e) => Some(e),
        };
        if let Some(error) = error {
            self.refused(at, &error);
            return false;
        }
        connection.phase = Phase::Ready;
        self.out.stats.connections += 1;
        if connection.job.is_some() {
            self.send(at);
        } else {
            self.idle.push(at);
        }
        true
    }

    pub(super) fn refused(&mut self, at: usize, error: &io::Error) {
        let now = self.now();
        let connection = &mut self.connections[at];
        connection.stream = None;
        connection.phase = Phase::RetryAt(now + RETRY_NS);
        if let Some(job) = connection.job.take() {
            self.busy -= 1;
            self.fail(&job, Fault::Connect, &error.to_string());
        } else if !self.config.patient {
            self.out.stats.wrong(Fault::Connect, || error.to_string());
        }
    }

    pub(super) fn connect(&mut self, at: usize) {
        let stream = TcpStream::connect(self.config.target).and_then(|mut stream| {
            // Without this option, small requests would wait for acknowledgements of earlier data.
            stream.set_nodelay(true)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(&mut stream, Token(at), interest)?;
            Ok(stream)
        });
        let connection = &mut self.connections[at];
        connection.kept.clear();
        connection.answers = 0;
        connection.sent = 0;
        match stream {
            Ok(stream) => {
                connection.stream = Some(stream);
                connection.phase = Phase::Connecting;
            }
            Err(error) => self.refused(at, &error),
        }
    }

    /// Handles an idle connection that is readable: the server has closed it, or has sent bytes without a
    /// request.
    pub(super) fn idle_readable(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let Some(stream) = &mut connection.stream else {
            return;
        };
        match stream.read(&mut self.scratch[..1]) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Ok(n) if n > 0 => {
                let measured = self.shared.measuring();
                self.idle.retain(|other| *other != at);
                if measured {
                    self.out
                        .stats
                        .wrong(Fault::Framing, || "bytes without a request".to_owned());
                }
                self.connect(at);
            }
            _ => {
                self.idle.retain(|other| *other != at);
                self.connect(at);
            }
        }
    }

    /// Longest permitted time for an answer.
    fn limit(&self) -> u64 {
        u64::try_from(self.config.timeout.as_nanos()).unwrap_or(u64::MAX)
    }

    /// True if no connection of this thread was established for as long as an answer may take. Always false
    /// if the load waits for its target (`patient`).
    pub(super) fn deserted(&self) -> bool {
        !self.config.patient && self.last_sweep - self.last_stood > self.limit()
    }

    /// Passes over all connections: opens each refused connection again when the time for the next attempt
    /// has come, and fails requests that take too long. Does nothing if the last pass was less than 5 ms ago.
    pub(super) fn sweep(&mut self) {
        let now = self.now();
        if now - self.last_sweep < RETRY_NS {
            return;
        }
        self.last_sweep = now;
        let limit = self.limit();
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            let late = connection
                .job
                .as_ref()
                .is_some_and(|job| now > job.intended.saturating_add(limit));
            if late && connection.phase == Phase::Ready {
                self.broken(
                    at,
                    Fault::Timeout,
                    &format!("no answer in {:?}", self.config.timeout),
                );
            } else if matches!(connection.phase, Phase::RetryAt(time) if time <= now) {
                self.connect(at);
            }
        }
        if self.connections.iter().any(|c| c.phase == Phase::Ready) {
            self.last_stood = now;
        }
    }
}
