//! Clusters that have been written, or not: their records get into the index, or are given up.

use std::sync::atomic::Ordering;
use std::time::Duration;

use foxy_base::{KeyHash, rule};
use foxy_disk::AlignedBuf;
use foxy_format::LogPosition;
use foxy_index::{Entry as IndexEntry, Insert};

use super::Writer;
use super::assemble::{Cluster, IN_FLIGHT_MAX, Written};
use super::trouble::Fault;
use crate::removals::Removal;
use crate::spot::Spot;
use crate::stats::add;

/// Records whose places in the index are asked for at once.
const COMMIT_AHEAD: usize = 32;
/// Longest time for the write of a cluster before the store counts as slow.
const STALLED: Duration = Duration::from_secs(5);

impl Writer {
    /// A cluster has been written, or not.
    pub(super) fn cluster_done(
        &mut self,
        number: u64,
        result: std::io::Result<()>,
        buf: Option<AlignedBuf>,
    ) {
        if let Some(buf) = buf
            && self.buffers.len() < IN_FLIGHT_MAX
        {
            self.buffers.push(buf);
        }
        let Some(at) = self.clusters.iter().position(|c| c.number == number) else {
            return;
        };
        let cluster = self.clusters.remove(at);
        let all = self
            .current
            .iter_mut()
            .chain(self.sealing.iter_mut().map(|s| &mut s.segment));
        for segment in all.filter(|s| s.sequence == cluster.sequence) {
            segment.writing -= 1;
        }
        match result {
            Ok(()) => {
                self.store.condition.wrote_well();
                self.measure(&cluster);
                for some in cluster.records.chunks(COMMIT_AHEAD) {
                    some.iter().for_each(|w| self.engine.index.warm(w.hash));
                    some.iter().for_each(|w| self.commit(w));
                }
                self.chain.complete(&cluster.given_up);
            }
            Err(error) => self.cluster_failed(cluster, error),
        }
    }

    /// How fast the store writes while it does.
    fn measure(&self, cluster: &Cluster) {
        // A short write says more about latency.
        let bytes = cluster.range.end - cluster.range.start;
        if bytes * 2 < u64::from(self.store.geometry.cluster_bytes) {
            return;
        }
        let speed = &self.store.write_speed;
        let took = self.now.since(cluster.begun).as_nanos();
        let now = crate::weight::speed(speed.load(Ordering::Relaxed), bytes, took);
        speed.store(now, Ordering::Relaxed);
    }

    /// From here on the index leads to the record, if its object is still the one.
    fn commit(&self, written: &Written) {
        let mut shard = self.engine.shard(written.hash).write();
        let pending = shard.pending.get(&written.hash);
        if rule!(
            "commit: a record that was superseded while it was written is not committed",
            pending.is_none_or(|p| p.ticket != written.ticket),
            false
        ) {
            return;
        }
        let entry = written.entry;
        // A reinserted record replaces its own earlier entry.
        let old = self.reinserting.get(&written.ticket);
        let replaced =
            old.is_some_and(|(hash, old)| self.engine.index.replace_if(*hash, *old, entry));
        if !replaced {
            self.insert_entry(written.hash, entry);
        }
        if let Some(pending) = shard.pending.remove(&written.hash) {
            self.engine
                .release_pending(pending.store, pending.object.memory_bytes());
        }
    }

    fn insert_entry(&self, hash: KeyHash, entry: IndexEntry) {
        // A twin loses its entry: its record must not come back when it is out of date.
        for twin in self.engine.index.lookup(hash) {
            rule!(
                "commit: a twin that loses its entry becomes void",
                self.engine.void(twin),
                ()
            );
        }
        match self.engine.index.insert(hash, entry) {
            Insert::Replaced(_) => add(&self.store.counters.index_displaced, 1),
            Insert::Dropped => {
                rule!(
                    "commit: a record without a place in the index becomes void",
                    self.engine.void(entry),
                    ()
                );
                add(&self.store.counters.index_displaced, 1);
            }
            Insert::Stored | Insert::Present(_) => {}
        }
    }

    /// Tells the removal log what is covered by durable clusters. Removals of an earlier run are let
    /// go when all of theirs are.
    pub(crate) fn settle_removals(&mut self) {
        let open = rule!(
            "removal log: an entry counts until its tombstone is covered",
            self.chain.first_removal(),
            None
        );
        let waiting = [
            open,
            rule!(
                "removal log: an entry counts while its removal waits for a cluster",
                self.gather.first_removal(),
                None
            ),
        ];
        let waiting = waiting.into_iter().flatten().min();
        if self.store.removals_settled(waiting) {
            self.store.let_go();
            self.store.removals_settled(waiting);
        }
    }

    /// The records are dropped, the removals tried again; what may have reached the disk in spite
    /// of the error must not come back either.
    fn cluster_failed(&mut self, cluster: Cluster, error: std::io::Error) {
        let first = self.store.geometry.segment_at(cluster.segment);
        let offset = (cluster.range.start - first) / foxy_format::UNIT;
        let at = LogPosition::new(cluster.sequence, offset as u32);
        rule!(
            "chain: the number of a cluster that could not be written is given up",
            self.chain.failed(cluster.number, at),
            ()
        );
        rule!(
            "write: removals of a cluster that failed are written again",
            self.gather.removals_again(cluster.removals, self.now),
            ()
        );
        let places = cluster
            .records
            .iter()
            .map(|w| self.store.position(Spot::of(&w.entry)));
        let places: Vec<_> = places.flatten().map(Removal::Place).collect();
        rule!(
            "write: records of a cluster that failed become void",
            self.store.remove_all(&places),
            ()
        );
        for written in &cluster.records {
            self.forget(written.hash, written.ticket);
        }
        self.write_failed(&Fault::write(cluster.range.start, error));
    }

    /// After a failed write or flush: waiters learn it, and the store may become read-only.
    pub(super) fn write_failed(&mut self, fault: &Fault) {
        self.tickets.fail();
        self.trouble.failed(fault, self.now);
    }

    /// A write that takes far too long makes the store slow.
    pub(super) fn look_for_stalls(&mut self) {
        let begun = self.clusters.iter().map(|c| c.begun).min();
        if begun.is_some_and(|begun| self.now.since(begun) > STALLED) {
            let disk = self.store.disk.describe();
            self.store.condition.stalled(&disk, self.now);
        }
    }

    /// Gives up an object on its way to disk.
    pub(super) fn forget(&self, hash: KeyHash, ticket: u64) {
        let mut shard = self.engine.shard(hash).write();
        if shard.pending.get(&hash).is_some_and(|p| p.ticket == ticket)
            && let Some(pending) = shard.pending.remove(&hash)
        {
            self.engine
                .release_pending(pending.store, pending.object.memory_bytes());
            add(&self.store.counters.drop_write_error, 1);
        }
    }
}
