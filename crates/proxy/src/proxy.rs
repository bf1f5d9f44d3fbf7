//! What all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foxy_base::Clock;
use foxy_store::Engine;
use tokio::sync::watch;

use crate::upstream::dns::DnsCache;
use crate::{Config, Counters, Resolver, Totals};

/// The proxy: everything that its workers share. Make one, give it to every
/// [`Worker`](crate::Worker).
#[derive(Debug)]
pub struct Proxy {
    pub(crate) config: Config,
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) dns: DnsCache,
    pub(crate) connections: AtomicUsize,
    counters: Vec<Counters>,
    shutdown: watch::Sender<bool>,
}

impl Proxy {
    /// A proxy for `workers` workers (at least one).
    #[must_use]
    pub fn new(
        config: Config,
        engine: Arc<Engine>,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
        workers: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            dns: DnsCache::new(config.upstream.dns_names),
            config,
            engine,
            clock,
            resolver,
            connections: AtomicUsize::new(0),
            counters: (0..workers.max(1)).map(|_| Counters::default()).collect(),
            shutdown: watch::Sender::new(false),
        })
    }

    /// The counters of all workers, summed now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for counters in &self.counters {
            totals.add(counters);
        }
        totals
    }

    /// Client connections open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Asks all workers to stop accepting, finish what is in flight and end; callable from any
    /// thread, any number of times. [`Worker::run`](crate::Worker::run) returns when its worker
    /// is done, at the latest after [`Timeouts::drain`](crate::Timeouts::drain).
    pub fn shutdown(&self) {
        self.shutdown.send_replace(true);
    }

    /// Whether [`shutdown`](Self::shutdown) was called.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        *self.shutdown.borrow()
    }

    pub(crate) fn counters(&self, worker: usize) -> &Counters {
        &self.counters[worker % self.counters.len()]
    }

    pub(crate) fn shutdown_signal(&self) -> watch::Receiver<bool> {
        self.shutdown.subscribe()
    }
}
