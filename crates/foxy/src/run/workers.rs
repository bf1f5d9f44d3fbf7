//! Network threads, with their listeners, their log sinks and their cores.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use foxy_proxy::{
    Listener, LogSink, Origins, Proxy, Renewals, RenewedListener, Renewer, Role, Serves, Site,
    Worker, bind,
};
use foxy_tls::ListenerTls;

use super::{Passed, StartError};
use crate::access_log::{BufferedSink, Log};
use crate::config::{Config, SharedListener, SiteConfig};

/// Number of tries to bind an address that is in use during a reload. One last try follows them. An address
/// can stay in use for a moment after an earlier reload has closed its listener.
const TRIES: u32 = 50;
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Bound listeners for each worker, and the addresses of the listeners.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) per_worker: Vec<Vec<RenewedListener>>,
    pub(super) forward: Vec<SocketAddr>,
    pub(super) sites: Vec<(String, Vec<SocketAddr>)>,
    /// Addresses of the listeners, each in two forms: as configured, and as bound (with the port that the
    /// system chose if the configured port is 0).
    pub(super) addresses: Vec<(SocketAddr, SocketAddr)>,
    /// Addresses of listeners that exist already, in the same two forms. They get no new sockets.
    kept: Vec<(SocketAddr, SocketAddr)>,
    /// Number of tries to bind an address that is in use. One last try follows them.
    tries: u32,
}

impl Bound {
    /// Binds all addresses in the configuration, except addresses whose socket was passed. `origins` contains
    /// the origins of the sites.
    pub(super) fn bind_all(
        config: &Config,
        origins: &[Origins],
        passed: &mut Passed,
    ) -> Result<Self, StartError> {
        Self::bind_with(config, origins, passed, (Vec::new(), 0))
    }

    /// Binds addresses like [`bind_all`](Self::bind_all), but keeps listeners that are bound already. Blocks
    /// for at most a second for each address.
    pub(super) fn bind_beside(
        config: &Config,
        origins: &[Origins],
        kept: Vec<(SocketAddr, SocketAddr)>,
    ) -> Result<Self, StartError> {
        Self::bind_with(config, origins, &mut Passed::default(), (kept, TRIES))
    }

    fn bind_with(
        config: &Config,
        origins: &[Origins],
        passed: &mut Passed,
        (kept, tries): (Vec<(SocketAddr, SocketAddr)>, u32),
    ) -> Result<Self, StartError> {
        let mut bound = Self {
            per_worker: (0..config.workers).map(|_| Vec::new()).collect(),
            forward: Vec::new(),
            sites: Vec::new(),
            addresses: Vec::new(),
            kept,
            tries,
        };
        for address in &config.listen {
            let actual = {
                let speaks = config.listen_tls.contains(address);
                let tls = config.tls.clone().filter(|_| speaks);
                let serves = Serves::One(Role::Forward);
                let served = (&serves, tls.map(Into::into), config.proxy_protocol);
                bound.add((*address, passed), "forward proxy", served)?
            };
            bound.forward.push(actual);
        }
        bound.sites = config
            .sites
            .iter()
            .map(|site| (site.name.clone(), Vec::new()))
            .collect();
        for listener in config.shared_listeners() {
            let users: Vec<_> = listener.sites.iter().map(|site| &site.name[..]).collect();
            let tls = certificates(&listener);
            let served = (&serves(&listener, origins)?, tls, listener.is_named());
            let actual = bound.add((listener.address, passed), &users.join(", "), served)?;
            for (name, addresses) in &mut bound.sites {
                if users.contains(&&name[..]) {
                    addresses.push(actual);
                }
            }
        }
        Ok(bound)
    }

    fn add(
        &mut self,
        (address, passed): (SocketAddr, &mut Passed),
        user: &str,
        (serves, tls, proxy_protocol): (&Serves, Option<ListenerTls>, bool),
    ) -> Result<SocketAddr, StartError> {
        let fail = |source| StartError::listen(address, user, source);
        let workers = self.per_worker.len();
        let kept = self.kept.iter().position(|(wanted, _)| *wanted == address);
        let (actual, sockets) = match kept {
            Some(place) => (self.kept.swap_remove(place).1, Vec::new()),
            None => {
                let sockets = match passed.take(address, workers).map_err(fail)? {
                    Some(sockets) => sockets,
                    None => self.bind(address).map_err(fail)?,
                };
                let actual = match sockets.first() {
                    Some(socket) => socket.local_addr().map_err(fail)?,
                    None => address,
                };
                (actual, sockets)
            }
        };
        let mut sockets = sockets.into_iter().map(Some).collect::<Vec<_>>();
        // Each worker gets at least one entry: a socket, or `None` for a listener that it already has. More
        // sockets than workers may have been passed.
        sockets.resize_with(sockets.len().max(workers), || None);
        for (index, socket) in sockets.into_iter().enumerate() {
            self.per_worker[index % workers].push(RenewedListener {
                address: actual,
                socket,
                serves: serves.clone(),
                tls: tls.clone(),
                proxy_protocol,
            });
        }
        self.addresses.push((address, actual));
        Ok(actual)
    }

    /// Binds an address, and tries again while the address is in use. An earlier reload may have closed a
    /// listener of this address. That listener still accepts the connections in its queue, which takes a
    /// moment. Until then, its address is in use.
    fn bind(&self, address: SocketAddr) -> io::Result<Vec<TcpListener>> {
        for _ in 0..self.tries {
            match bind(address, self.per_worker.len()) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => sleep(PAUSE),
                bound => return bound,
            }
        }
        bind(address, self.per_worker.len())
    }

    /// Returns every address, in the order of the configuration.
    pub(super) fn all(&self) -> impl Iterator<Item = SocketAddr> {
        self.forward
            .iter()
            .chain(self.sites.iter().flat_map(|(_, addresses)| addresses))
            .copied()
    }
}

/// Returns the assignment of requests on a listener to sites. Either all requests belong to one site, or host
/// and path determine the site.
fn serves(listener: &SharedListener<'_>, origins: &[Origins]) -> Result<Serves, StartError> {
    if let (true, [only]) = (listener.is_one(), &listener.sites[..]) {
        return Ok(Serves::One(Role::Site(site(only, origins))));
    }
    let table = listener.table().map_err(StartError::Sites)?;
    let sites = listener
        .sites
        .iter()
        .map(|s| (site(s, origins), s.tls.clone()));
    Ok(Serves::Sites(Arc::new(table), sites.collect()))
}

fn certificates(listener: &SharedListener<'_>) -> Option<ListenerTls> {
    let own = |site: &&SiteConfig| Some((site.tls.clone()?, site.names.hosts.clone()));
    let sets = listener.sites.iter().filter_map(own);
    listener.speaks_tls().then(|| ListenerTls::of_sites(sets))
}

fn site(site: &SiteConfig, origins: &[Origins]) -> Site {
    let own = origins.iter().find(|origins| origins.site() == site.name);
    Site {
        origins: own.cloned(),
        name: site.name.clone(),
        host: site.origin.host.clone(),
        port: site.origin.port,
        tls: site.origin_tls.clone(),
        timeouts: site.timeouts,
        local_responses: site.local_responses.clone(),
        rewriting: site.rewriting.clone(),
        compress: site.compress.clone(),
        preserve_host: site.preserve_host,
        collapse: site.collapse,
        allow_clients: site.allow_clients.clone(),
        allow_client_names: site.allow_client_names.clone(),
        verified_by: site.tls.clone().filter(|tls| {
            let clients = tls.clients();
            clients.is_some_and(|clients| clients.required)
        }),
        mirror: None,
        objects: site.objects.clone(),
    }
}

/// Starts one thread per worker. Also returns the handles by which each worker gets new settings.
pub(super) fn spawn(
    proxy: &Arc<Proxy>,
    listeners: Vec<Vec<RenewedListener>>,
    log: &Log,
    pin: bool,
) -> Result<(Vec<JoinHandle<()>>, Vec<Renewer>), StartError> {
    let mut threads = Vec::with_capacity(listeners.len());
    let mut renewers = Vec::with_capacity(listeners.len());
    for (index, listeners) in listeners.into_iter().enumerate() {
        let sink: Box<dyn LogSink> = Box::new(BufferedSink::new(log));
        let (renewer, renewals) = Renewals::channel();
        renewers.push(renewer);
        let worker = Worker {
            proxy: Arc::clone(proxy),
            index,
            listeners: listeners.into_iter().filter_map(opened).collect(),
            log: sink,
            renewals,
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
    Ok((threads, renewers))
}

/// Returns the listener for a worker; `None` if it has no socket. At the start, every listener has a socket.
fn opened(listener: RenewedListener) -> Option<Listener> {
    Some(Listener {
        socket: listener.socket?,
        serves: listener.serves,
        tls: listener.tls,
        proxy_protocol: listener.proxy_protocol,
    })
}

/// Binds the calling thread to the core with number `index` among the cores that this process may use.
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
