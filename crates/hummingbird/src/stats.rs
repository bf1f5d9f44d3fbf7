//! Counts and sizes.

use std::sync::atomic::{AtomicU64, Ordering};

use foxy_store::Health;

use crate::Hummingbird;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) writes: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) memory_only: AtomicU64,
    pub(crate) deletes: AtomicU64,
    pub(crate) memory_hits: AtomicU64,
    pub(crate) disk_hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) hints_taken: AtomicU64,
    pub(crate) hints_late: AtomicU64,
    pub(crate) replicas: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Figures since the library was opened (the measurements of section 5), and of this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Files written.
    pub writes: u64,
    /// Writes that waited for the disks.
    pub write_waits: u64,
    /// Files that went to memory alone, because the disks did not keep up.
    pub memory_only: u64,
    /// Files deleted.
    pub deletes: u64,
    /// Reads that memory answered.
    pub memory_hits: u64,
    /// Reads that a disk answered.
    pub disk_hits: u64,
    /// Reads of files that were not there.
    pub misses: u64,
    /// Hints that took effect.
    pub hints_taken: u64,
    /// Hints that came too late.
    pub hints_late: u64,
    /// Files that a hint has written once more.
    pub replicas: u64,
    /// Files that came into memory with another one's read.
    pub prefetched: u64,
    /// Of these, the ones that were asked for while they were there.
    pub prefetch_hits: u64,
    /// Bytes that were given to be stored on disks: names, contents, and four bytes for each file.
    pub stored_bytes: u64,
    /// Bytes written to disks, meta-data included.
    pub device_bytes: u64,
    /// Write operations of disks.
    pub device_writes: u64,
    /// Files on disks; a long one counts each of its parts.
    pub disk_files: u64,
    /// Names that have readers now.
    pub read_now: u64,
    /// Bytes of contents in memory.
    pub memory_bytes: u64,
    /// Bytes that wait for their cluster.
    pub waiting_bytes: u64,
    /// Recovery is still loading older files, which are not found until then (section 4.6).
    pub recovering: bool,
    /// Disks that take no writes, or nothing at all, because they failed.
    pub failed_disks: u64,
}

impl Hummingbird {
    /// The figures.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let counters = &self.inner.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let engine = self.inner.engine.stats();
        let mut statistics = Statistics {
            writes: read(&counters.writes),
            write_waits: read(&counters.waits),
            memory_only: read(&counters.memory_only),
            deletes: read(&counters.deletes),
            memory_hits: read(&counters.memory_hits),
            disk_hits: read(&counters.disk_hits),
            misses: read(&counters.misses),
            hints_taken: read(&counters.hints_taken),
            hints_late: read(&counters.hints_late),
            replicas: read(&counters.replicas),
            prefetched: engine.counts.prefetched,
            prefetch_hits: engine.counts.prefetch_hits,
            disk_files: engine.disk_objects,
            read_now: self.inner.names.read_now(),
            memory_bytes: engine.ram_bytes,
            waiting_bytes: engine.pending_bytes,
            ..Statistics::default()
        };
        for store in &engine.stores {
            let counts = &store.counts;
            statistics.stored_bytes += counts.payload_bytes;
            statistics.device_bytes += counts.cluster_bytes + counts.meta_bytes;
            statistics.device_writes += counts.writes;
            statistics.recovering |= store.loading;
            let failed = matches!(store.health, Health::ReadOnly | Health::Offline);
            statistics.failed_disks += u64::from(failed);
        }
        statistics
    }
}
