//! Counters, and the figures made of them. All counts since the engine was made.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foxy_policy::Device;

use crate::StoreId;

/// Declares counters once: atomics to count with, a plain struct to report with.
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
            /// Names and values, for metrics and reports.
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
        /// Lookups answered with a disk read to do.
        disk_plans,
        /// Lookups without an answer.
        misses,
        /// Reads that gave the object.
        disk_hits,
        /// Reads that took in what lies around the object as well.
        wide_reads,
        /// Objects that these brought into the RAM tier.
        prefetched,
        /// Of these, what was asked for while it was there.
        prefetch_hits,
        /// Reads that found another key's record.
        miss_twin,
        /// Reads whose object was superseded, or whose segment was reused, meanwhile.
        miss_superseded,
        /// Reads whose object was moved meanwhile.
        miss_moved,
        /// Reads that found a damaged or misplaced record.
        miss_damaged,
        /// Reads that the device failed, or that took too long.
        miss_device,
        /// Lookups that led to a store which is slow, offline or in quarantine there.
        miss_unavailable,
        /// Objects put (heads included, fragments not).
        puts,
        /// Bytes of them: keys, fields, bodies, and the bodies of fragments.
        put_bytes,
        /// Fragments put.
        fragments,
        /// Live entries superseded.
        superseded,
        /// Keys purged.
        purged,
        /// Purges of many, and soft ones.
        purges,
        /// Objects that purges of many removed.
        purged_by_many,
        /// Not stored: fetched before a purge that covers it.
        drop_purged,
        /// Not sent to disk: no store takes writes.
        drop_no_store,
        /// Not sent to disk: too much is waiting.
        drop_pending,
        /// Not sent to disk: the write budget is spent.
        drop_budget,
        /// Not sent to disk: too large.
        drop_too_large,
        /// Objects that left the RAM tier to make room.
        ram_evictions,
    }
}

impl EngineCounters {
    /// Returns whether something was stored, replaced or removed.
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
        /// Clusters written.
        clusters,
        /// Clusters that hold removals only.
        tombstone_clusters,
        /// Bytes of clusters written.
        cluster_bytes,
        /// Records written.
        records,
        /// Bytes of records before padding: keys, fields, bodies, headers.
        record_bytes,
        /// Of these, what was given to be stored: keys, Vary, tags, fields, bodies.
        payload_bytes,
        /// Bytes of cluster headers and entries, with the padding behind them.
        table_bytes,
        /// Bytes of segments left unused when they were full.
        segment_tail_bytes,
        /// Removals written.
        tombstones,
        /// Removals forgotten because they could not be written; older entries are void instead.
        tombstone_overflows,
        /// Entries written to the removal log.
        removals_logged,
        /// Removals that found no room there: a kill could undo them until they are in a cluster.
        removal_log_full,
        /// Removals of an earlier run that were still in the removal log.
        removals_recalled,
        /// Writes of the purge journal.
        journal_writes,
        /// Other bytes written: slots, superblocks, purge journal.
        meta_bytes,
        /// Device writes.
        writes,
        /// Device flushes.
        flushes,
        /// Device reads by the writer (recovery and reuse).
        reads,
        /// Bytes of them.
        read_bytes,
        /// Segments sealed.
        sealed,
        /// Segments reused.
        reused,
        /// Index entries dropped by reuse.
        reuse_dropped,
        /// Records written again because they were used since they were written.
        reinserted,
        /// Bytes of them.
        reinserted_bytes,
        /// Records that were used, but not written again because the budget was spent.
        reinsert_over_budget,
        /// Records that were to be written again, but writing could not wait for them.
        reinsert_cut_short,
        /// Of the objects not sent to disk because too much waited (`drop_pending`), those that
        /// waited for the writer's thread.
        drop_wait_thread,
        /// ... for the clusters under way.
        drop_wait_device,
        /// ... for the next segment.
        drop_wait_segment,
        /// ... for the write rate that is set.
        drop_wait_rate,
        /// Nanoseconds during which a cluster waited for the clusters under way.
        wait_device_nanos,
        /// Nanoseconds during which a cluster waited for the next segment.
        wait_segment_nanos,
        /// Nanoseconds during which a cluster waited for the write rate that is set.
        wait_rate_nanos,
        /// Entries pushed out of the index by a twin or, where it is full, by another entry; or not taken in.
        index_displaced,
        /// Failed writes and flushes.
        write_errors,
        /// Failed reads.
        read_errors,
        /// Times that reads of a rotating disk were sorted and carried out together.
        sorted_batches,
        /// Reads in them.
        sorted_reads,
        /// Reads that were carried out as a part of a neighbour's.
        joined_reads,
        /// Reads that nobody waited for any longer.
        reads_given_up,
        /// Bytes that the scrub has read.
        scrubbed_bytes,
        /// Bad records and failed reads that the scrub has met.
        scrub_errors,
        /// Entries that it dropped.
        scrub_dropped,
        /// Times that it went through everything.
        scrub_passes,
        /// Damaged records, slots and tables met.
        damaged,
        /// Objects dropped because their cluster could not be written.
        drop_write_error,
        /// Nanoseconds from opening until lookups were answered.
        open_nanos,
        /// Nanoseconds from opening until everything was loaded.
        load_nanos,
        /// Entries loaded by recovery.
        loaded,
        /// Entries that recovery left out as removed or superseded.
        load_skipped,
        /// Segments recovered by their summary slot.
        load_slots,
        /// Segments recovered by a scan of their clusters.
        load_scans,
        /// Bytes read by recovery.
        load_bytes,
        /// Records that a drain moved to other stores.
        moved,
        /// Bytes of them.
        moved_bytes,
        /// Segments not loaded because too many removals came in meanwhile.
        load_given_up,
        /// Records left out one by one before recovery found the index full. It left out what is older without
        /// a look.
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
    /// Reads and writes.
    #[default]
    Good = 0,
    /// Left alone for the moment, because it takes too long.
    Slow = 1,
    /// Reads only: writing failed.
    ReadOnly = 2,
    /// Not used: reading failed too often.
    Offline = 3,
}

/// The duty of a store at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Duty {
    /// Everything.
    #[default]
    Serving = 0,
    /// Reads: nothing new goes there, and what is wanted moves to the others.
    Draining = 1,
    /// Reads: a drain has been through all of it.
    Drained = 2,
    /// It is being taken out, or becomes longer.
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
    /// Its identity, as on its disk.
    pub uuid: [u8; 16],
    /// Its disk.
    pub disk: String,
    /// Its health.
    pub health: Health,
    /// Its duty.
    pub duty: Duty,
    /// The part of it (0 to 1) that a drain has still to go through.
    pub left: f64,
    /// Its share of new objects, relative to that of the other stores.
    pub share: f64,
    /// Why that is not everything: what the device said last.
    pub reason: Option<String>,
    /// The last write failed because the file system behind it, or a quota, has no room.
    pub full: bool,
    /// The kind of its device, measured by its reads.
    pub device: Device,
    /// Its reads are sorted.
    pub reads_sorted: bool,
    /// Segments that are not used because reading them failed.
    pub quarantined: u32,
    /// Recovery is still loading older segments.
    pub loading: bool,
    /// Segments it has, and bytes in each.
    pub segments: u32,
    /// Bytes in each segment.
    pub segment_bytes: u32,
    /// Bytes of segments that hold something.
    pub used_bytes: u64,
    /// How long a record stays at the present rate of writing; `None` before the first reuse.
    pub residency: Option<Duration>,
    /// Counters.
    pub counts: StoreCounts,
}

/// How the memory budget is shared out, in bytes. The RAM tier may hold what the others leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryShares {
    /// All of it, as configured.
    pub budget: u64,
    /// Objects in the RAM tier may take so much; with the room of their allocations, their places
    /// in the tier's tables and the keys it remembers.
    pub ram: u64,
    /// Objects on their way to disk may take so much (most of them are in the RAM tier as well).
    pub pending: u64,
    /// The index, as large as it is now.
    pub index: u64,
    /// Writers now: cluster buffers, tables of open and victim segments, queues, recovery.
    pub writers: u64,
    /// Buffers of reads under way.
    pub reads: u64,
    /// Bytes that an allocator holds beyond the requests: pages of a class not full, freed memory.
    pub slack: u64,
}

/// Figures of the engine.
#[derive(Clone, Debug)]
pub struct StoreStats {
    /// Lookups answered by the RAM tier.
    pub ram_hits: u64,
    /// Lookups answered by what waits to be written.
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
    /// How the memory budget is shared out.
    pub memory: MemoryShares,
    /// Each store.
    pub stores: Vec<OneStoreStats>,
}
