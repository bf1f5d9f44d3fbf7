//! One connection of the origin. It reads requests and sends answers. Answers to pipelined requests are
//! sent in one write.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, UNIX_EPOCH};

use foxy_base::{Clock, Rng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::LocalSet;

use super::OriginConfig;
use super::counters::{PerThread, Shared};
use super::request::{self, Body, Request, Target};
use super::response::{self, Answer};
use super::server::Server;
use crate::chunked::{Dechunk, Piece};
use crate::knobs::Knobs;
use crate::load::cpu;
use crate::spin::Spin;

/// State shared by all connections of a thread.
pub(super) struct Site {
    pub(super) config: OriginConfig,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) counters: Arc<Shared>,
    pub(super) thread: usize,
    pub(super) seed: Rng,
    pub(super) stopped: watch::Receiver<bool>,
    pub(super) spin: RefCell<Spin>,
}

/// Greatest number of body bytes that are generated in one piece.
const PIECE: usize = 64 << 10;

/// Accepts connections and serves them until the origin is stopped.
pub(super) async fn accept_all(listener: std::net::TcpListener, mut site: Site) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut stopped = site.stopped.clone();
    let mut rng = site.seed.clone();
    site.seed = rng.fork("connections");
    let site = Rc::new(site);
    let local = LocalSet::new();
    if site.config.poll {
        local.spawn_local(stay_awake(site.clone()));
    }
    let serving = local.run_until(async {
        loop {
            // No descriptor is free, or the client has already disconnected. The next accept may succeed.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            site.counters
                .of(site.thread)
                .connections
                .fetch_add(1, Relaxed);
            let connection = Connection::new(stream, site.clone(), Rng::new(rng.next_u64()));
            // An error means that the client disconnected.
            tokio::task::spawn_local(async move { connection.serve().await.ok() });
        }
    });
    tokio::select! {
        () = serving => {}
        _ = stopped.changed() => {}
    }
    Ok(())
}

/// If no request was answered for this time, the runtime may sleep, because it is likely that no client
/// waits.
const QUIET: Duration = Duration::from_millis(20);

/// Keeps the runtime from sleeping. The runtime polls its sockets between two polls of this task. After an
/// unsuccessful poll, the thread yields the core to other threads.
async fn stay_awake(site: Rc<Site>) {
    let counters = site.counters.of(site.thread);
    let (mut answered, mut last) = (0, site.clock.mono());
    loop {
        let (seen, now) = (counters.requests.load(Relaxed), site.clock.mono());
        if seen != answered {
            (answered, last) = (seen, now);
            site.spin.borrow_mut().polled(false);
        } else if now.since(last) < QUIET {
            site.spin.borrow_mut().polled(true);
        } else {
            tokio::time::sleep(QUIET).await;
            continue;
        }
        tokio::task::yield_now().await;
    }
}

impl Site {
    /// Updates the counter of this thread's CPU time.
    fn count_cpu(&self) {
        let worked = cpu::of_this_thread().saturating_sub(self.spin.borrow().empty_polls());
        let nanos = u64::try_from(worked.as_nanos()).unwrap_or(u64::MAX);
        self.counters.of(self.thread).busy_ns.store(nanos, Relaxed);
    }
}

struct Connection {
    stream: TcpStream,
    site: Rc<Site>,
    rng: Rng,
    input: Vec<u8>,
    /// Number of bytes at the beginning of `input` that were used.
    used: usize,
    out: Vec<u8>,
    date: String,
    date_secs: i64,
}

impl Connection {
    fn new(stream: TcpStream, site: Rc<Site>, rng: Rng) -> Self {
        Self {
            stream,
            site,
            rng,
            input: Vec::with_capacity(4096),
            used: 0,
            out: Vec::with_capacity(8192),
            date: String::new(),
            date_secs: i64::MIN,
        }
    }

    fn counters(&self) -> &PerThread {
        self.site.counters.of(self.site.thread)
    }

    async fn serve(mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        loop {
            match request::parse(&self.input[self.used..]) {
                Ok(Some((request, length))) => {
                    self.used += length;
                    if !self.answer(request).await? {
                        return self.finish().await;
                    }
                }
                Ok(None) => {
                    self.flush().await?;
                    if !self.read_more().await? {
                        return Ok(());
                    }
                }
                Err(problem) => {
                    self.counters().bad.fetch_add(1, Relaxed);
                    response::write_plain(400, "text/plain", problem.as_bytes(), &mut self.out);
                    return self.finish().await;
                }
            }
        }
    }

    /// Reads some bytes. Returns false at the end of the stream.
    async fn read_more(&mut self) -> io::Result<bool> {
        self.input.drain(..self.used);
        self.used = 0;
        self.input.reserve(2048);
        Ok(self.stream.read_buf(&mut self.input).await? > 0)
    }

    async fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.stream.write_all(&self.out).await?;
            self.out.clear();
        }
        Ok(())
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.stream.shutdown().await
    }

    /// Answers one request. Returns false if the connection must be closed.
    async fn answer(&mut self, request: Request) -> io::Result<bool> {
        if !self.discard_body(request.body).await? {
            return Ok(false);
        }
        match request.target {
            Target::Object(knobs) => {
                self.counters().begins();
                let answered = self.answer_object(&request, knobs).await;
                self.counters().answering.fetch_sub(1, Relaxed);
                answered
            }
            Target::Counters => {
                self.site.count_cpu();
                let json = serde_json::to_vec(&self.site.counters.sum())?;
                response::write_plain(200, "application/json", &json, &mut self.out);
                Ok(!request.close)
            }
            Target::Unknown => {
                self.counters().answered(404);
                let body: &[u8] = if request.head { b"" } else { b"no such URL\n" };
                response::write_plain(404, "text/plain", body, &mut self.out);
                Ok(!request.close)
            }
        }
    }

    async fn answer_object(&mut self, request: &Request, mut knobs: Knobs) -> io::Result<bool> {
        let config = self.site.config;
        if config.failures > 0.0 && self.rng.chance(config.failures) {
            knobs.status = 503;
            knobs.no_store = true;
        }
        let server = Server::of(&config, &request.host);
        let latency = match knobs.latency_ms {
            Some(ms) => Duration::from_millis(u64::from(ms)),
            None => config.latency.draw(&mut self.rng) + server.latency,
        };
        if !latency.is_zero() {
            self.flush().await?;
            tokio::time::sleep(latency).await;
        }
        self.renew_date();
        let answer = response::write_head(request, &knobs, &self.date, &mut self.out);
        let bandwidth = knobs.bandwidth.unwrap_or(server.bandwidth);
        self.counters().answered(answer.status);
        let whole = self.send_body(&answer, bandwidth).await?;
        if !whole {
            self.counters().broken.fetch_add(1, Relaxed);
        }
        Ok(whole && !answer.close)
    }

    /// Sends the body piece by piece. Returns false if the body was cut on purpose (`die_after`).
    async fn send_body(&mut self, answer: &Answer, bandwidth: u64) -> io::Result<bool> {
        let total = answer.die_after.unwrap_or(u64::MAX).min(answer.length);
        let mut sent = 0;
        let begun = self.site.clock.mono();
        while sent < total {
            let piece = piece_size(total - sent, bandwidth);
            if answer.chunked {
                self.out
                    .extend_from_slice(format!("{piece:x}\r\n").as_bytes());
            }
            let start = self.out.len();
            self.out.resize(start + piece, 0);
            answer.key.fill(answer.from + sent, &mut self.out[start..]);
            if answer.chunked {
                self.out.extend_from_slice(b"\r\n");
            }
            sent += piece as u64;
            self.counters().bytes.fetch_add(piece as u64, Relaxed);
            if self.out.len() >= PIECE || bandwidth > 0 {
                self.flush().await?;
            }
            if bandwidth > 0 && sent < total {
                // The time is computed from the start of the body, so that delays of timers do not add up.
                let due = Duration::from_secs_f64(sent as f64 / bandwidth as f64);
                let ahead = due.saturating_sub(self.site.clock.mono().since(begun));
                if ahead > Duration::from_millis(1) {
                    tokio::time::sleep(ahead).await;
                }
            }
        }
        if answer.die_after.is_some_and(|most| most <= answer.length) && answer.length > 0 {
            return Ok(false);
        }
        if answer.chunked {
            self.out.extend_from_slice(b"0\r\n\r\n");
        }
        Ok(true)
    }

    /// Reads the request's own body and drops it. Returns false if the client disconnected.
    async fn discard_body(&mut self, body: Body) -> io::Result<bool> {
        let mut decoder = Dechunk::default();
        let mut left = match body {
            Body::Length(0) => return Ok(true),
            Body::Length(length) => length,
            Body::Chunked => u64::MAX,
        };
        loop {
            while self.used < self.input.len() {
                let have = &self.input[self.used..];
                if body == Body::Chunked {
                    match decoder.next(have) {
                        Ok(Piece::Framing(n)) => self.used += n,
                        Ok(Piece::Data(n)) => {
                            self.used += n;
                            self.counters().received.fetch_add(n as u64, Relaxed);
                        }
                        Ok(Piece::End(n)) => {
                            self.used += n;
                            return Ok(true);
                        }
                        Err(_) => return Ok(false),
                    }
                } else {
                    let n = left.min(have.len() as u64);
                    self.used += n as usize;
                    left -= n;
                    self.counters().received.fetch_add(n, Relaxed);
                    if left == 0 {
                        return Ok(true);
                    }
                }
            }
            if !self.read_more().await? {
                return Ok(false);
            }
        }
    }

    fn renew_date(&mut self) {
        let secs = self.site.clock.wall().secs();
        if secs != self.date_secs {
            self.date_secs = secs;
            let since = Duration::from_secs(u64::try_from(secs).unwrap_or(0));
            self.date = httpdate::fmt_http_date(UNIX_EPOCH + since);
        }
    }
}

/// Length of the next piece: at most 64 KiB, and with a bandwidth limit at most the bytes of 1/20 s.
fn piece_size(left: u64, bandwidth: u64) -> usize {
    let most = if bandwidth == 0 {
        PIECE as u64
    } else {
        (bandwidth / 20).clamp(1, PIECE as u64)
    };
    left.min(most) as usize
}
