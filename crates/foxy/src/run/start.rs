//! The start: everything in its order, or an error and nothing.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Budget, Clock, SystemClock, hash64};
use foxy_disk::Disk;
use foxy_proxy::{Proxy, Resolver, SystemResolver};
use foxy_store::{Engine, EngineConfig, StoreOptions};
use foxy_tls::OriginTls;

use super::certificates::Certificates;
use super::keeper::StoreKeeper;
use super::limits;
use super::local::Renewal;
use super::running::{Addresses, Running};
use super::workers::{Bound, spawn};
use super::{StartError, resident, sweeper, token};
use crate::access_log;
use crate::admin;
use crate::config::{Config, LogTarget};

/// What Foxy takes from outside, so that tests can hold it.
#[derive(Debug)]
pub struct Parts {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names to addresses; `None`: as the configuration says.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// Everything random follows from it.
    pub seed: u64,
    /// Disks to use in place of the configured stores.
    pub disks: Option<Vec<Arc<dyn Disk>>>,
    /// Fail if one of the configured stores cannot be used, in place of serving without it.
    pub strict: bool,
    /// Choices for every store.
    pub store_options: StoreOptions,
    /// Compare the memory of the process with the budget: the process is one Foxy alone.
    pub alone: bool,
    /// A cache in place of the stores.
    #[cfg(feature = "stand-in")]
    pub stand_in: Option<Arc<dyn foxy_proxy::StandIn>>,
}

impl Parts {
    /// The system's clock and name service, a random seed.
    #[must_use]
    pub fn system() -> Self {
        // The standard library keys its hash maps from the system's randomness.
        let seed = RandomState::new().build_hasher().finish();
        Self {
            clock: Arc::new(SystemClock::default()),
            resolver: None,
            seed,
            disks: None,
            strict: false,
            store_options: StoreOptions::default(),
            alone: true,
            #[cfg(feature = "stand-in")]
            stand_in: None,
        }
    }
}

/// How soon freed memory goes back to the system. At once where the budget is small: what the
/// allocator keeps for later counts.
fn give_back(memory: u64) -> Duration {
    match memory {
        0..=0x1000_0000 => Duration::ZERO,
        _ => Duration::from_millis(50),
    }
}

/// Starts Foxy. Blocks until it serves.
///
/// # Errors
/// What prevents the start, with what to do about it; nothing is left running.
pub fn start(config: &Config, parts: Parts) -> Result<Running, StartError> {
    let budget = Budget::of(config.memory);
    foxy_disk::give_back_after(give_back(config.memory));
    let engine = engine(config, budget, &parts);
    let stores = Arc::new(StoreKeeper::new(&engine, parts.store_options.clone()));
    stores.open_all(parts.disks, config, parts.strict)?;
    let token = token::of(config)?;
    let bound = Bound::bind_all(config)?;
    let admin_socket = config.admin.map(admin::bind).transpose()?;
    let log = access_log::start(&config.log.access).map_err(|source| StartError::AccessLog {
        target: log_path(&config.log.access),
        source,
    })?;
    let handle = log.as_ref().map(access_log::LogThread::handle);

    let addresses = addresses(&bound, admin_socket.as_ref());
    let resolver = parts
        .resolver
        .unwrap_or_else(|| Arc::new(SystemResolver::new(&config.proxy.upstream.name_servers)));
    let mut proxy_config = proxy_config(config, &bound, addresses.admin, budget, parts.seed);
    proxy_config.access.token = token.clone();
    read_trust(config, &proxy_config.upstream.tls)?;
    let outside = outside(config, &proxy_config, &*parts.clock);
    let proxy = Proxy::new(
        proxy_config,
        Arc::clone(&engine),
        Arc::clone(&parts.clock),
        resolver,
        config.workers,
    );
    #[cfg(feature = "stand-in")]
    if let Some(stand_in) = parts.stand_in {
        proxy.set_stand_in(stand_in);
    }
    let admin = match admin_socket {
        Some(socket) => {
            let state = admin::State::new(
                &proxy,
                (&engine, &stores),
                &parts.clock,
                handle.clone(),
                (config, &addresses),
                token,
            );
            Some(admin::AdminThread::start(socket, state)?)
        }
        None => None,
    };
    let mut running = Running::new(proxy, engine, stores, admin, log, addresses);
    let threads = spawn(
        running.proxy(),
        bound.per_worker,
        handle.as_ref(),
        (config.log.format, config.log.query_strings),
        config.pin_workers,
    )?;
    running.set_workers(threads);
    let sweeper = sweeper::start(running.engine(), &parts.clock, config.scrub, outside)?;
    running.add_background(sweeper);
    if parts.alone {
        let resident = resident::start(config.memory, running.proxy(), running.engine())?;
        running.add_background(resident);
    }
    Ok(running)
}

/// Addresses of the machine and certificate files: they may change while Foxy runs.
fn outside(
    config: &Config,
    proxy: &foxy_proxy::Config,
    clock: &dyn Clock,
) -> (Renewal, Certificates) {
    let addresses = Renewal::new(&proxy.access.local_addresses);
    (addresses, Certificates::new(config.certificates(), clock))
}

/// Reads the authorities that the system trusts, for the forward proxy and for sites: this takes
/// longer than a network thread may wait.
fn read_trust(config: &Config, forward: &OriginTls) -> Result<(), StartError> {
    let forward = (!config.listen.is_empty()).then_some(forward);
    let sites = config
        .sites
        .iter()
        .filter_map(|site| site.origin_tls.as_ref());
    let all: Vec<OriginTls> = forward.into_iter().chain(sites).cloned().collect();
    if all.is_empty() {
        return Ok(());
    }
    let thread = std::thread::Builder::new().name("foxy-trust".to_owned());
    let started = thread.spawn(move || all.iter().for_each(OriginTls::prepare));
    started.map(drop).map_err(|source| StartError::Thread {
        what: "trust",
        source,
    })
}

fn engine(config: &Config, budget: Budget, parts: &Parts) -> Arc<Engine> {
    let settings = EngineConfig {
        admission: config.admission,
        index_secret: hash64(parts.seed, b"index"),
        ..EngineConfig::new(budget.engine, parts.seed)
    };
    Engine::new(settings, Arc::clone(&parts.clock))
}

fn addresses(bound: &Bound, admin: Option<&TcpListener>) -> Addresses {
    Addresses {
        forward: bound.forward.clone(),
        sites: bound.sites.clone(),
        admin: admin.and_then(|socket| socket.local_addr().ok()),
    }
}

fn log_path(target: &LogTarget) -> String {
    match target {
        LogTarget::File(path) => path.display().to_string(),
        LogTarget::Stdout => "stdout".to_owned(),
        LogTarget::Off => "off".to_owned(),
    }
}

/// The proxy's configuration, completed by what is known only now.
fn proxy_config(
    config: &Config,
    bound: &Bound,
    admin: Option<SocketAddr>,
    budget: Budget,
    seed: u64,
) -> foxy_proxy::Config {
    let mut proxy = config.proxy.clone();
    let requests = usize::try_from(budget.requests).unwrap_or(usize::MAX);
    proxy.limits.memory = requests;
    proxy.fill.memory = requests / 2;
    limits::fit_to_open_files(&mut proxy, config.workers);
    proxy.access.loopback_only = bound.all().all(|address| address.ip().is_loopback());
    proxy.access.own = bound.all().chain(admin).collect();
    // Distinguishes this Foxy from another of the same name in a chain of proxies.
    proxy.headers.instance = format!("{:08x}", hash64(seed, b"instance") as u32);
    proxy
}
