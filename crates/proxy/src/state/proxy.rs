//! State that all workers share.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use foxy_base::{Clock, MonoTime, hash64, rule};
use foxy_http_rules::RuleId;
use foxy_store::Engine;
use tokio::sync::watch;

use crate::fill::FillMap;
use crate::fill::fetch::FillHead;
use crate::state::counters::SiteCounters;
use crate::state::ledger::{Pressure, Use};
use crate::state::shared::Shared;
use crate::{Config, Counters, Outcome, Resolver, SiteTotals, Totals};

/// Time for which `memory_is_short` remains true after memory was used up. It is long enough for operators to
/// notice the shortage.
const SHORT: Duration = Duration::from_secs(10);

/// The proxy: the state that its workers share. Create one proxy and pass it to every
/// [`Worker`](crate::Worker). After a reload there is a new proxy, with the same [`Shared`] part.
#[derive(Debug)]
pub struct Proxy {
    pub(crate) config: Config,
    /// Fetches that run under the settings of this proxy.
    pub(crate) fills: Arc<FillMap<FillHead>>,
    /// Foxy's name in the Via field.
    pub(crate) instance: String,
    /// The line `Via` of answers.
    pub(crate) via_line: Vec<u8>,
    /// The beginning of the `Cache-Status` line of hits. The remaining lifetime (`ttl`) follows.
    pub(crate) hit_line: Vec<u8>,
    /// Counts of the requests of each mirror.
    mirrors: Vec<SiteCounters>,
    shared: Arc<Shared>,
}

impl Deref for Proxy {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Proxy {
    /// Creates a proxy for `workers` workers (at least one).
    #[must_use]
    pub fn new(
        config: Config,
        engine: Arc<Engine>,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolver>,
        workers: usize,
    ) -> Arc<Self> {
        let shared = Shared::new(&config, engine, clock, resolver, workers);
        let fills = shared.new_fills();
        Self::with(config, Arc::new(shared), fills)
    }

    /// Returns a proxy with new settings and the same shared state. The new limits of memory, connections,
    /// origins, names and purges apply to all requests from now on, including requests of the old proxy. Name
    /// servers stay the same.
    ///
    /// `alike` is true if the new settings for keys, sites, access and sharing are equal to the old settings.
    /// In this case, requests of the new proxy join running fetches, and the results of these fetches are
    /// stored. Otherwise requests of the new proxy do not join running fetches, and the results are not
    /// stored.
    #[must_use]
    pub fn renewed(&self, config: Config, alike: bool) -> Arc<Self> {
        self.shared.renew_limits(&config);
        let joined = rule!(
            "reload: fetches under other rules are not joined",
            alike,
            true
        );
        let fills = match joined {
            true => Arc::clone(&self.fills),
            false => {
                let fills = self.shared.new_fills();
                self.fills.retire();
                fills
            }
        };
        Self::with(config, Arc::clone(&self.shared), fills)
    }

    fn with(config: Config, shared: Arc<Shared>, fills: Arc<FillMap<FillHead>>) -> Arc<Self> {
        let instance = instance(&config, &*shared.clock);
        let mut via_line = Vec::new();
        crate::http::via::via(&mut via_line, foxy_http1::Version::Http11, &instance);
        Arc::new(Self {
            via_line,
            hit_line: crate::http::reply::hit_line(&config.headers.name),
            instance,
            fills,
            mirrors: shared.mirror_counters(&config),
            config,
            shared,
        })
    }

    /// Returns the counters of all workers, summed now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for counters in &self.counters {
            totals.add(counters);
        }
        totals
    }

    /// Returns the name and the request counts of each mirror, in the order of the configuration.
    pub fn mirror_requests(&self) -> impl Iterator<Item = (&str, SiteTotals)> {
        let counted = self.config.mirror_sites().iter().zip(&self.mirrors);
        counted.map(|(site, counters)| (&site.mirror.name[..], counters.totals()))
    }

    /// Counts a finished request of a mirror.
    pub(crate) fn mirror_finished(&self, name: &str, worker: usize, result: (Outcome, u16)) {
        let mut sites = self.config.mirror_sites().iter();
        let number = sites.position(|site| site.mirror.name == name);
        if let Some(counters) = number.and_then(|number| self.mirrors.get(number)) {
            counters.finished(worker, result.0, result.1);
        }
    }

    /// Returns the number of workers, at least one.
    pub(crate) fn workers(&self) -> usize {
        self.counters.len()
    }

    /// Returns the number of client connections open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns the bytes that are entered in the ledger for running fetches now. The number can exceed
    /// [`FillConfig::memory`](crate::FillConfig::memory) for two reasons: every fetch gets at least the
    /// smallest window (buffer for its readers), and the limit may have been lowered while fetches run.
    #[must_use]
    pub fn fill_bytes(&self) -> usize {
        self.ledger.used(Use::Fills) + self.ledger.used(Use::SharedFills)
    }

    /// Returns the bytes that requests use now for one purpose.
    #[must_use]
    pub fn memory_used(&self, of: Use) -> usize {
        self.ledger.used(of)
    }

    /// Sets the number of bytes that requests really use now. This number may differ from the sum of
    /// [`memory_used`](Self::memory_used). `roomy` is true if the whole process uses so little memory that no
    /// connection is closed and no request is refused because of memory.
    pub fn observe_memory(&self, bytes: usize, roomy: bool) {
        self.ledger.observe(bytes, roomy);
        if self.ledger.pressure() == Pressure::Spent {
            let now = self.clock.mono().nanos().max(1);
            self.spent_at.store(now, Ordering::Relaxed);
        }
    }

    /// True if a call of [`observe_memory`](Self::observe_memory) in the last ten seconds found the memory
    /// for requests used up.
    #[must_use]
    pub fn memory_is_short(&self) -> bool {
        let at = self.spent_at.load(Ordering::Relaxed);
        at != 0 && self.clock.mono().since(MonoTime(at)) < SHORT
    }

    /// Returns the excess: the number of bytes by which the last value of
    /// [`observe_memory`](Self::observe_memory) exceeded the sum of [`memory_used`](Self::memory_used) for
    /// all purposes.
    #[must_use]
    pub fn memory_unentered(&self) -> usize {
        self.ledger.excess()
    }

    /// Returns the number of fetches that run now, including fetches that other requests cannot join.
    #[must_use]
    pub fn fills(&self) -> usize {
        let fills = self.all_fills();
        fills.iter().map(|fills| fills.running().0).sum()
    }

    /// Returns the number of requests that running fetches answer now.
    #[must_use]
    pub fn followers(&self) -> usize {
        let fills = self.all_fills();
        fills.iter().map(|fills| fills.running().1).sum()
    }

    /// Notifies all workers that they must stop accepting, finish the work in progress, and end. This
    /// function may be called from any thread, any number of times. [`Worker::run`](crate::Worker::run)
    /// returns when its worker has ended, at the latest after [`Timeouts::drain`](crate::Timeouts::drain).
    pub fn shutdown(&self) {
        self.shutdown.send_replace(true);
    }

    /// Returns true if [`shutdown`](Self::shutdown) was called.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        *self.shutdown.borrow()
    }

    /// Returns the caching rules for requests to which the operator's rule `rule` applies.
    pub(crate) fn rules(&self, rule: RuleId) -> &foxy_http_rules::Config {
        let own = self.config.user_rules.config(rule);
        own.unwrap_or(&self.config.rules)
    }

    /// Returns the name of the operator's rule `rule`.
    pub(crate) fn rule_name(&self, rule: RuleId) -> Option<&str> {
        self.config
            .user_rules
            .get(rule)
            .map(|rule| rule.name.as_str())
    }

    /// Removes the objects stored under a primary key (the key of a URL without a variant). The results of
    /// fetches that run under this key are not stored, and later requests do not join these fetches.
    pub(crate) fn forget(&self, base: foxy_base::KeyHash, key: &[u8]) {
        self.invalidate(base);
        self.engine.supersede(base, key);
    }

    /// Invalidates the fetches under this primary key. These include fetches that began before a reload. The
    /// results of invalidated fetches are not stored, and later requests do not join them.
    pub(crate) fn invalidate(&self, base: foxy_base::KeyHash) {
        for fills in self.all_fills() {
            fills.invalidate(base);
        }
    }

    pub(crate) fn counters(&self, worker: usize) -> &Counters {
        &self.counters[worker % self.counters.len()]
    }

    pub(crate) fn shutdown_signal(&self) -> watch::Receiver<bool> {
        self.shutdown.subscribe()
    }
}

/// Returns the name in the field `Via`. It consists of the configured name and of a part that no other
/// instance has.
fn instance(config: &Config, clock: &dyn Clock) -> String {
    // A name in Via must be a token (RFC 9110 section 7.6.3), but the configured name may be any text.
    let token = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' => c,
        _ => '-',
    };
    let name = config.headers.name.chars().map(token);
    let own = if config.headers.instance.is_empty() {
        let number = hash64(config.seed, &clock.wall().0.to_le_bytes());
        let mixed = hash64(number, &std::process::id().to_le_bytes());
        format!("{:08x}", mixed as u32)
    } else {
        config.headers.instance.clone()
    };
    name.chain(['-']).chain(own.chars().map(token)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::{ManualClock, WallTime};

    #[test]
    fn the_name_in_via_is_readable_and_ones_own() {
        let clock = ManualClock::new(WallTime::from_secs(1));
        let mut config = Config::default();
        let drawn = instance(&config, &clock);
        let number = drawn.strip_prefix("foxy-").unwrap();
        assert!(number.len() == 8 && number.bytes().all(|b| b.is_ascii_hexdigit()));
        config.seed = 1;
        assert_ne!(instance(&config, &clock), drawn);
        config.headers.instance = "3fa9c012".into();
        assert_eq!(instance(&config, &clock), "foxy-3fa9c012");
        config.headers.name = "edge (north)".into();
        assert_eq!(instance(&config, &clock), "edge--north--3fa9c012");
    }
}
