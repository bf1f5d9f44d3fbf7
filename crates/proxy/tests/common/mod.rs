//! A proxy on one thread, an origin made of a closure, and a client that shows raw answers.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::wrong_self_convention,
    clippy::needless_pass_by_value,
    reason = "helpers of tests; each test file uses its part"
)]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_base::{ManualClock, WallTime, key_hash};
use foxy_disk::MemDisk;
use foxy_proxy::{
    Config, FixedNames, Listener, LogRecord, LogSink, Proxy, Renewal, Renewals, RenewedListener,
    Renewer, Role, Serves, Worker, bind,
};
use foxy_store::{Engine, EngineConfig, Lookup, Object, StoreOptions};

/// 2026-11-20 12:00:00 UTC.
pub const NOON: i64 = 1_795_176_000;

/// Everything logged, as "outcome status reason target".
#[derive(Clone, Debug, Default)]
pub struct Log(pub Arc<Mutex<Vec<String>>>);

impl LogSink for Log {
    fn record(&mut self, r: &LogRecord<'_>) {
        let line = format!(
            "{} {} {} {}",
            r.outcome.word(),
            r.status,
            r.reason,
            String::from_utf8_lossy(r.target)
        );
        self.0.lock().unwrap().push(line);
    }
    fn flush(&mut self) {}
}

/// A running proxy.
pub struct Foxy {
    pub addr: SocketAddr,
    pub proxy: Arc<Proxy>,
    pub engine: Arc<Engine>,
    pub clock: Arc<ManualClock>,
    pub log: Log,
    renewers: Vec<Renewer>,
    threads: Vec<JoinHandle<()>>,
}

impl Foxy {
    pub fn forward() -> Self {
        Self::start(Role::Forward, Config::default(), 1)
    }

    pub fn start(role: Role, config: Config, workers: usize) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
        let engine = Engine::new(EngineConfig::new(64 << 20, 7), clock.clone());
        Self::with_engine(role, config, workers, engine, clock)
    }

    pub fn with_engine(
        role: Role,
        config: Config,
        workers: usize,
        engine: Arc<Engine>,
        clock: Arc<ManualClock>,
    ) -> Self {
        Self::listening((role, None), config, workers, engine, clock)
    }

    /// As `with_engine`, with certificates.
    pub fn listening(
        (role, tls): (Role, Option<foxy_tls::ServerTls>),
        config: Config,
        workers: usize,
        engine: Arc<Engine>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let listener = (Serves::One(role), tls.map(Into::into), false);
        Self::serving(listener, config, workers, engine, clock)
    }

    /// As `listening`, for several sites.
    pub fn serving(
        (serves, tls, proxy_protocol): (Serves, Option<foxy_tls::ListenerTls>, bool),
        config: Config,
        workers: usize,
        engine: Arc<Engine>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let names = FixedNames::default()
            .with("origin.test", &[IpAddr::from([127, 0, 0, 1])])
            .with("metadata.test", &[IpAddr::from([169, 254, 169, 254])])
            .with("rebound.test", &[IpAddr::from([192, 0, 2, 7])]);
        let proxy = Proxy::new(
            config,
            engine.clone(),
            clock.clone(),
            Arc::new(names),
            workers,
        );
        let log = Log::default();
        let sockets = bind("127.0.0.1:0".parse().unwrap(), workers).unwrap();
        let addr = sockets[0].local_addr().unwrap();
        let mut renewers = Vec::new();
        let threads = sockets
            .into_iter()
            .enumerate()
            .map(|(index, socket)| {
                let (renewer, renewals) = Renewals::channel();
                renewers.push(renewer);
                let worker = Worker {
                    proxy: proxy.clone(),
                    index,
                    listeners: vec![Listener {
                        socket,
                        serves: serves.clone(),
                        tls: tls.clone(),
                        proxy_protocol,
                    }],
                    log: Box::new(log.clone()),
                    renewals,
                };
                std::thread::spawn(move || worker.run().unwrap())
            })
            .collect();
        Self {
            addr,
            proxy,
            engine,
            clock,
            log,
            renewers,
            threads,
        }
    }

    /// New settings for all workers, on listeners that each worker opens or has.
    pub fn renew(&mut self, config: Config, alike: bool, listeners: &[(SocketAddr, Serves)]) {
        self.proxy = self.proxy.renewed(config, alike);
        let new = listeners
            .iter()
            .filter(|(address, _)| *address != self.addr);
        let mut sockets: Vec<_> = new
            .map(|(address, _)| (*address, bind(*address, self.renewers.len()).unwrap()))
            .collect();
        for renewer in &self.renewers {
            let listeners = listeners.iter().map(|(address, serves)| RenewedListener {
                address: *address,
                socket: sockets
                    .iter_mut()
                    .find(|(bound, _)| bound == address)
                    .and_then(|(_, sockets)| sockets.pop()),
                serves: serves.clone(),
                tls: None,
                proxy_protocol: false,
            });
            let renewal = Renewal {
                proxy: self.proxy.clone(),
                listeners: listeners.collect(),
            };
            renewer.send(renewal).recv().unwrap();
        }
    }

    pub fn connect(&self) -> Client {
        Client::to(self.addr)
    }

    /// One request on a connection of its own; the whole answer.
    pub fn ask(&self, request: &str) -> Answer {
        let mut client = self.connect();
        client.send(request);
        client.answer()
    }

    /// GET of a path at the origin.
    pub fn get(&self, origin: &Origin, path: &str) -> Answer {
        self.get_with(origin, path, "")
    }

    pub fn get_with(&self, origin: &Origin, path: &str, fields: &str) -> Answer {
        let port = origin.addr.port();
        self.ask(&format!(
            "GET http://origin.test:{port}{path} HTTP/1.1\r\nHost: origin.test:{port}\r\n{fields}\r\n"
        ))
    }

    pub fn logged(&self) -> Vec<String> {
        self.log.0.lock().unwrap().clone()
    }
}

impl Foxy {
    /// The stored head or whole object of a path.
    pub fn stored(&self, origin: &Origin, path: &str) -> Option<Arc<Object>> {
        let key = format!("forward GET http://{}{path}", origin.authority());
        match self.engine.lookup(key_hash(key.as_bytes()), key.as_bytes()) {
            Lookup::Memory(object) => Some(object),
            _ => None,
        }
    }
}

/// A proxy with a store, whose writer is driven by a thread.
pub struct Stored {
    pub foxy: Foxy,
    pub disk: Arc<MemDisk>,
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl Stored {
    /// `memory` bytes for the engine, `disk` bytes of store.
    pub fn start(memory: u64, disk: u64, workers: usize) -> Self {
        Self::start_as(Config::default(), memory, disk, workers)
    }

    pub fn start_as(config: Config, memory: u64, disk: u64, workers: usize) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
        let engine = Engine::new(EngineConfig::new(memory, 3), clock.clone());
        let disk = Arc::new(MemDisk::new(disk, 512, 1));
        let mut writer = engine
            .open_store(disk.clone(), StoreOptions::default())
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, time) = (stop.clone(), clock.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                writer.turn();
                time.advance(Duration::from_millis(1));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self {
            foxy: Foxy::with_engine(Role::Forward, config, workers, engine, clock),
            disk,
            stop,
            writer: Some(thread),
        }
    }

    /// Until at most so many bytes wait to be written.
    pub fn settle(&self, bytes: u64) {
        while self.foxy.engine.stats().pending_bytes > bytes {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Drop for Foxy {
    fn drop(&mut self) {
        self.proxy.shutdown();
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

/// An answer as received.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body ended as announced.
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

    /// The `detail` or `fwd` word of Cache-Status.
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

    /// The other end of a connection.
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

    /// The next head, interim ones included; empty at the end of the connection.
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

    /// The next final answer to a GET.
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

/// One request at the origin.
pub struct Asked {
    pub head: String,
    pub client: Client,
}

impl Asked {
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (n, value) = line.split_once(':')?;
            n.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Answers with these fields (each line ended by CRLF) and this body.
    pub fn reply(&mut self, status: &str, fields: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let head = format!(
            "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n",
            body.len()
        );
        // The proxy may have given up.
        let _ = self
            .client
            .stream
            .write_all(&[head.as_bytes(), body].concat());
    }

    pub fn raw(&mut self, text: impl AsRef<[u8]>) {
        let _ = self.client.stream.write_all(text.as_ref());
    }
}

/// An origin: a thread per connection, which calls a closure for each request.
pub struct Origin {
    pub addr: SocketAddr,
    pub requests: Arc<AtomicUsize>,
    pub connections: Arc<AtomicUsize>,
}

impl Origin {
    /// `serve` returns whether the connection stays open.
    pub fn start(serve: impl Fn(&mut Asked) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, opened) = (requests.clone(), connections.clone());
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                opened.fetch_add(1, Ordering::SeqCst);
                let (serve, count) = (serve.clone(), count.clone());
                std::thread::spawn(move || {
                    let mut client = Client {
                        stream,
                        buf: Vec::new(),
                    };
                    loop {
                        let head = client.head();
                        if head.is_empty() {
                            return;
                        }
                        count.fetch_add(1, Ordering::SeqCst);
                        let mut asked = Asked { head, client };
                        if !serve(&mut asked) {
                            return;
                        }
                        client = asked.client;
                    }
                });
            }
        });
        Self {
            addr,
            requests,
            connections,
        }
    }

    pub fn asked(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub fn authority(&self) -> String {
        format!("origin.test:{}", self.addr.port())
    }
}
