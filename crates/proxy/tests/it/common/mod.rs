//! The parts of most tests: a running proxy, an origin that calls a closure for each request, and a client
//! that returns raw answers.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::wrong_self_convention,
    clippy::needless_pass_by_value,
    reason = "helpers of tests; each test file uses its part"
)]

pub mod over_tls;
pub mod tls;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_base::{ManualClock, WallTime, key_hash};
use foxy_disk::MemDisk;
use foxy_proxy::{
    Config, Event, FixedNames, Listener, LogRecord, LogSink, Proxy, Renewal, Renewals,
    RenewedListener, Renewer, ResolveError, Resolved, Resolver, Resolving, Role, Serves, Worker,
    bind,
};
use foxy_store::{Engine, EngineConfig, Lookup, Object, StoreOptions};

mod client;
mod origin;

pub use client::{Answer, Client};
pub use origin::{Asked, Gate, Origin};

/// Returns a socket, and an address that refuses connections as long as this socket exists. Without the
/// socket, another test could get the same port.
pub fn refusing() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, address)
}

/// The time 2026-11-20 12:00:00 UTC, in seconds since 1970.
pub const NOON: i64 = 1_795_176_000;

/// All log records. Each record has the form "outcome status reason target". If the client uses TLS,
/// " over-tls" follows.
#[derive(Clone, Debug, Default)]
pub struct Log(pub Arc<Mutex<Vec<String>>>);

impl LogSink for Log {
    fn record(&mut self, r: &LogRecord<'_>) {
        let line = format!(
            "{} {} {} {}{}",
            r.outcome.as_str(),
            r.status,
            r.reason,
            String::from_utf8_lossy(r.target),
            if r.secure { " over-tls" } else { "" }
        );
        self.0.lock().unwrap().push(line);
    }
    fn flush(&mut self) {}
}

/// A resolver with fixed names and three special kinds of names. Every name under `here.test` has the address
/// of this machine. The address of `turning.test` changes. For `lost.test`, the first and the sixth lookup
/// have an answer, and the other lookups fail after nine seconds.
#[derive(Debug)]
struct Names {
    fixed: FixedNames,
    turned: AtomicBool,
    lost: AtomicUsize,
    clock: Arc<ManualClock>,
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        let last = match name {
            "turning.test" => 1 + u8::from(self.turned.swap(true, Ordering::SeqCst)),
            name if name.ends_with(".here.test") => 1,
            "lost.test" => match self.lost.fetch_add(1, Ordering::SeqCst) + 1 {
                1 | 6 => 1,
                _ => {
                    self.clock.advance(Duration::from_secs(9));
                    return Box::pin(std::future::ready(Err(ResolveError::Unavailable)));
                }
            },
            _ => return self.fixed.resolve(name),
        };
        let answer = Resolved {
            addresses: vec![IpAddr::from([127, 0, 0, last])],
            ttl: Duration::from_secs(1),
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
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

    /// Does the same as `with_engine`, but with certificates.
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

    /// Does the same as `listening`, but the listener may have several sites, and may use the PROXY protocol.
    pub fn serving(
        (serves, tls, proxy_protocol): (Serves, Option<foxy_tls::ListenerTls>, bool),
        config: Config,
        workers: usize,
        engine: Arc<Engine>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let (serves, tls, config) = match over_tls::is_on() {
            false => (serves, tls, config),
            true => {
                let mut config = config;
                config.upstream.tls = over_tls::trusted();
                let tls = over_tls::certificates().into();
                (over_tls::secured(serves), Some(tls), config)
            }
        };
        let names = FixedNames::default()
            .with("origin.test", &[IpAddr::from([127, 0, 0, 1])])
            .with(
                "split.test",
                &[[127, 0, 0, 2].into(), [127, 0, 0, 1].into()],
            )
            .with("metadata.test", &[IpAddr::from([169, 254, 169, 254])])
            .with("rebound.test", &[IpAddr::from([192, 0, 2, 7])]);
        let proxy = Proxy::new(
            config,
            engine.clone(),
            clock.clone(),
            Arc::new(Names {
                fixed: names,
                turned: AtomicBool::new(false),
                lost: AtomicUsize::new(0),
                clock: clock.clone(),
            }),
            workers,
        );
        let log = Log::default();
        let sockets = bind("127.0.0.1:0".parse().unwrap(), workers).unwrap();
        let mut addr = sockets[0].local_addr().unwrap();
        if over_tls::is_on() {
            addr = over_tls::relay(addr);
        }
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

    /// Gives all workers new settings. `listeners` contains all listeners of each worker: the present
    /// listeners that remain, and the new listeners.
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

    /// Sends one request on a separate connection, and returns the complete answer.
    pub fn ask(&self, request: &str) -> Answer {
        let mut client = self.connect();
        client.send(request);
        client.answer()
    }

    /// Sends a GET request for a path at the origin.
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

/// Waits until `reached` returns true, because other threads need time for their work. An example: a client
/// gets its answer before the worker has counted the answer. So a test waits until the counter has the
/// expected value.
#[track_caller]
pub fn until(mut reached: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if reached() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("not within twenty seconds");
}

impl Foxy {
    /// Waits until an event was counted `times` times.
    #[track_caller]
    pub fn counts(&self, event: Event, times: u64) {
        let count = || self.proxy.totals().event(event);
        until(|| count() >= times);
        assert_eq!(count(), times, "{event:?}");
    }

    /// Returns the stored object of a path, or only its head if the object is large.
    pub fn stored(&self, origin: &Origin, path: &str) -> Option<Arc<Object>> {
        let scheme = if over_tls::is_on() { "https" } else { "http" };
        let key = format!("forward GET {scheme}://{}{path}", origin.authority());
        match self
            .engine
            .reads()
            .lookup(key_hash(key.as_bytes()), key.as_bytes())
        {
            Lookup::Memory(object) => Some(object),
            _ => None,
        }
    }
}

/// A proxy with a store. The disk of the store is a [`MemDisk`], which exists only in memory. A thread does
/// the work of the store's writer.
pub struct Stored {
    pub foxy: Foxy,
    pub disk: Arc<MemDisk>,
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl Stored {
    /// Starts a proxy with `memory` bytes for the engine and a store of `disk` bytes.
    pub fn start(memory: u64, disk: u64, workers: usize) -> Self {
        Self::start_as(Config::default(), memory, disk, workers)
    }

    pub fn start_as(config: Config, memory: u64, disk: u64, workers: usize) -> Self {
        let disk = Arc::new(MemDisk::new(disk, 512, 1));
        Self::on(disk, config, memory, workers)
    }

    /// Does the same as `start_as`, but on a disk that an earlier proxy may have used.
    pub fn on(disk: Arc<MemDisk>, config: Config, memory: u64, workers: usize) -> Self {
        Self::serving(Role::Forward, disk, config, memory, workers)
    }

    /// Starts a proxy whose listener has this role, and whose store is on this disk.
    pub fn serving(
        role: Role,
        disk: Arc<MemDisk>,
        config: Config,
        memory: u64,
        workers: usize,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
        let engine = Engine::new(EngineConfig::new(memory, 3), clock.clone());
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
        until(|| !engine.stats().stores[0].loading);
        Self {
            foxy: Foxy::with_engine(role, config, workers, engine, clock),
            disk,
            stop,
            writer: Some(thread),
        }
    }

    /// Waits until at most this number of bytes still has to be written to the disk.
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
