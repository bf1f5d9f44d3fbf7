//! Counters, and the figures that are made of them. The counters of the engine begin at 0 when the engine
//! is made, and the counters of a store begin at 0 when the store is opened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foxy_policy::Device;

use crate::StoreId;

/// Declares two structs with the same counters: one with atomics, in which the engine counts, and one
/// with plain numbers, which reports the counts.
macro_rules! counters {
    ($(#[$outer:meta])* $atomic:ident => $plain:ident { $($(#[$doc:meta])* $name:ident,)* }) => {
        #[derive(Debug, Default)]
        pub(crate) struct $atomic { $(pub(crate) $name: AtomicU64,)* }

        $(#[$outer])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $plain { $($(#[$doc])* pub $name: u64,)* }

        impl $atomic {
            pub(crate) fn read(&self) -> $plain {
                $plain { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl $plain {
            /// The names and values, for metrics and reports.
            #[must_use]
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Counters of the engine, over all stores.
    EngineCounters => EngineCounts {
        /// Lookups that returned a disk read to carry out.
        disk_plans,
        /// Lookups that found nothing.
        misses,
        /// The reads that returned the object.
        disk_hits,
        /// The reads that also included the neighbours of the object: the objects beside it on the disk.
        wide_reads,
        /// Neighbours that the longer reads (`wide_reads`) took into the RAM tier.
        prefetched,
        /// Objects of `prefetched` that were requested while they were in the RAM tier.
        prefetch_hits,
        /// The reads that found the record of another key.
        miss_twin,
        /// The reads during which the object was superseded or its segment was reused.
        miss_superseded,
        /// The reads during which the object was moved.
        miss_moved,
        /// The reads that found a damaged or misplaced record.
        miss_damaged,
        /// The reads that failed at the device or took too long.
        miss_device,
        /// Lookups that led to a store that is slow or offline, or to a segment in quarantine.
        miss_unavailable,
        /// Objects that were put. A large object counts once: its head counts, its fragments do not.
        puts,
        /// Bytes of the objects that were put: keys, fields, bodies, and the bodies of fragments.
        put_bytes,
        /// Fragments that were put.
        fragments,
        /// Stored objects that were replaced or removed.
        superseded,
        /// Keys that were purged.
        purged,
        /// The purges of many objects, and the soft purges.
        purges,
        /// Objects that purges of many objects removed.
        purged_by_many,
        /// Objects that were not stored because they were fetched before a purge that covers them.
        drop_purged,
        /// Objects that were not sent to disk because no store takes writes.
        drop_no_store,
        /// Objects that were not sent to disk because too many bytes were waiting.
        drop_pending,
        /// Objects that were not sent to disk because the write budget was spent.
        drop_budget,
        /// Objects that were not sent to disk because they were too large.
        drop_too_large,
        /// Objects that were evicted from the RAM tier to make room.
        ram_evictions,
    }
}

impl EngineCounters {
    /// Returns whether anything was stored, replaced or removed.
    pub(crate) fn has_changed(&self) -> bool {
        [
            &self.puts,
            &self.fragments,
            &self.superseded,
            &self.purged,
            &self.purges,
        ]
        .iter()
        .any(|counter| counter.load(Ordering::Relaxed) > 0)
    }
}

counters! {
    /// Counters of one store.
    StoreCounters => StoreCounts {
        /// Clusters that were written.
        clusters,
        /// Clusters that contain removals only.
        tombstone_clusters,
        /// Bytes of clusters that were written.
        cluster_bytes,
        /// Records that were written.
        records,
        /// Bytes of records before padding: keys, fields, bodies, headers.
        record_bytes,
        /// The part of `record_bytes` that the caller passed: keys, Vary, tags, fields, bodies.
        payload_bytes,
        /// Bytes of cluster headers and entries, with the padding after them.
        table_bytes,
        /// Bytes that were left unused at the ends of segments.
        segment_tail_bytes,
        /// Removals that were written to clusters.
        tombstones,
        /// Number of times that all waiting removals were forgotten because too many waited to be written. In
        /// place of these removals, everything that was in the log became dead.
        tombstone_overflows,
        /// Entries that were written to the removal log.
        removals_logged,
        /// Removals that found no room in the removal log. Until these removals are in a cluster, a kill
        /// of the process could undo them.
        removal_log_full,
        /// Removals of an earlier run that were still in the removal log.
        removals_recalled,
        /// The writes to the purge journal.
        journal_writes,
        /// Bytes that were written outside clusters: slots, superblocks, purge journal.
        meta_bytes,
        /// The writes to the device.
        writes,
        /// The flushes of the device.
        flushes,
        /// The reads that the writer made from the device: for recovery, for reuse, and to check its writes
        /// to the purge journal.
        reads,
        /// Bytes that the writer read from the device.
        read_bytes,
        /// Segments that were sealed.
        sealed,
        /// Segments that were reused.
        reused,
        /// Index entries that were dropped because their segment was about to be reused.
        reuse_dropped,
        /// Records that were written again because they were used after they were written.
        reinserted,
        /// Bytes of the records that were written again.
        reinserted_bytes,
        /// Records that were used, but not written again because the budget was spent.
        reinsert_over_budget,
        /// Records that were chosen to be written again, but were given up because new data waited for
        /// their segment.
        reinsert_cut_short,
        /// Objects of [`EngineCounts::drop_pending`] that were dropped while this store's next cluster
        /// waited only for the writer's thread.
        drop_wait_thread,
        /// Objects of [`EngineCounts::drop_pending`] that were dropped while this store's next cluster
        /// waited for clusters that were being written.
        drop_wait_device,
        /// Objects of [`EngineCounts::drop_pending`] that were dropped while this store's next cluster
        /// waited for a segment.
        drop_wait_segment,
        /// Objects of [`EngineCounts::drop_pending`] that were dropped while this store's next cluster
        /// waited because of the configured write rate.
        drop_wait_rate,
        /// Nanoseconds during which the next cluster waited for clusters that were being written.
        wait_device_nanos,
        /// Nanoseconds during which the next cluster waited for a segment.
        wait_segment_nanos,
        /// Nanoseconds during which the next cluster waited because of the configured write rate.
        wait_rate_nanos,
        /// Entries that the index lost or did not take: an entry that a colliding key replaced, an entry
        /// that a full index removed in favour of a new entry, and a new entry for which no slot was free.
        index_displaced,
        /// The writes and flushes that failed.
        write_errors,
        /// The reads that failed.
        read_errors,
        /// Number of times that reads of a rotating disk were sorted and carried out together.
        sorted_batches,
        /// The reads in the batches that `sorted_batches` counts.
        sorted_reads,
        /// The reads that were carried out as a part of another read, because both are close together on the
        /// disk.
        joined_reads,
        /// The reads for which the caller stopped waiting before the device had completed them.
        reads_given_up,
        /// Bytes that the scrub has read.
        scrubbed_bytes,
        /// Bad records and failed reads that the scrub found.
        scrub_errors,
        /// Entries that the scrub dropped.
        scrub_dropped,
        /// Number of scrub passes that have read all segments of the store.
        scrub_passes,
        /// Damaged records, slots and tables that were found.
        damaged,
        /// Objects that were dropped because their cluster could not be written.
        drop_write_error,
        /// Nanoseconds from opening until lookups were possible.
        open_nanos,
        /// Nanoseconds from opening until everything was loaded.
        load_nanos,
        /// Entries that recovery loaded.
        loaded,
        /// Entries of records that recovery did not load: the records were removed, superseded or lost, or
        /// the index had no room for them.
        load_skipped,
        /// Segments that recovery loaded from the summary in their slot.
        load_slots,
        /// Segments whose clusters were searched, because their slot has no usable summary.
        load_scans,
        /// Bytes that recovery read.
        load_bytes,
        /// Records that a drain moved to other stores.
        moved,
        /// Bytes of the records that a drain moved.
        moved_bytes,
        /// Segments that were not loaded because too many removals arrived during loading.
        load_given_up,
        /// Records for which the index had no room. They are counted only if recovery stops before it has
        /// loaded all segments. It then loads none of the older segments, and their records are not counted
        /// here.
        load_unplaced,
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// The health of a store at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Health {
    /// The store is read and written.
    #[default]
    Good = 0,
    /// The store is avoided for the moment, because its operations take too long.
    Slow = 1,
    /// The store is only read: writing failed.
    ReadOnly = 2,
    /// The store is not used: reading failed too often.
    Offline = 3,
}

/// The duty of a store at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Duty {
    /// The store is read and takes new objects.
    #[default]
    Serving = 0,
    /// The store is only read: no new objects go there, and the records that are worth keeping move to the
    /// other stores.
    Draining = 1,
    /// The store is only read: a drain has processed all of it.
    Drained = 2,
    /// The store is being taken out, or it is growing.
    Leaving = 3,
}

impl Duty {
    pub(crate) const fn of(number: u8) -> Self {
        match number {
            0 => Self::Serving,
            1 => Self::Draining,
            2 => Self::Drained,
            _ => Self::Leaving,
        }
    }
}

/// Figures of one store.
#[derive(Clone, Debug)]
pub struct OneStoreStats {
    /// Number of the store.
    pub store: StoreId,
    /// The identity of the store, as on its disk.
    pub uuid: [u8; 16],
    /// The name of the store's disk.
    pub disk: String,
    /// The health of the store.
    pub health: Health,
    /// The duty of the store.
    pub duty: Duty,
    /// The part of the store (0 to 1) that a drain has still to process.
    pub left: f64,
    /// The share of new objects that the store gets, relative to the shares of the other stores.
    pub share: f64,
    /// The reason why the store is not read and written normally: the last message about the device.
    pub reason: Option<String>,
    /// True if the last write failed because the file system behind the store, or a quota, has no room.
    pub full: bool,
    /// The kind of the store's device, as measured by reads.
    pub device: Device,
    /// True if reads of the store are sorted.
    pub reads_sorted: bool,
    /// Segments that are not used because reading them failed.
    pub quarantined: u32,
    /// True while recovery is still loading older segments.
    pub loading: bool,
    /// The number of segments of the store.
    pub segments: u32,
    /// Bytes in each segment.
    pub segment_bytes: u32,
    /// Bytes of the segments that are in use.
    pub used_bytes: u64,
    /// Estimated time from the write of a record until its segment is reused; `None` before the first reuse.
    /// The estimate uses the average rate of writing since the engine's clock began.
    pub residency: Option<Duration>,
    /// The counters of the store.
    pub counts: StoreCounts,
}

/// The division of the memory budget, in bytes. The RAM tier may take what the other shares leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryShares {
    /// The whole budget, as configured.
    pub budget: u64,
    /// The limit for the RAM tier. It includes the objects, the overhead of their allocations, their slots
    /// in the tier's tables, and the keys of evicted objects that the tier remembers.
    pub ram: u64,
    /// The limit for objects on their way to disk (most of them are in the RAM tier as well).
    pub pending: u64,
    /// The present size of the index.
    pub index: u64,
    /// The present memory of the writers (cluster buffers, tables of open and victim segments, queues,
    /// recovery). It includes the removals that are remembered for detached stores.
    pub writers: u64,
    /// The limit for the buffers of reads under way.
    pub reads: u64,
    /// The limit for two kinds of memory. The first is memory that the allocator holds beyond the allocated
    /// bytes: partly filled pages of a size class, and freed memory. The second is the list of used keys, by
    /// which new objects are admitted to disk once the write budget is spent.
    pub slack: u64,
}

/// Figures of the engine.
#[derive(Clone, Debug)]
pub struct StoreStats {
    /// Lookups that were answered from the RAM tier.
    pub ram_hits: u64,
    /// Lookups that were answered from objects that wait to be written.
    pub pending_hits: u64,
    /// Counters over all stores.
    pub counts: EngineCounts,
    /// Objects in the RAM tier.
    pub ram_objects: u64,
    /// Bytes in the RAM tier.
    pub ram_bytes: u64,
    /// Bytes that the RAM tier may hold now.
    pub ram_capacity: u64,
    /// Bytes that wait to be written.
    pub pending_bytes: u64,
    /// Objects and fragments on disk.
    pub disk_objects: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// The division of the memory budget.
    pub memory: MemoryShares,
    /// The figures of each store.
    pub stores: Vec<OneStoreStats>,
}
