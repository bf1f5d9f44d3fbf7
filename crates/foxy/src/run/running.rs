//! A Foxy that runs, and the two ways to end it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use foxy_proxy::{Proxy, Renewer};
use foxy_store::Engine;
use tokio::sync::mpsc;

use super::StartError;
use super::background::Background;
use super::keeper::{Absent, StoreKeeper};
use super::renewable::{ReloadWish, Reloaded, Renewable};
use crate::access_log::{Log, LogHandle};
use crate::admin::AdminThread;
use crate::config::Config;

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
    renewable: Renewable,
    engine: Arc<Engine>,
    stores: Arc<StoreKeeper>,
    admin: Option<AdminThread>,
    log: Log,
    background: Vec<Background>,
    workers: Vec<JoinHandle<()>>,
}

impl Running {
    pub(super) fn new(
        renewable: Renewable,
        engine: Arc<Engine>,
        stores: Arc<StoreKeeper>,
        admin: Option<AdminThread>,
        log: Log,
    ) -> Self {
        Self {
            renewable,
            engine,
            stores,
            admin,
            log,
            background: Vec::new(),
            workers: Vec::new(),
        }
    }

    pub(super) fn set_workers(&mut self, workers: Vec<JoinHandle<()>>, renewers: Vec<Renewer>) {
        self.workers = workers;
        self.renewable.set_workers(renewers);
    }

    pub(super) fn add_background(&mut self, thread: Background) {
        self.background.push(thread);
    }

    /// Stores of the configuration that could not be opened.
    #[must_use]
    pub fn absent_stores(&self) -> Vec<Absent> {
        self.stores.absent()
    }

    /// Returns the state that the workers share, with the settings of now.
    #[must_use]
    pub fn proxy(&self) -> Arc<Proxy> {
        self.renewable.proxy()
    }

    /// Applies the parts of a configuration that can change while Foxy runs, and says which. Blocks
    /// until every later request has the new settings. After an error nothing has changed.
    ///
    /// # Errors
    /// A listener cannot be bound, or a file cannot be used.
    pub fn reload(&self, new: &Config) -> Result<Reloaded, StartError> {
        let around = (&self.engine, &self.stores, &self.log);
        self.renewable.reload(new, around, self.admin.as_ref())
    }

    /// Where wishes of the admin listener for a reload arrive; for one caller.
    pub(crate) fn reload_wishes(&self) -> Option<mpsc::Receiver<ReloadWish>> {
        self.renewable.wishes()
    }

    /// The configuration that is in effect: that of the start, with what reloads have changed.
    #[must_use]
    pub fn config(&self) -> Config {
        self.renewable.config()
    }

    /// The store engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Addresses of the forward proxy, as bound.
    #[must_use]
    pub fn forward(&self) -> Vec<SocketAddr> {
        self.renewable.addresses().forward
    }

    /// Addresses of the sites, as bound, by name.
    #[must_use]
    pub fn sites(&self) -> Vec<(String, Vec<SocketAddr>)> {
        self.renewable.addresses().sites
    }

    /// Address of the admin listener, as bound.
    #[must_use]
    pub fn admin(&self) -> Option<SocketAddr> {
        self.renewable.addresses().admin
    }

    /// The access log, if there is one.
    #[must_use]
    pub fn log(&self) -> Option<LogHandle> {
        self.log.handle()
    }

    pub(super) fn log_settings(&self) -> &Log {
        &self.log
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
        self.renewable.proxy().shutdown();
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
        self.log.finish();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stores.abandon();
        self.end_workers();
        self.end_rest();
    }
}
