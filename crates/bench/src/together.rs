//! Many clients request one object at the same moment. The result shows when each client gets its first
//! byte, and whether all clients get the complete object.
//!
//! All clients connect before the first request. The leader sends its request first, and the other clients
//! send theirs after the lead time. Every byte is compared with the byte that the origin generates. All
//! clients share one thread. The first read of each client is small. So a client waits only a little for the
//! reads of other clients before it gets its first byte.

mod client;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Clock;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::origin::OriginCounters;
use crate::{Identity, Knobs};
use client::{Client, Kind, Seen};

/// Options of one burst: many clients that request one object at the same moment.
#[derive(Clone, Debug)]
pub struct Burst {
    /// Address of the proxy.
    pub target: SocketAddr,
    /// Address of the object's origin.
    pub origin: SocketAddr,
    /// Path and properties of the object.
    pub knobs: Knobs,
    /// Number of clients that request the complete object, including the leader.
    pub clients: usize,
    /// Time between the leader's request and the requests of the other clients.
    pub lead: Duration,
    /// After this many bytes, the leader resets its connection. `None`: the leader reads the complete
    /// object.
    pub leave_after: Option<u64>,
    /// Number of further clients that read slowly. They disconnect when the other clients have everything.
    pub slow: usize,
    /// Bytes per second of each slow client.
    pub slow_rate: u64,
    /// True if each client sends its own cookie.
    pub cookies: bool,
    /// Time limit for the complete run.
    pub timeout: Duration,
}

/// Result of a run. Times are in milliseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BurstReport {
    /// Number of clients that got all bytes correctly.
    pub right: usize,
    /// Number of clients that should get all bytes.
    pub wanted: usize,
    /// The first few problems.
    pub problems: Vec<String>,
    /// Median time from the leader's first byte to a follower's first byte.
    pub first_byte_median_ms: f64,
    /// 99th percentile of the times from the leader's first byte to a follower's first byte.
    pub first_byte_p99_ms: f64,
    /// Longest time from the leader's first byte to a follower's first byte.
    pub first_byte_most_ms: f64,
    /// Time from the leader's request to the last byte of the last client. Slow clients are not counted.
    pub total_ms: f64,
    /// Number of body bytes that arrived, including the bytes of slow clients.
    pub bytes: u64,
    /// Number of answers from the cache's store.
    pub hits: usize,
    /// Number of answers that shared another client's fetch.
    pub collapsed: usize,
    /// Number of bytes that the slow clients had received at the end.
    pub slow_bytes: u64,
    /// The origin's counts during the run.
    pub origin: OriginCounters,
}

/// Greatest number of problems that are described.
const NAMED: usize = 5;

impl Burst {
    /// Runs the burst to its end.
    ///
    /// # Errors
    /// Returned if target or origin cannot be reached.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<BurstReport> {
        let before = crate::load::read_counters(self.origin)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let local = LocalSet::new();
        let mut report = runtime.block_on(local.run_until(self.send_all(clock)))?;
        report.origin = crate::load::read_counters(self.origin)?.minus(&before);
        Ok(report)
    }

    async fn send_all(&self, clock: &Arc<dyn Clock>) -> io::Result<BurstReport> {
        let (stop, stopped) = watch::channel(false);
        let buffer = Rc::new(RefCell::new(vec![0; 64 << 10]));
        let mut clients = Vec::new();
        for number in 0..self.clients + self.slow {
            let stream = self.connect(number).await?;
            let shared = (Rc::clone(&buffer), Arc::clone(clock), stopped.clone());
            clients.push(Client::new(
                stream,
                self.kind(number),
                self.expected(number),
                shared,
            ));
        }
        let start = clock.mono();
        let (mut wanted, mut slow) = (Vec::new(), Vec::new());
        for (number, mut client) in clients.into_iter().enumerate() {
            client.ask(&self.request(number)).await?;
            let running = tokio::task::spawn_local(client.read());
            if number < self.clients {
                wanted.push(running);
            } else {
                slow.push(running);
            }
            if number == 0 {
                tokio::time::sleep(self.lead).await;
            }
        }
        let all = async {
            let mut seen = Vec::new();
            for task in &mut wanted {
                seen.push(
                    task.await
                        .unwrap_or_else(|_| Seen::lost("a client ended early")),
                );
            }
            seen
        };
        let Ok(seen) = tokio::time::timeout(self.timeout, all).await else {
            return Err(io::Error::other(format!(
                "not all had the object after {:?}",
                self.timeout
            )));
        };
        let total = clock.mono().since(start);
        // An error would mean that no client is left, so there would be nothing to stop.
        let _ = stop.send(true);
        let mut report = self.judge(&seen);
        for task in slow {
            let seen = task
                .await
                .unwrap_or_else(|_| Seen::lost("a slow client ended early"));
            report.slow_bytes += seen.bytes;
            report.note(&seen);
        }
        report.bytes += report.slow_bytes;
        report.total_ms = ms(total);
        Ok(report)
    }

    async fn connect(&self, number: usize) -> io::Result<TcpStream> {
        let socket = tokio::net::TcpSocket::new_v4()?;
        if number >= self.clients {
            // The receive buffer is small. Otherwise the kernel would read ahead for the slow client.
            socket.set_recv_buffer_size(16 << 10)?;
        }
        let stream = socket.connect(self.target).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn kind(&self, number: usize) -> Kind {
        match (number, self.leave_after) {
            (0, Some(bytes)) => Kind::Leaves(bytes),
            _ if number >= self.clients => Kind::Slow(self.slow_rate.max(1)),
            _ => Kind::Wants,
        }
    }

    fn cookie(&self, number: usize) -> String {
        format!("user={number}")
    }

    fn expected(&self, number: usize) -> (crate::BodyKey, u64) {
        let mut knobs = self.knobs;
        knobs.cookie = self.cookies;
        if self.cookies {
            let cookie = self.cookie(number);
            knobs.version = crate::origin::variant_version(knobs.version, cookie.as_bytes());
        }
        let host = self.origin.ip().to_string();
        let identity = Identity {
            host: host.as_bytes(),
            id: knobs.id,
            version: knobs.version,
            size: knobs.size,
        };
        (identity.key(), knobs.size)
    }

    fn request(&self, number: usize) -> Vec<u8> {
        let mut knobs = self.knobs;
        knobs.cookie = self.cookies;
        let mut out = format!("GET http://{}", self.origin).into_bytes();
        knobs.write(&mut out);
        out.extend_from_slice(format!(" HTTP/1.1\r\nHost: {}\r\n", self.origin).as_bytes());
        if self.cookies {
            out.extend_from_slice(format!("Cookie: {}\r\n", self.cookie(number)).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    fn judge(&self, seen: &[Seen]) -> BurstReport {
        let leaves = usize::from(self.leave_after.is_some());
        let mut report = BurstReport {
            wanted: self.clients.saturating_sub(leaves),
            ..BurstReport::default()
        };
        for one in seen {
            report.note(one);
            report.bytes += one.bytes;
            report.hits += usize::from(one.hit);
            report.collapsed += usize::from(one.collapsed);
            report.right += usize::from(one.whole && one.problem.is_none());
        }
        let leader = seen.first().and_then(|leader| leader.first);
        if let Some(leader) = leader {
            let after = seen[1..].iter().filter_map(|one| one.first);
            let mut after: Vec<_> = after.map(|first| ms(first.since(leader))).collect();
            after.sort_by(f64::total_cmp);
            let at = |part: f64| {
                let index = (after.len() as f64 * part) as usize;
                after
                    .get(index.min(after.len().saturating_sub(1)))
                    .copied()
                    .unwrap_or(0.0)
            };
            report.first_byte_median_ms = at(0.5);
            report.first_byte_p99_ms = at(0.99);
            report.first_byte_most_ms = at(1.0);
        }
        report
    }
}

impl BurstReport {
    fn note(&mut self, seen: &Seen) {
        if let Some(problem) = &seen.problem
            && self.problems.len() < NAMED
        {
            self.problems.push(problem.clone());
        }
    }

    /// True if every client got all bytes, and no client got a wrong byte.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.right == self.wanted && self.problems.is_empty()
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
