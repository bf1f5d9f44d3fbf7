//! The admin listener: health, metrics, statistics, purging, stores and a live status page.
//!
//! It runs on a thread of its own, so that it answers when the network threads are busy and never
//! costs them anything. It is no proxy, answers only under names it knows (a page in a browser
//! could otherwise point its own name at it), and changes something only for requests that carry
//! a field which a foreign page cannot add. Tokens, a unix socket and loopback have rights
//! (`guard`, `keys`); where others than this machine can connect, nothing is told without a token.

mod connection;
mod guard;
mod keys;
mod list;
mod metrics;
mod names;
mod open;
mod origins;
mod purge;
mod reload;
mod routes;
mod socket;
mod stats;
mod stores;
mod traffic;
mod why;

pub(crate) use keys::Keys;
pub(crate) use list::Line;
pub use origins::{OriginLine, SiteLine};
pub(crate) use purge::{Operation, Removed, Started};
pub(crate) use socket::UnixSocket;
pub(crate) use stats::resident_bytes;
pub use stats::{Durations, Memory, Stats, Store};
pub(crate) use stores::{Changed, StoreLine};
pub use why::{Stored as WhyStored, Why as WhyAnswer};

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_base::{Clock, MonoTime};
use foxy_proxy::rules::rewrite::Rewriting;
use foxy_proxy::{Origins, Proxy};
use foxy_store::Engine;
use foxy_tls::ServerTls;
use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use self::guard::Way;
use self::names::Names;
use self::open::Open;
use crate::StartError;
use crate::access_log::LogHandle;
use crate::config::Config;
use crate::run::{Addresses, ReloadWish, StoreKeeper};

/// Open connections; beyond this idle ones are closed.
const CONNECTIONS: usize = 64;
/// Open connections if all are busy; more wait.
const CONNECTIONS_MAX: usize = 256;

/// The state that the answers are made of.
#[derive(Debug)]
pub(crate) struct State {
    proxy: Arc<Proxy>,
    engine: Arc<Engine>,
    stores: Arc<StoreKeeper>,
    clock: Arc<dyn Clock>,
    log: Option<LogHandle>,
    started: MonoTime,
    memory: u64,
    hosts: Vec<String>,
    names: Names,
    keys: Keys,
    addresses: Addresses,
    certificates: Vec<ServerTls>,
    reloads: mpsc::Sender<ReloadWish>,
    /// The origins of sites.
    origins: Vec<Origins>,
}

impl State {
    pub(crate) fn new(
        proxy: &Arc<Proxy>,
        (engine, stores): (&Arc<Engine>, &Arc<StoreKeeper>),
        clock: &Arc<dyn Clock>,
        log: Option<LogHandle>,
        (config, addresses, origins): (&Config, &Addresses, Vec<Origins>),
        (keys, started): (Keys, MonoTime),
        reloads: mpsc::Sender<ReloadWish>,
    ) -> Self {
        let sites = addresses.sites.iter().map(|(name, _)| name.clone());
        let forward = (!addresses.forward.is_empty()).then(|| "forward".to_owned());
        let mut hosts = config.admin_hosts.clone();
        hosts.extend(addresses.admin.map(|address| address.ip().to_string()));
        Self {
            proxy: Arc::clone(proxy),
            engine: Arc::clone(engine),
            stores: Arc::clone(stores),
            clock: Arc::clone(clock),
            log,
            started,
            memory: config.memory,
            hosts,
            names: Names {
                partitions: forward.into_iter().chain(sites).collect(),
                origins: own_names(config),
                secure: secure(config),
                shared: shared(config),
                rewriting: rewriting(config),
            },
            keys,
            addresses: addresses.clone(),
            certificates: config.certificates(),
            reloads,
            origins,
        }
    }
}

impl State {
    /// Forward proxy and sites.
    fn sites(&self) -> usize {
        self.names.partitions.len()
    }
}

fn own_names(config: &Config) -> Vec<(String, String)> {
    let own = config.sites.iter().filter(|site| !site.preserve_host);
    own.map(|site| (site.name.clone(), site.origin.authority()))
        .collect()
}

fn secure(config: &Config) -> Vec<String> {
    let secure = config.sites.iter().filter(|site| site.origin.secure);
    secure.map(|site| site.name.clone()).collect()
}

fn rewriting(config: &Config) -> Vec<(String, Arc<Rewriting>)> {
    let sites = config.sites.iter();
    let own = sites.filter_map(|site| Some((site.name.clone(), site.rewriting.clone()?)));
    own.collect()
}

fn shared(config: &Config) -> Vec<names::Shared> {
    let listeners = config.shared_listeners().into_iter();
    let several = listeners.filter(|listener| !listener.is_one());
    several
        .filter_map(|listener| {
            let names = listener.sites.iter().map(|site| site.name.clone());
            Some((listener.table().ok()?, names.collect()))
        })
        .collect()
}

/// Binds the admin address.
pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    let fail = |source| StartError::listen(address, "admin", source);
    let socket = TcpListener::bind(address).map_err(fail)?;
    socket.set_nonblocking(true).map_err(fail)?;
    Ok(socket)
}

/// The state of now: a reload replaces it. Each request is answered from one of them.
type Current = Arc<RwLock<Arc<State>>>;

/// The running listener.
#[derive(Debug)]
pub(crate) struct AdminThread {
    current: Current,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl AdminThread {
    /// Starts answering on the address, the unix socket, or both.
    pub(crate) fn start(
        (socket, unix): (Option<TcpListener>, Option<UnixSocket>),
        state: State,
    ) -> Result<Self, StartError> {
        let fail = |source| StartError::Thread {
            what: "admin",
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(fail)?;
        let (stop, stopped) = oneshot::channel();
        let current = Current::new(RwLock::new(Arc::new(state)));
        let served = Arc::clone(&current);
        let thread = std::thread::Builder::new()
            .name("foxy-admin".to_owned())
            .spawn(move || runtime.block_on(serve((socket, unix), served, stopped)))
            .map_err(fail)?;
        Ok(Self {
            current,
            stop,
            thread,
        })
    }

    /// Later requests are answered from this.
    pub(crate) fn renew(&self, state: State) {
        *self.current.write() = Arc::new(state);
    }

    /// Ends it; connections are cut off.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

async fn serve(
    (socket, unix): (Option<TcpListener>, Option<UnixSocket>),
    current: Current,
    stopped: oneshot::Receiver<()>,
) {
    let network = socket.map(tokio::net::TcpListener::from_std).transpose();
    let local = unix
        .as_ref()
        .map(|unix| tokio::net::UnixListener::from_std(unix.listener()?));
    let (network, local) = match (network, local.transpose()) {
        (Ok(network), Ok(local)) => (network, local),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "the admin listener could not start");
            return;
        }
    };
    tokio::select! {
        () = accept_all((network, local), &current) => {}
        _ = stopped => {}
    }
}

/// The next connection of a listener; none ever without one.
async fn next<S, F: Future<Output = std::io::Result<S>>>(
    accepting: Option<F>,
) -> std::io::Result<S> {
    match accepting {
        Some(accepting) => accepting.await,
        None => std::future::pending().await,
    }
}

async fn accept_all(
    (network, local): (
        Option<tokio::net::TcpListener>,
        Option<tokio::net::UnixListener>,
    ),
    current: &Current,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let open = Open::new(CONNECTIONS);
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let around = (current, &open, permit);
        let begun = tokio::select! {
            accepted = next(network.as_ref().map(tokio::net::TcpListener::accept)) => accepted
                .map(|(stream, _)| begin(stream, Way::Network, around)),
            accepted = next(local.as_ref().map(tokio::net::UnixListener::accept)) => accepted
                .map(|(stream, _)| begin(stream, Way::Socket, around)),
        };
        if begun.is_err() {
            // Out of descriptors, usually: a pause, then on.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Serves a connection in a task of its own.
fn begin<S>(stream: S, way: Way, (current, open, permit): (&Current, &Open, OwnedSemaphorePermit))
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (state, place) = (Arc::clone(&current.read()), open.place());
    let stage = place.stage();
    let task = tokio::spawn(async move {
        connection::serve(stream, way, &state, &stage).await;
        drop(permit);
    });
    open.enter(place, task.abort_handle());
}
