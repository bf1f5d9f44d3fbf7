//! A deterministic origin server. Its answers depend only on the URL and the host.
//!
//! An origin that is bound to `0.0.0.0` answers on every address of 127.0.0.0/8. Each of these addresses is a
//! separate server with different bodies. Each thread has its own runtime and its own listener
//! (SO_REUSEPORT), so threads share only the port.

mod connection;
mod counters;
mod request;
mod response;
mod server;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use foxy_base::{Clock, Rng};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::watch;

use crate::{Delay, Speed};

pub use counters::{OriginCounters, parse_counters};
pub(crate) use request::variant_version;

/// Behaviour of an origin.
#[derive(Clone, Copy, Debug)]
pub struct OriginConfig {
    /// Listener address; port 0 selects a free port.
    pub listen: SocketAddr,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Time before each answer, unless the URL contains another time.
    pub latency: Delay,
    /// Delay that is added to `latency`; it is drawn once for each server.
    pub server_latency: Delay,
    /// Bytes per second of each connection, unless the URL contains another limit. The value is drawn once
    /// for each server.
    pub bandwidth: Speed,
    /// Share of requests that are answered with 503, 0 to 1.
    pub failures: f64,
    /// True if the threads do not sleep while they answer requests. Then clients use no CPU time to wake the
    /// cores of the threads.
    pub poll: bool,
    /// Seed of all random values.
    pub seed: u64,
}

impl Default for OriginConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 0)),
            threads: 1,
            latency: Delay::None,
            server_latency: Delay::None,
            bandwidth: Speed::Fixed(0),
            failures: 0.0,
            poll: false,
            seed: 1,
        }
    }
}

/// A running origin. It stops when this value is dropped.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    counters: Arc<counters::Shared>,
}

impl Origin {
    /// Starts an origin. Returns when the origin accepts connections.
    ///
    /// # Errors
    /// Returned if the address cannot be bound, or if a thread cannot start.
    pub fn start(config: OriginConfig, clock: &Arc<dyn Clock>) -> io::Result<Self> {
        let threads = config.threads.max(1);
        let counters = Arc::new(counters::Shared::new(threads));
        let (stop, stopped) = watch::channel(false);
        let mut address = config.listen;
        let mut handles = Vec::new();
        for thread in 0..threads {
            let listener = listen(address)?;
            address = listener.local_addr()?;
            let site = connection::Site {
                config,
                clock: clock.clone(),
                counters: counters.clone(),
                thread,
                seed: Rng::new(config.seed).fork(&format!("thread {thread}")),
                stopped: stopped.clone(),
                spin: Default::default(),
            };
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            handles.push(
                std::thread::Builder::new()
                    .name(format!("origin-{thread}"))
                    .spawn(move || {
                        if let Err(error) = runtime.block_on(connection::accept_all(listener, site))
                        {
                            eprintln!("origin: {error}");
                        }
                    })?,
            );
        }
        Ok(Self {
            address,
            stop,
            threads: handles,
            counters,
        })
    }

    /// Address of the listener.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counts so far.
    #[must_use]
    pub fn counters(&self) -> OriginCounters {
        self.counters.sum()
    }

    /// Blocks until the origin has stopped.
    pub fn wait(&mut self) {
        for thread in self.threads.drain(..) {
            // A thread that panicked has already printed a message.
            let _ = thread.join();
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // If all threads have ended, nobody receives this signal.
        let _ = self.stop.send(true);
        self.wait();
    }
}

fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests;
