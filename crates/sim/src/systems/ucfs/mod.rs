//! UCFS, a user-space cluster file system for web proxies (Wang, Hu; IEEE Trans. Computers 2002).
//!
//! Rules: files are in memory and leave it in clusters of fixed size. The disk has no directories, and is
//! read and written only in whole clusters. Two tables in memory contain the position of every file
//! (`tables`). A memory cache in three parts decides which files leave (`buffers`). Files that leave are
//! grouped into clusters by site, then by number of requests. Several clusters are written near the head with
//! one request (`swap`). A disk hit reads the whole cluster, and all its files enter memory. Under the older
//! rule, the disk copy of a cluster is voided when the cluster is read. Under the newer rule, the disk copy
//! is kept as long as none of the cluster's files changes (a virtual cluster). When all files of a virtual
//! cluster have moved to the cold buffer, they leave memory without a write. Clusters of one-timers (files
//! that were not requested again) are voided first, then the least used clusters. After a crash everything is
//! lost; a clean shutdown saves tables and memory (`superblock`).
//!
//! Interpretations where the paper is silent:
//!
//! - A hit in cold moves the file to hot, like any hit.
//! - After a disk hit the requested file goes to hot, and the other files of its cluster go to medium.
//! - A file of a virtual cluster may have to leave memory while other files of the cluster are hot or medium.
//!   Then the cluster is broken up (the older rule).
//! - Files with a valid copy on disk are not put into new clusters.

mod buffers;
mod config;
mod superblock;
mod swap;
mod tables;
#[cfg(test)]
mod tests;

pub use config::UcfsConfig;
pub use superblock::{SaveReport, UcfsImage};

use foxy_trace::{Class, Request};

use super::{CacheSystem, ClusterDisk, Extras};
use crate::{
    levels::Outcome,
    model::{FsCounters, FsError, Raw, SimTime},
};
use buffers::{Buffers, Held, Part};
use tables::{Entry, NONE, Tables};

/// A file as stored in its cluster: URL (site and path), size, version, count; then the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    name: u64,
    size: u64,
    version: u32,
    host: u32,
    path: u64,
    page: bool,
    count: u32,
}

/// The counts that no other system has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UcfsCounts {
    /// Number of requests for which memory had another version.
    pub memory_stale: u64,
    /// Number of requests for which the disk had another version.
    pub disk_stale: u64,
    /// Number of conditional requests answered by a hit.
    pub ims_hits: u64,
    /// Number of read requests for clusters.
    pub reads: u64,
    /// Number of write requests for clusters.
    pub writes: u64,
    /// Number of clusters written.
    pub clusters_written: u64,
    /// Bytes of files in the written clusters.
    pub file_bytes_written: u64,
    /// Number of clusters that left memory without a write.
    pub clean_evictions: u64,
    /// Number of prefetched files.
    pub prefetched: u64,
    /// Number of prefetched files that were then requested.
    pub prefetch_hits: u64,
    /// Number of files lost because clusters of one-timers were voided.
    pub one_timers: u64,
    /// Number of files lost because clusters were replaced.
    pub replaced: u64,
}

/// The cache system.
#[derive(Debug)]
pub struct Ucfs {
    config: UcfsConfig,
    disk: ClusterDisk<Record>,
    tables: Tables,
    memory: Buffers,
    counts: UcfsCounts,
    /// Recorded time of the stream since its first event.
    clock: SimTime,
    first_ms: Option<i64>,
    refused: u64,
}

impl Ucfs {
    /// Creates an empty cache on a partition. The superblock area of the partition is large enough for the
    /// complete memory.
    #[must_use]
    pub fn new(raw: Raw, config: UcfsConfig) -> Self {
        let reserved = config.reserved + config.memory;
        let disk = ClusterDisk::new(raw, config.cluster, reserved);
        Self {
            tables: Tables::new(disk.count()),
            memory: Buffers::new(&config),
            counts: UcfsCounts::default(),
            clock: SimTime::ZERO,
            first_ms: None,
            refused: 0,
            disk,
            config,
        }
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> &UcfsCounts {
        &self.counts
    }

    /// Number of files in the file table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.files.len()
    }

    /// True if the file table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of files in memory.
    #[must_use]
    pub const fn memory_used(&self) -> u64 {
        self.memory.used()
    }

    /// Number of free clusters.
    #[must_use]
    pub const fn free_clusters(&self) -> u32 {
        self.tables.free.total()
    }

    fn row(&self, name: u64) -> Option<Entry> {
        self.tables.files.get(&name).copied()
    }

    fn set_slot(&mut self, name: u64, slot: u32) {
        if let Some(row) = self.tables.files.get_mut(&name) {
            row.slot = slot;
        }
    }

    fn note_time(&mut self, request: &Request) {
        let first = *self.first_ms.get_or_insert(request.time_ms);
        let passed = request.time_ms.saturating_sub(first).max(0);
        self.clock = self.clock.max(SimTime::from_millis(passed as f64));
    }

    fn event(&mut self, request: &Request) -> Result<Outcome, FsError> {
        let Some(row) = self.row(request.object) else {
            self.insert(request)?;
            return Ok(Outcome::Miss);
        };
        let from_disk = row.slot == NONE;
        if from_disk {
            self.load(request.object, row.cluster)?;
        }
        let Some(row) = self.row(request.object).filter(|row| row.slot != NONE) else {
            // The row was wrong: the cluster does not contain the file, so the file is fetched again.
            self.tables.files.remove(&request.object);
            self.insert(request)?;
            return Ok(Outcome::Miss);
        };
        let held = self.memory.get_mut(row.slot);
        let fresh = (held.version, held.size) == (request.version, request.size);
        if std::mem::take(&mut held.fetched) {
            self.counts.prefetch_hits += 1;
        }
        if !fresh {
            if from_disk {
                self.counts.disk_stale += 1;
            } else {
                self.counts.memory_stale += 1;
            }
            self.discard(request.object, row);
            self.insert(request)?;
            return Ok(Outcome::Modified);
        }
        self.counts.ims_hits += u64::from(request.flags.has(foxy_trace::Flags::CONDITIONAL));
        self.memory.hit(row.slot);
        if row.cluster != NONE {
            self.tables.touch(row.cluster);
        }
        self.settle()?;
        Ok(if from_disk {
            Outcome::DiskHit
        } else {
            Outcome::RamHit
        })
    }

    /// Adds a new file to medium instead of hot, because the file may never be requested again.
    fn insert(&mut self, request: &Request) -> Result<(), FsError> {
        if request.size > self.config.largest {
            self.refused += 1;
            return Ok(());
        }
        let held = Held {
            name: request.object,
            size: request.size,
            version: request.version,
            host: request.server,
            path: request.object >> 8,
            page: request.class == Class::Html,
            count: 1,
            ..Held::default()
        };
        let slot = self.memory.add(held, Part::Medium);
        let row = Entry {
            cluster: NONE,
            slot,
        };
        self.tables.files.insert(request.object, row);
        self.settle()
    }

    /// Removes a file from memory and from the tables, and voids its cluster.
    fn discard(&mut self, name: u64, row: Entry) {
        self.memory.remove(row.slot);
        if row.cluster != NONE {
            self.tables.void(row.cluster);
        }
        self.tables.files.remove(&name);
    }

    /// Reads a whole cluster into memory because one of its files was requested.
    fn load(&mut self, wanted: u64, cluster: u32) -> Result<(), FsError> {
        let mut records = Vec::new();
        for (first, count) in runs(cluster, &self.tables.get(cluster).array) {
            let written = self.disk.read(first, count)?;
            self.counts.reads += 1;
            if first == cluster {
                records = written.map(|w| w.records.clone()).unwrap_or_default();
            }
        }
        for record in records {
            // If memory already has a copy of the file, that copy stays.
            let row = self.row(record.name);
            if row.is_none_or(|row| row.cluster != cluster || row.slot != NONE) {
                continue;
            }
            let fetched = record.name != wanted;
            self.counts.prefetched += u64::from(fetched);
            let slot = self.memory.add(held(&record, fetched), Part::Medium);
            self.set_slot(record.name, slot);
        }
        self.tables.clusters[cluster as usize].in_memory = true;
        if !self.config.virtual_clusters {
            self.tables.void(cluster);
        }
        Ok(())
    }
}

fn held(record: &Record, fetched: bool) -> Held {
    Held {
        name: record.name,
        size: record.size,
        version: record.version,
        host: record.host,
        path: record.path,
        page: record.page,
        count: record.count,
        fetched,
        ..Held::default()
    }
}

/// The requests (first, count) that read a cluster and the clusters that continue it: one request for each
/// run of adjacent clusters.
fn runs(first: u32, array: &[u32]) -> Vec<(u32, u32)> {
    let mut runs = vec![(first, 1)];
    for next in array {
        match runs.last_mut() {
            Some((start, count)) if *start + *count == *next => *count += 1,
            _ => runs.push((*next, 1)),
        }
    }
    runs
}

impl CacheSystem for Ucfs {
    fn name(&self) -> &'static str {
        "ucfs"
    }

    fn request(&mut self, request: &Request) -> Result<Outcome, FsError> {
        if !request.is_cacheable() || request.size == 0 {
            return Ok(Outcome::Bypass);
        }
        self.note_time(request);
        self.disk.advance(self.config.call_cpu);
        self.event(request)
    }

    fn idle(&mut self, until: SimTime) -> Result<(), FsError> {
        let now = self.disk.now();
        self.disk.advance(until - now);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), FsError> {
        self.disk.flush();
        Ok(())
    }

    fn now(&self) -> SimTime {
        self.disk.now()
    }

    fn counters(&self) -> FsCounters {
        self.disk.counters()
    }

    fn extras(&self) -> Extras {
        Extras {
            prefetched: self.counts.prefetched,
            prefetch_hits: self.counts.prefetch_hits,
            table_bytes: self.tables.bytes(),
            refused: self.refused,
        }
    }
}
