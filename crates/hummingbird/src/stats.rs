//! Counts and sizes of the library.

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

/// Statistics since the library was opened (the measurements of section 5 of the Hummingbird paper), and
/// statistics of this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Number of files written.
    pub writes: u64,
    /// Number of writes that waited for the disks.
    pub write_waits: u64,
    /// Number of files that were stored only in memory, because the disks did not keep up.
    pub memory_only: u64,
    /// Number of files deleted.
    pub deletes: u64,
    /// Number of reads that were answered from memory.
    pub memory_hits: u64,
    /// Number of reads that were answered from a disk.
    pub disk_hits: u64,
    /// Number of reads of files that were not found.
    pub misses: u64,
    /// Number of hints that took effect.
    pub hints_taken: u64,
    /// Number of hints that came too late.
    pub hints_late: u64,
    /// Number of files that were written once more because of a hint.
    pub replicas: u64,
    /// Number of files that came into memory with the read of another file.
    pub prefetched: u64,
    /// Number of prefetched files that were read while they were in memory.
    pub prefetch_hits: u64,
    /// Bytes that were passed to the store for the disks: names, contents, and four bytes for each
    /// file.
    pub stored_bytes: u64,
    /// Bytes written to disks, including meta-data.
    pub device_bytes: u64,
    /// Number of write operations on disks.
    pub device_writes: u64,
    /// Number of files on disks. A long file counts once for each of its parts.
    pub disk_files: u64,
    /// Number of names that have readers now.
    pub read_now: u64,
    /// Bytes of contents in memory.
    pub memory_bytes: u64,
    /// Bytes of files that wait for their cluster.
    pub waiting_bytes: u64,
    /// True while recovery is loading older files. An older file is not found before it is loaded (section
    /// 4.6).
    pub recovering: bool,
    /// Number of disks that refuse writes or all operations, because they failed.
    pub failed_disks: u64,
}

impl Hummingbird {
    /// Returns the statistics.
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
