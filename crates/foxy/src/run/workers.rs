//! Network threads: their listeners, their log sinks, their cores.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use foxy_proxy::{Listener, LogSink, NoLog, Proxy, Role, Site, Worker, bind};
use foxy_tls::ServerTls;

use super::{Passed, StartError};
use crate::access_log::{BufferedSink, LogHandle};
use crate::config::{Config, LogFormat};

/// Bound listeners, per worker, and the addresses they got.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) per_worker: Vec<Vec<Listener>>,
    pub(super) forward: Vec<SocketAddr>,
    pub(super) sites: Vec<(String, Vec<SocketAddr>)>,
}

impl Bound {
    /// Binds everything the configuration names, except where a socket was passed.
    pub(super) fn bind_all(config: &Config, passed: &mut Passed) -> Result<Self, StartError> {
        let mut bound = Self {
            per_worker: (0..config.workers).map(|_| Vec::new()).collect(),
            forward: Vec::new(),
            sites: Vec::new(),
        };
        for address in &config.listen {
            let actual = {
                let speaks = config.listen_tls.contains(address);
                let tls = config.tls.as_ref().filter(|_| speaks);
                bound.add((*address, passed), "forward proxy", (&Role::Forward, tls))?
            };
            bound.forward.push(actual);
        }
        for site in &config.sites {
            let role = Role::Site(Site {
                name: site.name.clone(),
                host: site.origin.host.clone(),
                port: site.origin.port,
                tls: site.origin_tls.clone(),
                preserve_host: site.preserve_host,
                collapse: site.collapse,
                allow_clients: site.allow_clients.clone(),
            });
            let actual: Result<Vec<_>, _> = site
                .listen
                .iter()
                .map(|address| {
                    let speaks = site.listen_tls.contains(address);
                    let tls = site.tls.as_ref().filter(|_| speaks);
                    bound.add((*address, passed), &site.name, (&role, tls))
                })
                .collect();
            bound.sites.push((site.name.clone(), actual?));
        }
        Ok(bound)
    }

    fn add(
        &mut self,
        (address, passed): (SocketAddr, &mut Passed),
        user: &str,
        (role, tls): (&Role, Option<&ServerTls>),
    ) -> Result<SocketAddr, StartError> {
        let fail = |source| StartError::listen(address, user, source);
        let workers = self.per_worker.len();
        let sockets = match passed.take(address, workers).map_err(fail)? {
            Some(sockets) => sockets,
            None => bind(address, workers).map_err(fail)?,
        };
        let actual = match sockets.first() {
            Some(socket) => socket.local_addr().map_err(fail)?,
            None => address,
        };
        for (index, socket) in sockets.into_iter().enumerate() {
            self.per_worker[index % workers].push(Listener {
                socket,
                role: role.clone(),
                tls: tls.cloned(),
            });
        }
        Ok(actual)
    }

    /// Every address, in the order of the configuration.
    pub(super) fn all(&self) -> impl Iterator<Item = SocketAddr> {
        self.forward
            .iter()
            .chain(self.sites.iter().flat_map(|(_, addresses)| addresses))
            .copied()
    }
}

/// Starts one thread per worker.
pub(super) fn spawn(
    proxy: &Arc<Proxy>,
    listeners: Vec<Vec<Listener>>,
    log: Option<&LogHandle>,
    (format, query_strings): (LogFormat, bool),
    pin: bool,
) -> Result<Vec<JoinHandle<()>>, StartError> {
    let mut threads = Vec::with_capacity(listeners.len());
    for (index, listeners) in listeners.into_iter().enumerate() {
        let sink: Box<dyn LogSink> = match log {
            Some(handle) => Box::new(BufferedSink::new(format, query_strings, handle.clone())),
            None => Box::new(NoLog),
        };
        let worker = Worker {
            proxy: Arc::clone(proxy),
            index,
            listeners,
            log: sink,
        };
        let thread = std::thread::Builder::new()
            .name(format!("foxy-{index}"))
            .spawn(move || {
                if pin {
                    pin_to(index);
                }
                if let Err(error) = worker.run() {
                    tracing::error!(%error, worker = index, "a network thread could not run");
                }
            })
            .map_err(|source| StartError::Thread {
                what: "network",
                source,
            })?;
        threads.push(thread);
    }
    Ok(threads)
}

/// Binds the calling thread to the `index`-th of the cores this process may use.
fn pin_to(index: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    let Some(core) = cores.get(index % cores.len().max(1)) else {
        return;
    };
    let mut one = CpuSet::new();
    one.set(*core);
    if let Err(error) = sched_setaffinity(None, &one) {
        tracing::warn!(%error, core, "a network thread could not be bound to its core");
    }
}
