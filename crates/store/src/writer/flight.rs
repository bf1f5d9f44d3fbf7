//! Clusters on their way to the disk: their maximum number, their buffers, and the write rate.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::MonoTime;
use foxy_disk::AlignedBuf;
use foxy_policy::TokenBucket;

use super::objects::Written;
use crate::interface::add;
use crate::shared::{Numbered, StoreShared, WaitsFor};

/// Maximum number of clusters that are written at the same time.
const IN_FLIGHT: usize = 2;
/// Maximum number of clusters that are written at the same time if the clusters beyond [`IN_FLIGHT`] are
/// full. If this number were two, a device would have one cluster or none to work on whenever this thread is
/// late with the next cluster. The thread is often late on a machine with few processors.
const IN_FLIGHT_MAX: usize = 4;
/// Time that buffers beyond [`IN_FLIGHT`] are kept after their last use. A new buffer is a huge page that the
/// system clears first. If the buffers were freed in each lull, clearing the new buffers after the lull would
/// cost a busy writer a tenth of its time.
const KEPT_WIDE: Duration = Duration::from_secs(1);
/// If the write of a cluster takes longer than this time, the store counts as slow.
const STALLED: Duration = Duration::from_secs(5);

/// A cluster that is being written.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) number: u64,
    pub(super) sequence: u64,
    pub(super) segment: u32,
    /// The byte range of the cluster on the disk.
    pub(super) range: Range<u64>,
    /// Bytes of the cluster before the first record.
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

/// All clusters that are being written, and their limits.
#[derive(Debug)]
pub(super) struct Flight {
    store: Arc<StoreShared>,
    clusters: Vec<Cluster>,
    /// Buffers for clusters, to be used again.
    buffers: Vec<AlignedBuf>,
    /// The last time at which more clusters than [`IN_FLIGHT`] were under way.
    wide_at: MonoTime,
    pace: Option<TokenBucket>,
    /// The time of the last call of [`Flight::rest`], which notes the reason why writing waits.
    said_at: MonoTime,
}

impl Flight {
    /// Makes the state for a store. If there is a `rate`, clusters are written with at most this number
    /// of bytes per second.
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

    /// Returns whether another cluster may be written now; the limit is higher if the cluster is
    /// `full`.
    pub(super) const fn has_room(&self, full: bool) -> bool {
        let most = if full { IN_FLIGHT_MAX } else { IN_FLIGHT };
        self.clusters.len() < most
    }

    /// A cluster of at least this number of bytes counts as full.
    pub(super) fn full_bytes(&self) -> u64 {
        u64::from(self.store.space.geometry().cluster_bytes) * 15 / 16
    }

    /// Number of the first cluster under way.
    pub(super) fn first(&self) -> Option<u64> {
        self.clusters.iter().map(|cluster| cluster.number).min()
    }

    /// Takes the bytes of a cluster from the write rate's budget. Returns false if the budget is too
    /// small now.
    pub(super) fn may_spend(&mut self, bytes: u64, now: MonoTime) -> bool {
        self.pace
            .as_mut()
            .is_none_or(|pace| pace.try_take(bytes, now))
    }

    /// Returns a buffer for a cluster, with arbitrary contents.
    pub(super) fn buffer(&mut self) -> AlignedBuf {
        let bytes = self.store.space.geometry().cluster_bytes as usize;
        let buf = self.buffers.pop();
        let mut buf = buf.unwrap_or_else(|| AlignedBuf::huge(bytes));
        let capacity = buf.capacity();
        buf.set_len(capacity);
        buf
    }

    /// Notes that the write of a cluster begins.
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

    /// Notes that the write of a cluster has ended. Returns the cluster.
    pub(super) fn end(&mut self, number: u64, buf: Option<AlignedBuf>) -> Option<Cluster> {
        if let Some(buf) = buf
            && self.buffers.len() < IN_FLIGHT_MAX
        {
            self.buffers.push(buf);
        }
        let at = self.clusters.iter().position(|c| c.number == number)?;
        Some(self.clusters.remove(at))
    }

    /// Notes the speed with which the store wrote a cluster.
    pub(super) fn measure(&self, cluster: &Cluster, now: MonoTime) {
        // A short write is not measured, because its time depends mostly on latency.
        let bytes = cluster.bytes();
        if bytes * 2 < u64::from(self.store.space.geometry().cluster_bytes) {
            return;
        }
        let took = now.since(cluster.begun).as_nanos();
        self.store.load.wrote(bytes, took);
    }

    /// Notes the reason why no further cluster begins now, and frees buffers that were not used for a
    /// while.
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

    /// Checks for a write that takes far too long, which makes the store slow.
    pub(super) fn look_for_stalls(&self, now: MonoTime) {
        let begun = self.clusters.iter().map(|c| c.begun).min();
        if begun.is_some_and(|begun| now.since(begun) > STALLED) {
            let disk = self.store.disk.describe();
            self.store.condition.stalled(&disk, now);
        }
    }

    /// Memory of the buffers in bytes; the buffers are huge pages.
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
