//! Clusters on their way to the disk: how many at once, their buffers, and the rate.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::MonoTime;
use foxy_disk::AlignedBuf;
use foxy_policy::TokenBucket;

use super::objects::Written;
use crate::interface::add;
use crate::shared::{Numbered, StoreShared, WaitsFor};

/// Clusters being written at once ...
const IN_FLIGHT: usize = 2;
/// ... and if more of them are full: with two, a device has one or none to work on when this thread
/// is late with the next cluster, which is often so on a machine with few processors.
const IN_FLIGHT_MAX: usize = 4;
/// How long buffers beyond [`IN_FLIGHT`] outlive their last use: a new one is a huge page that the
/// system clears first, which at each lull of a busy writer costs it a tenth of its time.
const KEPT_WIDE: Duration = Duration::from_secs(1);
/// Longest time for the write of a cluster before the store counts as slow.
const STALLED: Duration = Duration::from_secs(5);

/// A cluster being written.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) number: u64,
    pub(super) sequence: u64,
    pub(super) segment: u32,
    /// Its bytes on the disk.
    pub(super) range: Range<u64>,
    /// Bytes of it before the first record.
    pub(super) table: usize,
    pub(super) begun: MonoTime,
    pub(super) records: Vec<Written>,
    pub(super) removals: Vec<Numbered>,
    /// Numbers of the clusters that this cluster names as given up.
    pub(super) given_up: Vec<u64>,
}

impl Cluster {
    pub(super) const fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// All clusters being written, and what bounds them.
#[derive(Debug)]
pub(super) struct Flight {
    store: Arc<StoreShared>,
    clusters: Vec<Cluster>,
    /// Buffers for clusters, reused.
    buffers: Vec<AlignedBuf>,
    /// When more clusters were last under way than there usually are.
    wide_at: MonoTime,
    pace: Option<TokenBucket>,
    /// When it was last said what writing waits for.
    said_at: MonoTime,
}

impl Flight {
    /// For clusters that are written with at most `rate` bytes per second, if there is a rate.
    pub(super) fn new(store: Arc<StoreShared>, rate: Option<u64>, now: MonoTime) -> Self {
        let burst = u64::from(store.space.geometry().cluster_bytes) * 4;
        Self {
            store,
            clusters: Vec::new(),
            buffers: Vec::new(),
            wide_at: now,
            pace: rate.map(|rate| TokenBucket::new(rate, burst, now)),
            said_at: now,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }

    /// Returns whether another cluster may be under way; more are if it is `full`.
    pub(super) const fn has_room(&self, full: bool) -> bool {
        let most = if full { IN_FLIGHT_MAX } else { IN_FLIGHT };
        self.clusters.len() < most
    }

    /// Bytes with which a cluster counts as full.
    pub(super) fn full_bytes(&self) -> u64 {
        u64::from(self.store.space.geometry().cluster_bytes) * 15 / 16
    }

    /// Number of the first cluster under way.
    pub(super) fn first(&self) -> Option<u64> {
        self.clusters.iter().map(|cluster| cluster.number).min()
    }

    /// Takes the bytes of a cluster from the write rate's budget. False if the budget is too small
    /// now.
    pub(super) fn may_spend(&mut self, bytes: u64, now: MonoTime) -> bool {
        self.pace
            .as_mut()
            .is_none_or(|pace| pace.try_take(bytes, now))
    }

    /// A buffer for a cluster, with any contents.
    pub(super) fn buffer(&mut self) -> AlignedBuf {
        let bytes = self.store.space.geometry().cluster_bytes as usize;
        let buf = self.buffers.pop();
        let mut buf = buf.unwrap_or_else(|| AlignedBuf::huge(bytes));
        let capacity = buf.capacity();
        buf.set_len(capacity);
        buf
    }

    /// The write of a cluster begins.
    pub(super) fn begin(&mut self, cluster: Cluster) {
        let counters = &self.store.counters;
        add(&counters.clusters, 1);
        add(&counters.cluster_bytes, cluster.bytes());
        add(&counters.table_bytes, cluster.table as u64);
        add(&counters.records, cluster.records.len() as u64);
        add(&counters.tombstones, cluster.removals.len() as u64);
        if cluster.records.is_empty() {
            add(&counters.tombstone_clusters, 1);
        }
        self.clusters.push(cluster);
    }

    /// The write of a cluster has ended. Returns the cluster.
    pub(super) fn end(&mut self, number: u64, buf: Option<AlignedBuf>) -> Option<Cluster> {
        if let Some(buf) = buf
            && self.buffers.len() < IN_FLIGHT_MAX
        {
            self.buffers.push(buf);
        }
        let at = self.clusters.iter().position(|c| c.number == number)?;
        Some(self.clusters.remove(at))
    }

    /// Notes how fast the store wrote a cluster.
    pub(super) fn measure(&self, cluster: &Cluster, now: MonoTime) {
        // A short write says more about latency.
        let bytes = cluster.bytes();
        if bytes * 2 < u64::from(self.store.space.geometry().cluster_bytes) {
            return;
        }
        let took = now.since(cluster.begun).as_nanos();
        self.store.load.wrote(bytes, took);
    }

    /// No further cluster begins now: notes the reason, and lets go of buffers that were not used for
    /// a while.
    pub(super) fn rest(&mut self, waits_for: WaitsFor, now: MonoTime) {
        if self.clusters.len() > IN_FLIGHT {
            self.wide_at = now;
        } else if now.since(self.wide_at) > KEPT_WIDE {
            self.buffers.truncate(IN_FLIGHT);
        }
        let passed = now.since(std::mem::replace(&mut self.said_at, now));
        let counters = &self.store.counters;
        self.store.load.waits_for(waits_for, passed, counters);
    }

    /// A write that takes far too long makes the store slow.
    pub(super) fn look_for_stalls(&self, now: MonoTime) {
        let begun = self.clusters.iter().map(|c| c.begun).min();
        if begun.is_some_and(|begun| now.since(begun) > STALLED) {
            let disk = self.store.disk.describe();
            self.store.condition.stalled(&disk, now);
        }
    }

    /// Memory of the buffers, which are huge pages.
    pub(super) fn memory_bytes(&self) -> usize {
        const HUGE: usize = 2 << 20;
        let cluster = (self.store.space.geometry().cluster_bytes as usize).next_multiple_of(HUGE);
        (self.buffers.len() + self.clusters.len()) * cluster
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::stand::{NOW, Stand};

    fn cluster(number: u64) -> Cluster {
        Cluster {
            number,
            sequence: 1,
            segment: 0,
            range: 0..16 << 10,
            table: 512,
            begun: NOW,
            records: Vec::new(),
            removals: Vec::new(),
            given_up: Vec::new(),
        }
    }

    #[test]
    fn full_clusters_may_be_more_and_their_buffers_go_after_a_while() {
        let stand = Stand::new();
        let mut flight = Flight::new(stand.store, None, NOW);
        let mut buffers = Vec::new();
        for number in 1..=4 {
            assert_eq!(
                (flight.has_room(false), flight.has_room(true)),
                (number < 3, true)
            );
            buffers.push(flight.buffer());
            flight.begin(cluster(number));
        }
        assert!(!flight.has_room(true));
        flight.rest(WaitsFor::Device, NOW);
        for (number, buffer) in (1..=4).zip(buffers) {
            assert_eq!(flight.first(), Some(number));
            assert!(flight.end(number, Some(buffer)).is_some());
        }
        assert!(flight.is_empty() && flight.end(1, None).is_none());
        let held = flight.memory_bytes();
        flight.rest(WaitsFor::Thread, NOW + KEPT_WIDE);
        assert_eq!(flight.memory_bytes(), held);
        flight.rest(WaitsFor::Thread, NOW + KEPT_WIDE * 2);
        assert_eq!(flight.memory_bytes(), held / 2);
    }

    #[test]
    fn the_rate_bounds_what_is_spent() {
        let stand = Stand::new();
        let bytes = 16 << 10;
        let mut free = Flight::new(stand.store.clone(), None, NOW);
        assert!((0..100).all(|_| free.may_spend(bytes, NOW)));
        let mut bound = Flight::new(stand.store, Some(bytes), NOW);
        assert!((0..100).any(|_| !bound.may_spend(bytes, NOW)));
        assert!(bound.may_spend(bytes, NOW + Duration::from_secs(2)));
    }
}
