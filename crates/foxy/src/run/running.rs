//! A Foxy that runs, and the two ways to end it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use foxy_proxy::Proxy;
use foxy_store::Engine;

use super::background::Background;
use super::keeper::{Absent, StoreKeeper};
use crate::access_log::{LogHandle, LogThread};
use crate::admin::AdminThread;

/// Where a running Foxy listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    pub(crate) forward: Vec<SocketAddr>,
    pub(crate) sites: Vec<(String, Vec<SocketAddr>)>,
    pub(crate) admin: Option<SocketAddr>,
}

/// All threads of a Foxy. Dropping it ends them as a crash would: nothing is written out.
#[derive(Debug)]
pub struct Running {
    proxy: Arc<Proxy>,
    engine: Arc<Engine>,
    stores: Arc<StoreKeeper>,
    admin: Option<AdminThread>,
    log: Option<LogThread>,
    background: Vec<Background>,
    addresses: Addresses,
    workers: Vec<JoinHandle<()>>,
}

impl Running {
    pub(super) fn new(
        proxy: Arc<Proxy>,
        engine: Arc<Engine>,
        stores: Arc<StoreKeeper>,
        admin: Option<AdminThread>,
        log: Option<LogThread>,
        addresses: Addresses,
    ) -> Self {
        Self {
            proxy,
            engine,
            stores,
            admin,
            log,
            background: Vec::new(),
            addresses,
            workers: Vec::new(),
        }
    }

    pub(super) fn set_workers(&mut self, workers: Vec<JoinHandle<()>>) {
        self.workers = workers;
    }

    pub(super) fn add_background(&mut self, thread: Background) {
        self.background.push(thread);
    }

    /// Stores of the configuration that could not be opened.
    #[must_use]
    pub fn absent_stores(&self) -> Vec<Absent> {
        self.stores.absent()
    }

    /// What the workers share.
    #[must_use]
    pub fn proxy(&self) -> &Arc<Proxy> {
        &self.proxy
    }

    /// The store engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Addresses of the forward proxy, as bound.
    #[must_use]
    pub fn forward(&self) -> &[SocketAddr] {
        &self.addresses.forward
    }

    /// Addresses of the sites, as bound, by name.
    #[must_use]
    pub fn sites(&self) -> &[(String, Vec<SocketAddr>)] {
        &self.addresses.sites
    }

    /// Address of the admin listener, as bound.
    #[must_use]
    pub fn admin(&self) -> Option<SocketAddr> {
        self.addresses.admin
    }

    /// The access log, if there is one.
    #[must_use]
    pub fn log(&self) -> Option<LogHandle> {
        self.log.as_ref().map(LogThread::handle)
    }

    /// Makes every store's thread take a turn now, after a test has moved the clock.
    pub fn wake_stores(&self) {
        self.stores.wake();
    }

    /// Stops accepting, finishes what is in flight (at most `timeouts.drain`), writes everything
    /// to disk and seals. Blocks until all threads have ended.
    pub fn shutdown(mut self) {
        self.end_workers();
        self.stores.drain();
        self.end_rest();
    }

    /// Ends as a crash would: what is not on disk is lost. For tests.
    pub fn kill(mut self) {
        self.stores.abandon();
        self.end_workers();
        self.end_rest();
    }

    fn end_workers(&mut self) {
        self.proxy.shutdown();
        for thread in self.background.drain(..) {
            thread.stop();
        }
        for thread in self.workers.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a network thread ended badly");
            }
        }
    }

    fn end_rest(&mut self) {
        if let Some(admin) = self.admin.take() {
            admin.stop();
        }
        if let Some(log) = self.log.take() {
            log.finish();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stores.abandon();
        self.end_workers();
        self.end_rest();
    }
}
