//! The statistics of a running Foxy as one tree, for `/stats`, `foxy stats` and the status page.

use std::collections::BTreeMap;

use foxy_proxy::{Event, Latency, Outcome, Proxy, Totals, Use};
use foxy_store::{Device, Health, OneStoreStats};
use serde::{Deserialize, Serialize};

use super::State;
use super::origins::{self, OriginLine, SiteLine};
use super::stores::duty_name;
use super::traffic::{Answers, Origins};
use crate::run::Absent;

/// Current statistics. The counts of requests, answers, events and log lines begin with 0 at the start of
/// Foxy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stats {
    /// Version of Foxy.
    pub version: String,
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// True if Foxy accepts requests.
    pub ready: bool,
    /// Addresses of the listeners.
    pub listen: Vec<String>,
    /// Number of finished requests.
    pub requests: u64,
    /// Share of hits among the requests that ended with a hit, a fetch or a bypass of the cache. Tunnels,
    /// failed requests and Foxy's own answers do not count. `None` before the first such request.
    pub hit_ratio: Option<f64>,
    /// Number of requests by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Durations of the requests that were hits.
    pub hits: Durations,
    /// Durations of all requests that are neither hits nor tunnels.
    pub misses: Durations,
    /// Answers to clients, by class of status, and the bytes of their bodies.
    #[serde(default)]
    pub answers: Answers,
    /// Answers, failures and response times of origins.
    #[serde(default)]
    pub origin: Origins,
    /// Number of open client connections.
    pub connections: usize,
    /// The counts of events, by the name of the event.
    pub events: BTreeMap<String, u64>,
    /// Memory use of the process and its parts.
    pub memory: Memory,
    /// The counts of the store engine, by name.
    pub engine: BTreeMap<String, u64>,
    /// Number of objects and fragments of objects on disk.
    pub disk_objects: u64,
    /// The state of each store.
    pub stores: Vec<Store>,
    /// Stores of the configuration that could not be opened, with the reasons.
    #[serde(default)]
    pub absent_stores: Vec<Absent>,
    /// The state of each origin of each site.
    #[serde(default)]
    pub origins: Vec<OriginLine>,
    /// The counts of requests of each site.
    #[serde(default)]
    pub sites: Vec<SiteLine>,
    /// Numbers of access log lines: lines that were written, and lines that were dropped.
    pub log_lines: Lines,
}

/// A distribution of durations in microseconds. A percentile is the upper bound of its bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Durations {
    /// Number of durations.
    pub count: u64,
    /// Mean of the durations.
    pub mean_us: f64,
    /// Upper bound for half of the durations.
    pub p50_us: u64,
    /// Upper bound for 90 % of the durations.
    pub p90_us: u64,
    /// Upper bound for 99 % of the durations.
    pub p99_us: u64,
}

/// Bytes of memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    /// The memory budget.
    pub budget_bytes: u64,
    /// True if the memory for requests is used up, or was used up in the last ten seconds.
    #[serde(default)]
    pub short: bool,
    /// Resident memory of the process as the system reports it; 0 if the system does not report it.
    pub resident_bytes: u64,
    /// Number of objects in the RAM tier (the objects that are kept in memory).
    pub ram_objects: u64,
    /// Bytes of the objects in the RAM tier.
    pub ram_bytes: u64,
    /// Bytes that the RAM tier may use now.
    pub ram_capacity_bytes: u64,
    /// Bytes of the index of objects on disk.
    pub index_bytes: u64,
    /// Bytes of objects that wait to be written.
    pub pending_bytes: u64,
    /// Bytes of memory that requests use, by purpose.
    #[serde(default)]
    pub requests: Vec<(String, u64)>,
}

/// One store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Store {
    /// The number of the store in this run.
    #[serde(default)]
    pub store: u16,
    /// The path of the store's file or device.
    pub disk: String,
    /// `serving`, `draining`, `drained` or `leaving`.
    #[serde(default)]
    pub duty: String,
    /// Percentage of the store that a drain has not processed yet. A drain moves the used objects to other
    /// stores.
    #[serde(default)]
    pub left_percent: f64,
    /// `good`, `slow`, `read-only` or `offline`.
    pub health: String,
    /// True if the last write failed because the file system of the store is full, or because a quota is used
    /// up.
    #[serde(default)]
    pub full: bool,
    /// The last error or behaviour of the device that changed the store's state.
    #[serde(default)]
    pub reason: Option<String>,
    /// The kind of the disk, measured by its reads: `unknown`, `fast`, `even` or `rotating`.
    #[serde(default)]
    pub device: String,
    /// True if waiting reads of the store are sent in the order of their positions on the disk.
    #[serde(default)]
    pub reads_sorted: bool,
    /// Number of segments that are not used because reads of them failed.
    #[serde(default)]
    pub quarantined_segments: u32,
    /// True while the index entries of older segments are still being loaded after the store was opened.
    pub loading: bool,
    /// Bytes of all segments of the store. The segments contain the stored objects.
    pub capacity_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Expected time in seconds for which an object stays stored at the average rate of writing. `None` as
    /// long as the store has not begun to reuse its segments.
    pub residency_seconds: Option<f64>,
    /// Counts of the store, by name.
    pub counts: BTreeMap<String, u64>,
}

/// The numbers of lines of the access log.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Lines {
    /// Number of lines that were written.
    pub written: u64,
    /// Number of lines that were dropped because they could not be written in time, or at all.
    pub dropped: u64,
}

impl Stats {
    pub(super) fn of(state: &State) -> Self {
        let totals = state.proxy.totals();
        let engine = state.engine.stats();
        let named = |pairs: Vec<(&'static str, u64)>| {
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()
        };
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: state.clock.mono().since(state.started).as_secs_f64(),
            ready: !state.proxy.is_shutting_down(),
            listen: listen(state),
            requests: totals.requests(),
            hit_ratio: hit_ratio(&totals),
            outcomes: Outcome::ALL
                .iter()
                .map(|o| (o.as_str().to_owned(), totals.outcome(*o)))
                .collect(),
            hits: durations(&totals.hits),
            misses: durations(&totals.misses),
            answers: Answers::of(&totals),
            origin: Origins::of(&totals.origin),
            connections: state.proxy.connections(),
            events: Event::ALL
                .iter()
                .map(|e| (e.as_str().to_owned(), totals.event(*e)))
                .collect(),
            memory: Memory {
                budget_bytes: state.memory,
                short: state.proxy.memory_is_short(),
                resident_bytes: resident_bytes(),
                ram_objects: engine.ram_objects,
                ram_bytes: engine.ram_bytes,
                ram_capacity_bytes: engine.ram_capacity,
                index_bytes: engine.index_bytes,
                pending_bytes: engine.pending_bytes,
                requests: requests(&state.proxy),
            },
            engine: named(engine.counts.named()),
            disk_objects: engine.disk_objects,
            stores: engine
                .stores
                .iter()
                .map(|store| one_store(store, named))
                .collect(),
            absent_stores: state.stores.absent(),
            origins: origins::lines(state),
            sites: origins::site_lines(state),
            log_lines: state.log.as_ref().map_or_else(Lines::default, |log| Lines {
                written: log.written(),
                dropped: log.dropped(),
            }),
        }
    }
}

fn listen(state: &State) -> Vec<String> {
    let forward = state
        .addresses
        .forward
        .iter()
        .map(|address| format!("forward {address}"));
    let sites = state.addresses.sites.iter().flat_map(|(name, addresses)| {
        addresses
            .iter()
            .map(move |address| format!("{name} {address}"))
    });
    forward.chain(sites).collect()
}

fn one_store(
    store: &OneStoreStats,
    named: impl Fn(Vec<(&'static str, u64)>) -> BTreeMap<String, u64>,
) -> Store {
    Store {
        store: store.store.0,
        disk: store.disk.clone(),
        duty: duty_name(store.duty).to_owned(),
        left_percent: (store.left * 1000.0).round() / 10.0,
        health: health_name(store.health).to_owned(),
        full: store.full,
        reason: store.reason.clone(),
        device: device_name(store.device).to_owned(),
        reads_sorted: store.reads_sorted,
        quarantined_segments: store.quarantined,
        loading: store.loading,
        capacity_bytes: u64::from(store.segments) * u64::from(store.segment_bytes),
        used_bytes: store.used_bytes,
        residency_seconds: store.residency.map(|time| time.as_secs_f64()),
        counts: named(store.counts.named()),
    }
}

/// Returns the stable name of a store's health.
pub(super) fn health_name(health: Health) -> &'static str {
    match health {
        Health::Good => "good",
        Health::Slow => "slow",
        Health::ReadOnly => "read-only",
        Health::Offline => "offline",
    }
}

/// Returns the stable name of the kind of a disk. The durations of reads determine the kind.
fn device_name(device: Device) -> &'static str {
    match device {
        Device::Unknown => "unknown",
        Device::Fast => "fast",
        Device::Even => "even",
        Device::Rotating => "rotating",
    }
}

/// Returns the share of hits, as the field `hit_ratio` of [`Stats`] describes it.
fn hit_ratio(totals: &Totals) -> Option<f64> {
    let sum = |wanted: &dyn Fn(Outcome) -> bool| -> u64 {
        let all = Outcome::ALL.into_iter().filter(|outcome| wanted(*outcome));
        all.map(|outcome| totals.outcome(outcome)).sum()
    };
    let all = sum(&|outcome| outcome.asks_cache());
    (all > 0).then(|| sum(&|outcome| outcome.is_hit()) as f64 / all as f64)
}

pub(super) fn durations(latency: &Latency) -> Durations {
    let count: u64 = latency.buckets.iter().sum();
    if count == 0 {
        return Durations::default();
    }
    let percentile = |percent: u64| {
        let rank = (count * percent).div_ceil(100);
        let mut below = 0;
        let bucket = latency.buckets.iter().position(|n| {
            below += n;
            below >= rank
        });
        1u64 << bucket.unwrap_or(0)
    };
    Durations {
        count,
        mean_us: latency.sum_us as f64 / count as f64,
        p50_us: percentile(50),
        p90_us: percentile(90),
        p99_us: percentile(99),
    }
}

/// Returns the bytes of memory that requests use, by purpose. The entry `other` is the part of the last
/// measured memory use that exceeds the sum of all other entries.
pub(super) fn requests(proxy: &Proxy) -> Vec<(String, u64)> {
    let other = ("other".to_owned(), proxy.memory_unentered() as u64);
    Use::ALL
        .iter()
        .map(|of| (of.name().to_owned(), proxy.memory_used(*of) as u64))
        .chain([other])
        .collect()
}

/// Returns the resident memory of the process in bytes, as the system reports it; 0 if the system does not
/// report it.
pub(crate) fn resident_bytes() -> u64 {
    resident_in(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Reads the line `VmRSS:`, whose number is in KiB. The file `statm` is shorter, but it counts pages, so the
/// page size would be needed. The library rustix reads the page size from data that the process gets at its
/// start. This crashes under valgrind, which measurements use to count the instructions of a hit.
fn resident_in(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB"));
    number
        .and_then(|number| number.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_kib() {
        let status = "Name:\tfoxy\nVmHWM:\t 99 kB\nVmRSS:\t  2048 kB\n";
        assert_eq!(resident_in(status), 2 << 20);
        assert_eq!(resident_in("Name:\tfoxy\n"), 0);
        assert!(resident_bytes() > 1 << 20);
    }

    #[test]
    fn percentiles_are_bucket_bounds() {
        let mut latency = Latency::default();
        latency.buckets[3] = 98;
        latency.buckets[10] = 2;
        latency.sum_us = 1000;
        let wanted = Durations {
            count: 100,
            mean_us: 10.0,
            p50_us: 8,
            p90_us: 8,
            p99_us: 1024,
        };
        assert_eq!(durations(&latency), wanted);
        assert_eq!(durations(&Latency::default()), Durations::default());
    }

    #[test]
    fn the_hit_ratio_leaves_out_what_is_no_question_to_the_cache() {
        let mut totals = Totals::default();
        assert_eq!(hit_ratio(&totals), None);
        totals.outcomes[Outcome::MemoryHit as usize] = 3;
        totals.outcomes[Outcome::Miss as usize] = 1;
        totals.outcomes[Outcome::Tunnel as usize] = 100;
        assert_eq!(hit_ratio(&totals), Some(0.75));
    }
}
