//! State that remains after a reload.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};

use foxy_base::Clock;
use foxy_store::Engine;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::access::client_connections::PerClientConnections;
use crate::access::purge_rate::PurgeRate;
use crate::cache::remembered::Remembered;
use crate::cache::serve::coded::Making;
use crate::cache::variants::Variants;
use crate::fill::FillMap;
use crate::fill::fetch::FillHead;
use crate::mirrors::{Expected, Tokens};
use crate::origin::dns::DnsCache;
use crate::origin::limit::OriginLimit;
use crate::origin::screened::LONG_AT_ONCE;
use crate::origin::unreachable::Unreachable;
use crate::state::counters::SiteCounters;
use crate::state::ledger::Ledger;
use crate::state::recent::RecentTable;
use crate::{Config, Counters, MirrorSite, Resolver};

/// The state of a proxy that does not depend on its settings, so that a reload keeps it.
#[derive(Debug)]
pub struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) dns: DnsCache,
    pub(crate) connections: AtomicUsize,
    pub(crate) ledger: Arc<Ledger>,
    /// The time in nanoseconds at which memory was last used up, according to the ledger. 0 if memory was
    /// never used up.
    pub(crate) spent_at: AtomicU64,
    /// Number of connections of each client.
    pub(crate) client_connections: Arc<PerClientConnections>,
    /// Keys whose answers may be sent only to the request that fetched them. Requests for these keys do not
    /// wait for each other.
    pub(crate) unshared: Remembered,
    /// Keys for which Foxy requested more than the client's range, and got an answer that could not be stored
    /// as a part of a sparse object (a large object of which only some fragments are stored). For these keys,
    /// Foxy later requests only the client's range.
    pub(crate) undivided: Remembered,
    /// Limits the number of fetches that wait for an answer of one origin.
    pub(crate) origins: OriginLimit,
    /// Destinations that could not be reached recently.
    pub(crate) unreachable: Unreachable,
    /// Keys of large objects for which the origin sent unusable bytes when Foxy last fetched a missing part.
    pub(crate) broken: Remembered,
    /// Compressed forms of stored answers that Foxy is making now.
    pub(crate) making: Making,
    /// Results of recent requests, for `foxy why`.
    pub(crate) recent: RecentTable,
    /// The known variants of answers, by primary key.
    pub(crate) variants: Variants,
    /// Digests that documents of mirrors contain for artefacts.
    pub(crate) expected: Expected,
    /// Tokens for registries of container images.
    pub(crate) tokens: Tokens,
    /// Counts of the requests of each mirror, by name.
    mirrors: Mutex<HashMap<String, SiteCounters>>,
    /// Permits to read long documents of mirrors from which versions are removed. They limit the number of
    /// such documents in memory.
    pub(crate) long_documents: Arc<Semaphore>,
    /// Limits of the rate of purges on listeners.
    pub(crate) purge_rate: PurgeRate,
    /// Number of the newest purge in the store at the start of this process.
    pub(crate) purges_before: u64,
    /// A cache that replaces the store in a measurement, if [`set_stand_in`](crate::Proxy::set_stand_in) was
    /// called.
    #[cfg(feature = "stand-in")]
    pub(crate) stand_in: std::sync::OnceLock<Arc<dyn crate::StandIn>>,
    pub(crate) counters: Vec<Counters>,
    pub(crate) shutdown: watch::Sender<bool>,
    /// The map of the fetches that began under the present rules. After a reload, the maps of fetches that
    /// began under earlier rules are also here, as long as these fetches run.
    fills: Mutex<Vec<Weak<FillMap<FillHead>>>>,
}

impl Shared {
    pub(crate) fn new(
        config: &Config,
        engine: Arc<Engine>,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
        workers: usize,
    ) -> Self {
        Self {
            ledger: Ledger::new(config.limits.memory, config.fill.memory),
            spent_at: AtomicU64::new(0),
            client_connections: PerClientConnections::new(config.limits.client_connections),
            unshared: Remembered::new(),
            undivided: Remembered::new(),
            origins: OriginLimit::new(
                config.upstream.origin_concurrency,
                config.upstream.origin_queue,
            ),
            unreachable: Unreachable::default(),
            broken: Remembered::new(),
            purge_rate: PurgeRate::new(config.access.purge_rate, clock.mono()),
            purges_before: engine.purges().purge_sequence(),
            dns: DnsCache::new(config.upstream.dns_names),
            engine,
            clock,
            resolver,
            connections: AtomicUsize::new(0),
            making: Making::new(),
            recent: RecentTable::default(),
            variants: Variants::default(),
            expected: Expected::default(),
            tokens: Tokens::default(),
            mirrors: Mutex::default(),
            long_documents: Arc::new(Semaphore::new(LONG_AT_ONCE)),
            #[cfg(feature = "stand-in")]
            stand_in: std::sync::OnceLock::new(),
            counters: (0..workers.max(1)).map(|_| Counters::default()).collect(),
            shutdown: watch::Sender::new(false),
            fills: Mutex::default(),
        }
    }

    /// Applies the limits of a new configuration.
    pub(crate) fn renew_limits(&self, config: &Config) {
        self.ledger
            .set_limits(config.limits.memory, config.fill.memory);
        self.client_connections
            .set_most(config.limits.client_connections);
        let upstream = &config.upstream;
        self.origins
            .set(upstream.origin_concurrency, upstream.origin_queue);
        self.dns.set_max(upstream.dns_names);
        self.purge_rate.set(config.access.purge_rate);
    }

    /// Returns the counts of the requests of each mirror, in the order of the configuration.
    pub(crate) fn mirror_counters(&self, config: &Config) -> Vec<SiteCounters> {
        let mut known = self.mirrors.lock();
        let own = |site: &MirrorSite| {
            let counters = known.entry(site.mirror.name.clone());
            let new = || SiteCounters::new(self.counters.len());
            counters.or_insert_with(new).clone()
        };
        config.mirror_sites().iter().map(own).collect()
    }

    /// Creates a map for fetches under new rules.
    pub(crate) fn new_fills(&self) -> Arc<FillMap<FillHead>> {
        let new = Arc::new(FillMap::new());
        let mut all = self.fills.lock();
        all.retain(|fills| fills.strong_count() > 0);
        all.push(Arc::downgrade(&new));
        new
    }

    /// Returns all maps in use. A purge concerns the fetches of each map.
    pub(crate) fn all_fills(&self) -> Vec<Arc<FillMap<FillHead>>> {
        self.fills.lock().iter().filter_map(Weak::upgrade).collect()
    }
}
