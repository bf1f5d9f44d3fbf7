//! A name server for tests and experiments. Every name exists. The server's behaviour has phases. In some
//! phases it is slow, fails or sends invalid answers, so that a test can show how a proxy reacts.
//!
//! A name such as `127-1-0-5.anything` has the address that it contains. Any other name has the addresses
//! of the [`Zone`].

mod message;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_base::{Clock, MonoTime};

use crate::parse_time;
use message::{Answer, Question};

/// The records that the server returns.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Addresses of every name that does not contain its own address.
    pub addresses: Vec<IpAddr>,
    /// Time to live of all answers, in seconds.
    pub ttl: u32,
}

/// Behaviour of the server in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseKind {
    /// The server answers correctly.
    Good,
    /// The server answers correctly, after this time.
    Slow(Duration),
    /// The server does not answer.
    Silent,
    /// The answer is SERVFAIL.
    Fail,
    /// The answer is REFUSED.
    Refuse,
    /// The answer states that the name does not exist.
    Unknown,
    /// The answer states that the name exists and has no address.
    Empty,
    /// The answer states that the name is an alias of itself.
    Circle,
    /// The answer belongs to another question.
    Stranger,
    /// The answer consists of bytes that are not a DNS message.
    Garbage,
    /// The answer is a message that ends in the middle.
    Torn,
}

/// A phase of the server's behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Behaviour of the phase.
    pub kind: PhaseKind,
    /// Duration of the phase; `None`: until the server stops.
    pub lasts: Option<Duration>,
}

impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "phase `{text}`: write KIND or KIND,TIME with a kind of good, slow:TIME, silent, \
                 fail, refuse, unknown, empty, circle, stranger, garbage, torn; for example \
                 good,10s or slow:2s,1m"
            )
        };
        let (kind, lasts) = match text.split_once(',') {
            None => (text, None),
            Some((kind, time)) => (kind, Some(parse_time(time).ok_or_else(wrong)?)),
        };
        let kind = match kind.split_once(':') {
            Some(("slow", time)) => PhaseKind::Slow(parse_time(time).ok_or_else(wrong)?),
            Some(_) => return Err(wrong()),
            None => match kind {
                "good" => PhaseKind::Good,
                "silent" => PhaseKind::Silent,
                "fail" => PhaseKind::Fail,
                "refuse" => PhaseKind::Refuse,
                "unknown" => PhaseKind::Unknown,
                "empty" => PhaseKind::Empty,
                "circle" => PhaseKind::Circle,
                "stranger" => PhaseKind::Stranger,
                "garbage" => PhaseKind::Garbage,
                "torn" => PhaseKind::Torn,
                _ => return Err(wrong()),
            },
        };
        Ok(Self { kind, lasts })
    }
}

/// A running name server. It stops when this value is dropped.
#[derive(Debug)]
pub struct TestResolver {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// Longest wait of the thread before it checks the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl TestResolver {
    /// Starts a server that answers on `listen` (UDP; port 0 selects a free port). The phases follow each
    /// other. After all phases, the behaviour of the last phase continues.
    ///
    /// # Errors
    /// Returned if the address cannot be bound, or if the thread cannot be started.
    pub fn start(
        listen: SocketAddr,
        zone: Zone,
        phases: Vec<Phase>,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(listen)?;
        let address = socket.local_addr()?;
        socket.set_read_timeout(Some(POLL_INTERVAL))?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(AtomicU64::new(0));
        let server = Server {
            socket,
            zone,
            phases,
            begun: clock.mono(),
            clock: clock.clone(),
            asked: asked.clone(),
            held: Vec::new(),
        };
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("resolver".into())
            .spawn(move || server.run(&stopped))?;
        Ok(Self {
            address,
            stop,
            asked,
            thread: Some(thread),
        })
    }

    /// Address of the listener.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of questions so far.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// Blocks until the server has stopped.
    pub fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already printed a message.
            let _ = thread.join();
        }
    }
}

impl Drop for TestResolver {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.wait();
    }
}

struct Server {
    socket: UdpSocket,
    zone: Zone,
    phases: Vec<Phase>,
    begun: MonoTime,
    clock: Arc<dyn Clock>,
    asked: Arc<AtomicU64>,
    /// Answers that are sent later: time, receiver and bytes of each answer.
    held: Vec<(MonoTime, SocketAddr, Vec<u8>)>,
}

impl Server {
    fn run(mut self, stop: &AtomicBool) {
        let mut packet = [0; 1500];
        while !stop.load(Relaxed) {
            self.send_due();
            // Either no question arrived in time, or an earlier client has disconnected. In both cases the
            // server continues.
            let Ok((len, from)) = self.socket.recv_from(&mut packet) else {
                continue;
            };
            let Some(question) = Question::parse(&packet[..len]) else {
                continue;
            };
            self.asked.fetch_add(1, Relaxed);
            let (answer, after) = self.answer(&question);
            if let Some(bytes) = answer {
                self.held.push((self.clock.mono() + after, from, bytes));
            }
            self.send_due();
        }
    }

    /// Sends the answers that are due. Then sets the socket's timeout, so that the thread waits at most until
    /// the next answer is due.
    fn send_due(&mut self) {
        let now = self.clock.mono();
        self.held.retain(|(due, to, bytes)| {
            if *due <= now {
                // An error means that the client has disconnected. It is ignored.
                let _ = self.socket.send_to(bytes, to);
            }
            *due > now
        });
        let next = self.held.iter().map(|(due, ..)| due.since(now)).min();
        let wait = next.map_or(POLL_INTERVAL, |next| {
            next.clamp(Duration::from_millis(1), POLL_INTERVAL)
        });
        let _ = self.socket.set_read_timeout(Some(wait));
    }

    fn phase(&self) -> PhaseKind {
        let mut elapsed = self.clock.mono().since(self.begun);
        let mut kind = PhaseKind::Good;
        for phase in &self.phases {
            kind = phase.kind;
            match phase.lasts {
                Some(lasts) if lasts <= elapsed => elapsed -= lasts,
                _ => break,
            }
        }
        kind
    }

    /// Returns the answer, if there is one, and the time until it is sent.
    fn answer(&self, question: &Question<'_>) -> (Option<Vec<u8>>, Duration) {
        let good = || self.good(question);
        let now = Duration::ZERO;
        match self.phase() {
            PhaseKind::Good => (Some(good()), now),
            PhaseKind::Slow(time) => (Some(good()), time),
            PhaseKind::Silent => (None, now),
            PhaseKind::Fail => (Some(question.answer(&Answer::Code(2))), now),
            PhaseKind::Refuse => (Some(question.answer(&Answer::Code(5))), now),
            PhaseKind::Unknown => (Some(question.answer(&Answer::Code(3))), now),
            PhaseKind::Empty => (Some(question.answer(&Answer::Code(0))), now),
            PhaseKind::Circle => (Some(question.answer(&Answer::Alias)), now),
            PhaseKind::Stranger => {
                let mut bytes = good();
                bytes[0] ^= 0x55;
                (Some(bytes), now)
            }
            PhaseKind::Garbage => (Some(vec![0xa5; 40]), now),
            PhaseKind::Torn => {
                let mut bytes = good();
                bytes.truncate(bytes.len() - 3);
                (Some(bytes), now)
            }
        }
    }

    fn good(&self, question: &Question<'_>) -> Vec<u8> {
        let own = question.first_label().and_then(|label| {
            let text = String::from_utf8_lossy(label).replace('-', ".");
            text.parse::<IpAddr>().ok()
        });
        let all = own.map_or_else(|| self.zone.addresses.clone(), |address| vec![address]);
        question.answer(&Answer::Addresses(&all, self.zone.ttl))
    }
}
