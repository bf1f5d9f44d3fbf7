//! A running Foxy, and the two ways to end it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use foxy_proxy::{Proxy, Renewer};
use foxy_store::Engine;
use tokio::sync::mpsc;

use super::StartError;
use super::background::Background;
use super::keeper::{Absent, StoreKeeper};
use super::reloadable::{ReloadRequest, Reloadable, Reloaded};
use crate::access_log::{Log, LogHandle};
use crate::admin::AdminThread;
use crate::config::Config;

/// Addresses where a running Foxy listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    pub(crate) forward: Vec<SocketAddr>,
    pub(crate) sites: Vec<(String, Vec<SocketAddr>)>,
    pub(crate) admin: Option<SocketAddr>,
}

/// All threads of a Foxy. Dropping this value ends them as in a crash: waiting contents are not written.
#[derive(Debug)]
pub struct Running {
    reloadable: Reloadable,
    engine: Arc<Engine>,
    stores: Arc<StoreKeeper>,
    admin: Option<AdminThread>,
    log: Log,
    background: Vec<Background>,
    workers: Vec<JoinHandle<()>>,
}

impl Running {
    pub(super) fn new(
        reloadable: Reloadable,
        engine: Arc<Engine>,
        stores: Arc<StoreKeeper>,
        admin: Option<AdminThread>,
        log: Log,
    ) -> Self {
        Self {
            reloadable,
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
        self.reloadable.set_workers(renewers);
    }

    pub(super) fn add_background(&mut self, thread: Background) {
        self.background.push(thread);
    }

    /// Returns the stores of the configuration that could not be opened.
    #[must_use]
    pub fn absent_stores(&self) -> Vec<Absent> {
        self.stores.absent()
    }

    /// Returns the state that the workers share, with the current settings.
    #[must_use]
    pub fn proxy(&self) -> Arc<Proxy> {
        self.reloadable.proxy()
    }

    /// Applies the parts of a configuration that can change while Foxy runs, and returns their names. Blocks
    /// until every new request uses the new settings. After an error nothing has changed.
    ///
    /// # Errors
    /// An error if a listener cannot be bound, or if a file cannot be used.
    pub fn reload(&self, new: &Config) -> Result<Reloaded, StartError> {
        let context = (&self.engine, &self.stores, &self.log);
        self.reloadable.reload(new, context, self.admin.as_ref())
    }

    /// Returns the receiver of the admin listener's requests for a reload. Only the first caller gets it.
    pub(crate) fn reload_requests(&self) -> Option<mpsc::Receiver<ReloadRequest>> {
        self.reloadable.reload_requests()
    }

    /// Returns the configuration that is in effect: the configuration of the start, with the changes of
    /// reloads.
    #[must_use]
    pub fn config(&self) -> Config {
        self.reloadable.config()
    }

    /// Returns the store engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Returns the addresses of the forward proxy as the system has bound them. If a configured port is 0,
    /// the system has chosen the port.
    #[must_use]
    pub fn forward(&self) -> Vec<SocketAddr> {
        self.reloadable.addresses().forward
    }

    /// Returns the names of the sites with their addresses, as the system has bound them.
    #[must_use]
    pub fn sites(&self) -> Vec<(String, Vec<SocketAddr>)> {
        self.reloadable.addresses().sites
    }

    /// Returns the address of the admin listener, as the system has bound it.
    #[must_use]
    pub fn admin(&self) -> Option<SocketAddr> {
        self.reloadable.addresses().admin
    }

    /// Returns the access log, if there is one.
    #[must_use]
    pub fn log(&self) -> Option<LogHandle> {
        self.log.handle()
    }

    pub(super) fn log_settings(&self) -> &Log {
        &self.log
    }

    /// Makes the writer of every store run one iteration of its loop now. A test calls this after it has
    /// moved the clock.
    pub fn wake_stores(&self) {
        self.stores.wake();
    }

    /// Stops accepting connections, finishes the requests in flight (for at most `timeouts.drain`), writes
    /// all waiting contents to disk and seals the stores. Blocks until all threads have ended.
    pub fn shutdown(mut self) {
        self.end_workers();
        self.stores.drain();
        self.end_rest();
    }

    /// Ends Foxy as in a crash: contents that are not on disk are lost. For tests.
    pub fn kill(mut self) {
        self.stores.abandon();
        self.end_workers();
        self.end_rest();
    }

    fn end_workers(&mut self) {
        self.reloadable.proxy().shutdown();
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
