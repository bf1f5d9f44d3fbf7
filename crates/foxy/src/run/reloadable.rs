//! The parts that a reload replaces: the proxy with its settings, its listeners, and the state of the admin
//! listener.

use std::net::SocketAddr;
use std::sync::Arc;

use foxy_base::{Budget, Clock, MonoTime, hash64};
use foxy_proxy::{Origins, Proxy, Renewal, Renewer};
use foxy_store::Engine;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::certificates::InUse;
use super::keeper::StoreKeeper;
use super::resident::Memory;
use super::running::Addresses;
use super::start::read_trust;
use super::workers::Bound;
use super::{StartError, limits, token};
use crate::access_log::Log;
use crate::admin::{AdminThread, Keys, State};
use crate::config::Config;

/// Names of the parts of a configuration that a reload has changed, or that the next start will change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Parts that are in effect now.
    pub applied: Vec<String>,
    /// Parts that take effect at the next start.
    pub waiting: Vec<String>,
}

/// A request of the admin listener for a reload. It is the channel on which the listener waits for the
/// outcome: a line about the changes, or the list of mistakes.
pub(crate) type ReloadRequest = oneshot::Sender<Result<String, Vec<String>>>;

/// Largest number of waiting requests for a reload.
const MAX_RELOAD_REQUESTS: usize = 8;

/// Parts that stay as long as Foxy runs.
#[derive(Debug)]
pub(super) struct Permanent {
    pub(super) seed: u64,
    /// The memory budget. Reloads change it, and the thread that watches the memory reads it.
    pub(super) memory: Memory,
    pub(super) admin: Option<SocketAddr>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) started: MonoTime,
}

impl Permanent {
    /// Returns the proxy's configuration, with the values that are known only at run time.
    pub(super) fn proxy_config(
        &self,
        config: &Config,
        bound: &Bound,
        keys: &Keys,
    ) -> foxy_proxy::Config {
        let mut proxy = config.proxy.clone();
        let requests = Budget::of(config.memory).requests;
        let requests = usize::try_from(requests).unwrap_or(usize::MAX);
        proxy.limits.memory = requests;
        proxy.fill.memory = requests / 2;
        limits::fit_to_open_files(&mut proxy, config.workers);
        proxy.access.loopback_only = bound.all().all(|address| address.ip().is_loopback());
        proxy.access.own = bound.all().chain(self.admin).collect();
        proxy.access.token.clone_from(&keys.operate);
        // Several proxies in a chain can have the same name. The instance distinguishes this Foxy from them.
        proxy.headers.instance = format!("{:08x}", hash64(self.seed, b"instance") as u32);
        proxy
    }
}

/// The settings in effect, and the parts that were made from them.
#[derive(Clone, Debug)]
struct Current {
    config: Config,
    proxy: Arc<Proxy>,
    keys: Keys,
    /// The origins of sites.
    origins: Vec<Origins>,
    addresses: Addresses,
    /// The addresses of the listeners, each in two forms: as configured, and as bound (with the port that the
    /// system chose if the configured port is 0).
    bound: Vec<(SocketAddr, SocketAddr)>,
}

/// The parts that a reload replaces. The comment of this module lists them.
#[derive(Debug)]
pub(super) struct Reloadable {
    permanent: Permanent,
    current: Mutex<Current>,
    certificates: InUse,
    renewers: Vec<Renewer>,
    reload_requests: mpsc::Sender<ReloadRequest>,
    reload_receiver: Mutex<Option<mpsc::Receiver<ReloadRequest>>>,
}

/// The parts that the admin listener needs in addition to the proxy.
pub(super) type AdminContext<'a> = (&'a Arc<Engine>, &'a Arc<StoreKeeper>, &'a Log);

impl Reloadable {
    pub(super) fn new(
        permanent: Permanent,
        (config, origins, keys): (&Config, Vec<Origins>, Keys),
        proxy: Arc<Proxy>,
        bound: &Bound,
    ) -> Self {
        let (reload_requests, reload_receiver) = mpsc::channel(MAX_RELOAD_REQUESTS);
        Self {
            reload_requests,
            reload_receiver: Mutex::new(Some(reload_receiver)),
            certificates: InUse::new(config.certificates(), &*permanent.clock),
            current: Mutex::new(Current {
                config: config.clone(),
                proxy,
                keys,
                origins,
                addresses: addresses(bound, permanent.admin),
                bound: bound.addresses.clone(),
            }),
            permanent,
            renewers: Vec::new(),
        }
    }

    pub(super) fn set_workers(&mut self, renewers: Vec<Renewer>) {
        self.renewers = renewers;
    }

    /// Returns the receiver of requests for a reload. Only the first caller gets it.
    pub(super) fn reload_requests(&self) -> Option<mpsc::Receiver<ReloadRequest>> {
        self.reload_receiver.lock().take()
    }

    pub(super) fn proxy(&self) -> Arc<Proxy> {
        Arc::clone(&self.current.lock().proxy)
    }

    pub(super) fn addresses(&self) -> Addresses {
        self.current.lock().addresses.clone()
    }

    pub(super) fn config(&self) -> Config {
        self.current.lock().config.clone()
    }

    /// Returns the certificates that are checked for changes while Foxy runs.
    pub(super) fn certificates(&self) -> InUse {
        self.certificates.clone()
    }

    pub(super) fn admin_state(&self, context: AdminContext<'_>) -> State {
        self.state_of(&self.current.lock(), context)
    }

    fn state_of(&self, current: &Current, (engine, stores, log): AdminContext<'_>) -> State {
        let permanent = &self.permanent;
        State::new(
            &current.proxy,
            (engine, stores),
            &permanent.clock,
            log.handle(),
            (&current.config, &current.addresses, current.origins.clone()),
            (current.keys.clone(), permanent.started),
            self.reload_requests.clone(),
        )
    }

    /// See [`Running::reload`](super::Running::reload).
    pub(super) fn reload(
        &self,
        new: &Config,
        context: AdminContext<'_>,
        admin: Option<&AdminThread>,
    ) -> Result<Reloaded, StartError> {
        let mut current = self.current.lock();
        let (config, mut changes) = new.after(&current.config);
        let keys = token::keys(&config)?;
        changes.note("admin tokens", keys != current.keys);
        let origins = config.origins_after(&current.config, &current.origins);
        let bound = Bound::bind_beside(&config, &origins, current.bound.clone())?;
        let mut settings = self.permanent.proxy_config(&config, &bound, &keys);
        // The new settings share the list of local addresses, because a thread keeps that list up to date.
        let local = &current.config.proxy.access.local_addresses;
        settings.access.local_addresses.clone_from(local);
        read_trust(&config, &settings.upstream.tls)?;
        let (engine, _, log) = context;
        let prepared = log.prepare(&config.log);
        let prepared =
            prepared.map_err(|source| StartError::access_log(&config.log.access, source))?;
        // No step after this one can fail.
        let old_log = log.apply(&config.log, prepared);
        if config.memory != current.config.memory {
            self.permanent.memory.set(config.memory);
            engine.set_memory(Budget::of(config.memory).engine);
        }
        let proxy = current.proxy.renewed(settings, changes.alike);
        let sent: Vec<_> = self
            .renewers
            .iter()
            .zip(bound.per_worker)
            .map(|(renewer, listeners)| {
                let proxy = Arc::clone(&proxy);
                renewer.send(Renewal { proxy, listeners })
            })
            .collect();
        for applied in sent {
            // An error means that the worker has ended.
            let _ = applied.recv();
        }
        // Every worker has handed over its lines, so the thread of the old log can end.
        if let Some(log) = old_log {
            log.finish();
        }
        self.certificates
            .set(config.certificates(), &*self.permanent.clock);
        *current = Current {
            proxy,
            keys,
            origins,
            addresses: Addresses {
                forward: bound.forward,
                sites: bound.sites,
                admin: self.permanent.admin,
            },
            bound: bound.addresses,
            config,
        };
        if let Some(admin) = admin {
            admin.replace_state(self.state_of(&current, context));
        }
        Ok(Reloaded {
            applied: changes.now,
            waiting: changes.later,
        })
    }
}

fn addresses(bound: &Bound, admin: Option<SocketAddr>) -> Addresses {
    Addresses {
        forward: bound.forward.clone(),
        sites: bound.sites.clone(),
        admin,
    }
}
