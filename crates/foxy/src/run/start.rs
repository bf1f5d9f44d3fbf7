//! The steps of the start, in order. After an error no part of Foxy is left running.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::TcpListener;
use std::sync::Arc;

use foxy_base::{Budget, Clock, SystemClock, hash64};
use foxy_disk::Disk;
use foxy_proxy::{Proxy, Resolver, SystemResolver};
use foxy_store::{Engine, EngineConfig, StoreOptions};
use foxy_tls::OriginTls;

use super::certificates::Certificates;
use super::keeper::StoreKeeper;
use super::local::AddressRefresh;
use super::reloadable::{Permanent, Reloadable};
use super::resident::Memory;
use super::running::Running;
use super::workers::{Bound, spawn};
use super::{Passed, StartError, preflight, resident, sweeper, token};
use crate::access_log::Log;
use crate::admin::{self, UnixSocket};
use crate::config::Config;

/// The parts that the caller of the start provides, so that tests can control them.
#[derive(Debug)]
pub struct Parts {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The resolver of names; `None`: a resolver with the configured settings.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Disks that replace the configured stores.
    pub disks: Option<Vec<Arc<dyn Disk>>>,
    /// Listening sockets that are already open. The other addresses are bound at the start.
    pub passed: Passed,
    /// True if the start fails when one of the configured stores cannot be used. Otherwise Foxy runs without
    /// that store.
    pub strict: bool,
    /// Options for every store.
    pub store_options: StoreOptions,
    /// True if the process contains only one Foxy. Then the memory of the process is compared with the
    /// budget.
    pub alone: bool,
    /// A cache that takes the place of the stores.
    #[cfg(feature = "stand-in")]
    pub stand_in: Option<Arc<dyn foxy_proxy::StandIn>>,
}

impl Parts {
    /// Returns parts with the system's clock, the configured resolver, and a random seed.
    #[must_use]
    pub fn system() -> Self {
        // The standard library takes the keys of its hash maps from the system's source of randomness, so
        // this hash is a random number.
        let seed = RandomState::new().build_hasher().finish();
        Self {
            clock: Arc::new(SystemClock::default()),
            resolver: None,
            seed,
            disks: None,
            passed: Passed::default(),
            strict: false,
            store_options: StoreOptions::default(),
            alone: true,
            #[cfg(feature = "stand-in")]
            stand_in: None,
        }
    }
}

/// Starts Foxy. Blocks until it serves requests.
///
/// # Errors
/// Returns the reason that prevents the start, with the way to correct it. No part of Foxy is left running.
pub fn start(config: &Config, parts: Parts) -> Result<Running, StartError> {
    preflight::refuse(config, &parts)?;
    let memory = Memory::new(config.memory);
    let engine = engine(config, &parts);
    let stores = Arc::new(StoreKeeper::new(&engine, parts.store_options.clone()));
    stores.open_all(parts.disks, config, parts.strict)?;
    let keys = token::keys(config)?;
    let origins = config.origins();
    let mut passed = parts.passed;
    let bound = Bound::bind_all(config, &origins, &mut passed)?;
    let admin_socket = admin_socket(config, &mut passed)?;
    passed.expect_none()?;
    let unix_socket = admin_unix_socket(config)?;
    let log = Log::start(&config.log);
    let log = log.map_err(|source| StartError::access_log(&config.log.access, source))?;

    let resolver = parts
        .resolver
        .unwrap_or_else(|| Arc::new(SystemResolver::new(&config.proxy.upstream.name_servers)));
    let admin_address = admin_socket.as_ref().and_then(|s| s.local_addr().ok());
    let permanent = Permanent {
        seed: parts.seed,
        memory: memory.clone(),
        admin: admin_address,
        clock: Arc::clone(&parts.clock),
        started: parts.clock.mono(),
    };
    let proxy_config = permanent.proxy_config(config, &bound, &keys);
    read_trust(config, &proxy_config.upstream.tls)?;
    let addresses = AddressRefresh::new(&proxy_config.access.local_addresses);
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
    let reloadable = Reloadable::new(permanent, (config, origins, keys), proxy, &bound);
    let certificates = Certificates::new(reloadable.certificates());
    let admin = match (admin_socket, unix_socket) {
        (None, None) => None,
        sockets => {
            let state = reloadable.admin_state((&engine, &stores, &log));
            Some(admin::AdminThread::start(sockets, state)?)
        }
    };
    let mut running = Running::new(reloadable, engine, stores, admin, log);
    let (threads, renewers) = spawn(
        &running.proxy(),
        bound.per_worker,
        running.log_settings(),
        config.pin_workers,
    )?;
    running.set_workers(threads, renewers);
    let outside = (addresses, certificates);
    let sweeper = sweeper::start(running.engine(), &parts.clock, config.scrub, outside)?;
    running.add_background(sweeper);
    if parts.alone {
        let resident = resident::start(memory, &running.proxy(), running.engine())?;
        running.add_background(resident);
    }
    Ok(running)
}

/// Reads the certificate authorities that the system trusts, for the forward proxy and for sites. The reading
/// takes too long for a network thread, so another thread does it.
pub(super) fn read_trust(config: &Config, forward: &OriginTls) -> Result<(), StartError> {
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

fn engine(config: &Config, parts: &Parts) -> Arc<Engine> {
    let settings = EngineConfig {
        admission: config.admission,
        index_secret: hash64(parts.seed, b"index"),
        key_seed: hash64(parts.seed, b"keys").max(1),
        ..EngineConfig::new(Budget::of(config.memory).engine, parts.seed)
    };
    Engine::new(settings, Arc::clone(&parts.clock))
}

/// Returns the socket of the admin address. If no socket was passed for this address, binds a new socket.
fn admin_socket(config: &Config, passed: &mut Passed) -> Result<Option<TcpListener>, StartError> {
    let Some(address) = config.admin else {
        return Ok(None);
    };
    let taken = passed.take(address, 1);
    let taken = taken.map_err(|source| StartError::listen(address, "admin", source))?;
    match taken.and_then(|mut sockets| sockets.pop()) {
        Some(socket) => Ok(Some(socket)),
        None => admin::bind(address).map(Some),
    }
}

fn admin_unix_socket(config: &Config) -> Result<Option<UnixSocket>, StartError> {
    let Some(wanted) = &config.admin_socket else {
        return Ok(None);
    };
    let bound = UnixSocket::bind(wanted).map_err(|source| StartError::AdminSocket {
        path: wanted.path.display().to_string(),
        source,
    });
    bound.map(Some)
}
