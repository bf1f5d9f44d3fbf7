//! One thread of the load generator: a readiness loop over its connections.

mod links;

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use foxy_base::{Clock, Rng};
use mio::net::TcpStream;
use mio::{Events, Poll, Token};

use super::exchange::{Done, Exchange, Expect, Fed};
use super::pace::{Schedule, Timer};
use super::request_spec::{RequestSpec, SharedSource};
use super::shared::{Shared, Taken};
use super::stats::{Fault, Stats};
use super::timeline::Timeline;
use super::wire;
use super::{LoadConfig, Outcome};
use crate::spin::Spin;

/// Greatest number of bytes of one read while a head is awaited.
const HEAD_READ: usize = 16 << 10;
/// Greatest number of bytes of one read while a body is checked or dropped.
const BODY_READ: usize = 256 << 10;
/// Pause before a refused connection is tried again.
const RETRY_NS: u64 = 5_000_000;
/// Longest time in the readiness call. After this time, the thread checks whether the run was stopped.
const TICK: Duration = Duration::from_millis(20);
const TIMER: Token = Token(usize::MAX);

/// The results of one generator thread.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub(crate) stats: Stats,
    pub(crate) timeline: Timeline,
    /// CPU time of polls that found no answer.
    pub(crate) empty_polls: Duration,
}

pub(crate) struct Engine<'a> {
    config: &'a LoadConfig,
    shared: &'a Shared,
    clock: Arc<dyn Clock>,
    poll: Poll,
    timer: Timer,
    connections: Vec<Connection>,
    idle: Vec<usize>,
    source: SharedSource,
    schedule: Schedule,
    rng: Rng,
    scratch: Vec<u8>,
    out: Finished,
    exhausted: bool,
    busy: usize,
    last_sweep: u64,
    /// Time of the last pass over all connections (`sweep`) that found an established connection.
    last_stood: u64,
    spin: Spin,
}

#[derive(Default)]
struct Connection {
    stream: Option<TcpStream>,
    phase: Phase,
    request: Vec<u8>,
    sent: usize,
    /// Bytes of an incomplete head.
    kept: Vec<u8>,
    job: Option<Job>,
    /// Number of answers received on this connection.
    answers: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Not connected, and no attempt is planned.
    #[default]
    Down,
    /// Not connected. The next attempt is made at this time (ns).
    RetryAt(u64),
    Connecting,
    Ready,
}

struct Job {
    spec: RequestSpec,
    exchange: Exchange,
    intended: u64,
    measured: bool,
    full: bool,
    reload: bool,
    resent: bool,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        config: &'a LoadConfig,
        shared: &'a Shared,
        source: SharedSource,
        clock: Arc<dyn Clock>,
        thread: usize,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        let rng = Rng::new(config.seed).fork(&format!("load thread {thread}"));
        let now = clock.mono().nanos();
        let count = (config.connections + config.threads - 1 - thread) / config.threads;
        Ok(Self {
            config,
            shared,
            poll,
            timer,
            connections: (0..count.max(1)).map(|_| Connection::default()).collect(),
            idle: Vec::new(),
            source,
            schedule: Schedule::new(config.pace, config.threads, now, rng.fork("times")),
            rng,
            scratch: vec![0; BODY_READ],
            out: Finished::default(),
            exhausted: false,
            busy: 0,
            last_sweep: now,
            last_stood: now,
            spin: Spin::default(),
            clock,
        })
    }

    /// Runs until one of three events: the run is stopped; no request is left to send and all sent requests
    /// have ended; or no connection was established for too long, see `deserted`.
    pub(crate) fn run(mut self) -> io::Result<Finished> {
        let mut events = Events::with_capacity(1024);
        for at in 0..self.connections.len() {
            self.connect(at);
        }
        while !self.finished() {
            let wait = self.issue()?;
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            if self.config.poll {
                self.spin.polled(events.is_empty());
            }
            for event in &events {
                if event.token() != TIMER {
                    self.on_event(event);
                }
            }
            self.sweep();
        }
        self.out.empty_polls = self.spin.empty_polls();
        Ok(self.out)
    }

    fn finished(&self) -> bool {
        self.shared.stopped() || self.deserted() || (self.exhausted && self.busy == 0)
    }

    fn now(&self) -> u64 {
        self.clock.mono().nanos()
    }

    /// Sends the due requests on idle connections. Returns the longest time that the next readiness call may
    /// take.
    fn issue(&mut self) -> io::Result<Duration> {
        let mut now = self.now();
        while !self.exhausted && !self.idle.is_empty() {
            let Some(intended) = self.schedule.due(now) else {
                break;
            };
            let Some(job) = self.next_job(intended) else {
                self.exhausted = true;
                break;
            };
            if let Some(at) = self.idle.pop() {
                self.busy += 1;
                self.start(at, job);
            }
            if self.schedule.is_open() {
                now = self.now();
            }
        }
        if self.config.poll {
            return Ok(Duration::ZERO);
        }
        if self.exhausted || self.idle.is_empty() {
            return Ok(TICK);
        }
        match self.schedule.wait(now) {
            Some(wait) if wait < TICK => {
                self.timer.set(wait)?;
                Ok(TICK.min(wait + Duration::from_millis(1)))
            }
            _ => Ok(TICK),
        }
    }

    fn next_job(&mut self, intended: u64) -> Option<Job> {
        let measured = match self.shared.take() {
            Taken::Measured => true,
            Taken::WarmUp => false,
            Taken::None => return None,
        };
        let mut spec = self.source.next()?;
        let (mut versions, mut reload) = (spec.version..=spec.version, false);
        if let Some(tracker) = &self.shared.tracker {
            let permit = tracker.lock().begin(spec);
            (spec, versions, reload) = (permit.spec, permit.versions, permit.reload);
        }
        let full = self.config.check >= 1.0 || self.rng.chance(self.config.check);
        let exchange = Exchange::new(Expect {
            spec,
            versions,
            full,
        });
        Some(Job {
            spec,
            exchange,
            intended,
            measured,
            full,
            reload,
            resent: false,
        })
    }

    fn start(&mut self, at: usize, job: Job) {
        let connection = &mut self.connections[at];
        connection.request.clear();
        connection.sent = 0;
        wire::write_request(
            &self.config.style,
            &job.spec,
            job.reload,
            &mut connection.request,
        );
        connection.job = Some(job);
        self.send(at);
    }

    /// Sends the rest of the request.
    fn send(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let (Some(stream), Some(_)) = (&mut connection.stream, &connection.job) else {
            return;
        };
        while connection.sent < connection.request.len() {
            match stream.write(&connection.request[connection.sent..]) {
                Ok(n) => connection.sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Usually the server has closed the connection. It may have sent an answer before, so the
                // bytes that have arrived are read first.
                Err(_) => return self.receive(at, true),
            }
        }
    }

    fn on_event(&mut self, event: &mio::event::Event) {
        let at = event.token().0;
        let Some(connection) = self.connections.get_mut(at) else {
            return;
        };
        if connection.phase == Phase::Connecting && !self.connected(at) {
            return;
        }
        if event.is_writable() {
            self.send(at);
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.receive(at, event.is_read_closed() || event.is_error());
        }
    }

    /// Reads the bytes that have arrived. If `ended` is true, the peer sends no more bytes.
    fn receive(&mut self, at: usize, ended: bool) {
        loop {
            let connection = &mut self.connections[at];
            let Some(stream) = &mut connection.stream else {
                return;
            };
            let Some(job) = &mut connection.job else {
                return self.idle_readable(at);
            };
            let skippable = job.exchange.skippable();
            let have = connection.kept.len();
            let (asked, got) = if skippable > 0 && have == 0 {
                let most = (skippable as usize).min(BODY_READ);
                (most, discard(stream, &mut self.scratch[..most]))
            } else {
                let most = if job.exchange.begun() {
                    BODY_READ
                } else {
                    HEAD_READ.max(2 * have)
                };
                let most = most.min(BODY_READ);
                self.scratch[..have].copy_from_slice(&connection.kept);
                (most - have, stream.read(&mut self.scratch[have..most]))
            };
            let n = match got {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => 0,
            };
            if n == 0 {
                return self.ended(at);
            }
            let step = if skippable > 0 && have == 0 {
                job.exchange
                    .skip(n as u64)
                    .map_or(Fed::More(n), |done| Fed::Done(n, done))
            } else {
                let input = &self.scratch[..have + n];
                let step = job.exchange.feed(&self.config.style.mode, input);
                connection.kept.clear();
                if let Fed::More(used) = step {
                    connection.kept.extend_from_slice(&input[used..]);
                }
                match step {
                    Fed::Done(used, _) if used < input.len() => Fed::Wrong(
                        Fault::Framing,
                        format!("{} bytes after the answer", input.len() - used),
                    ),
                    step => step,
                }
            };
            match step {
                Fed::More(_) if n < asked && !ended => return,
                Fed::More(_) => {}
                Fed::Done(_, done) => return self.completed(at, done),
                Fed::Wrong(fault, text) => return self.broken(at, fault, &text),
            }
        }
    }

    /// Handles the end of a connection on which an answer was awaited.
    fn ended(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let Some(job) = &mut connection.job else {
            return;
        };
        let untouched = !job.exchange.begun() && connection.kept.is_empty();
        if untouched && connection.answers > 0 && !job.resent {
            // The server may close an idle connection at any time. So the request is sent again, but only
            // once.
            job.resent = true;
            self.out.stats.resent += 1;
            return self.connect(at);
        }
        match job.exchange.end() {
            Fed::Done(_, done) => self.completed(at, done),
            Fed::Wrong(fault, text) => self.broken(at, fault, &text),
            Fed::More(_) => {}
        }
    }

    fn broken(&mut self, at: usize, fault: Fault, text: &str) {
        if let Some(job) = self.connections[at].job.take() {
            self.busy -= 1;
            self.fail(&job, fault, text);
        }
        self.connect(at);
    }

    fn fail(&mut self, job: &Job, fault: Fault, text: &str) {
        if let Some(tracker) = &self.shared.tracker {
            tracker.lock().end(&job.spec, None);
        }
        self.shared.failed.fetch_add(1, Relaxed);
        if job.measured {
            self.shared.ended();
            let style = &self.config.style;
            self.out.stats.wrong(fault, || {
                let mut url = Vec::new();
                wire::write_url(style, &job.spec, &mut url);
                let want = (job.spec.version, job.spec.size);
                format!(
                    "{} (version {}, size {}): {text}",
                    url.escape_ascii(),
                    want.0,
                    want.1
                )
            });
        }
    }

    fn completed(&mut self, at: usize, done: Done) {
        let now = self.now();
        let connection = &mut self.connections[at];
        connection.answers += 1;
        let Some(job) = connection.job.take() else {
            return;
        };
        self.busy -= 1;
        if let Some(tracker) = &self.shared.tracker {
            tracker.lock().end(&job.spec, Some(done.version));
        }
        self.shared.answered.fetch_add(1, Relaxed);
        if job.measured {
            self.shared.ended();
            let nanos = now.saturating_sub(job.intended);
            self.out
                .stats
                .right(done.served, done.body, job.full, nanos);
            if self.config.timeline {
                self.out
                    .timeline
                    .add(now.saturating_sub(self.shared.start), done.served);
            }
        }
        if let Some(record) = &self.shared.record {
            let spec = RequestSpec {
                size: done.body,
                ..job.spec
            };
            record.lock().add(&Outcome {
                spec,
                version: done.version,
                served: done.served,
            });
        }
        if done.close {
            self.connect(at);
        } else {
            self.idle.push(at);
        }
    }
}

/// Removes bytes from the socket without reading their contents.
#[cfg(target_os = "linux")]
fn discard(stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
    // On TCP sockets, MSG_TRUNC drops the bytes inside the kernel (tcp(7)).
    let (_, n) = rustix::net::recv(&*stream, room, rustix::net::RecvFlags::TRUNC)?;
    Ok(n)
}

#[cfg(not(target_os = "linux"))]
fn discard(stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
    stream.read(room)
}
