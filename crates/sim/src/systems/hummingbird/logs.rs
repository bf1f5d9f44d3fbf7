//! The logs that survive a crash. They contain the numbers of hot clusters, the mappings from files to
//! clusters, and delete intents.
//!
//! Rules (USENIX 2001): the disk has four regions:
//!
//! - the clusters;
//! - the mappings, which are written at shutdown and at intervals;
//! - the numbers of the hot clusters, which are the most recently used clusters in memory;
//! - the delete intents, which are records of deletes. They are flushed after a number of deletes or seconds.
//!
//! A delete intent contains the number of the last write before the delete, so that its replay does not
//! remove files that were written afterwards.

use super::{Hummingbird, HummingbirdError};
use crate::model::SimTime;

/// Bytes of a mapping: hash, number, one cluster, sequence number of the cluster.
pub(super) const MAPPING_BYTES: u64 = 20;
/// Bytes of a delete intent: hash and sequence number.
pub(super) const DELETE_BYTES: u64 = 12;
/// Bytes of a hot cluster's number.
pub(super) const HOT_BYTES: u64 = 4;

/// A file as described by the mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) hash: u32,
    /// For each cluster that contains the file: its number, its sequence number, and the place of the
    /// file in it.
    pub(super) places: Vec<(u32, u64, u32)>,
}

/// A delete intent: hash of the name, number of the last write before the delete.
pub(super) type Delete = (u32, u64);

/// The logs, and the part of them that is on disk.
#[derive(Clone, Debug)]
pub(super) struct Logs {
    waiting: Vec<Delete>,
    flushed_at: SimTime,
    mapped_at: SimTime,
    pub(super) on_disk: LogRegions,
    /// Bytes written to the regions.
    pub(super) bytes: u64,
}

/// Contents of the regions on disk for mappings and logs.
#[derive(Clone, Debug, Default)]
pub(super) struct LogRegions {
    pub(super) hot: Vec<u32>,
    pub(super) mappings: Vec<Mapping>,
    pub(super) deletes: Vec<Delete>,
}

impl Logs {
    pub(super) const fn new(now: SimTime) -> Self {
        Self {
            waiting: Vec::new(),
            flushed_at: now,
            mapped_at: now,
            on_disk: LogRegions {
                hot: Vec::new(),
                mappings: Vec::new(),
                deletes: Vec::new(),
            },
            bytes: 0,
        }
    }
}

impl Hummingbird {
    /// Adds a delete intent for a name.
    pub(super) fn log_delete(&mut self, hash: u32) -> Result<(), HummingbirdError> {
        let logs = self.config.logs;
        if logs.deletes == usize::MAX {
            return Ok(());
        }
        self.logs.waiting.push((hash, self.disk.sequence()));
        let late = self.disk.now() - self.logs.flushed_at > logs.deletes_every;
        if self.logs.waiting.len() >= logs.deletes || late {
            self.flush_deletes()?;
        }
        Ok(())
    }

    /// Flushes waiting delete intents, writes the numbers of hot clusters, and writes the mappings if
    /// they are due.
    pub(super) fn sync_logs(&mut self) -> Result<(), HummingbirdError> {
        let logs = self.config.logs;
        self.flush_deletes()?;
        if logs.hot > 0 {
            let hot: Vec<u32> = self.clusters.recent().take(logs.hot).collect();
            self.write_log(0, hot.len() as u64 * HOT_BYTES)?;
            self.logs.on_disk.hot = hot;
        }
        let due = |every| self.disk.now() - self.logs.mapped_at > every;
        if logs.mappings_every.is_some_and(due) {
            self.write_mappings()?;
        }
        Ok(())
    }

    fn flush_deletes(&mut self) -> Result<(), HummingbirdError> {
        self.logs.flushed_at = self.disk.now();
        if self.logs.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.logs.waiting);
        self.write_log(1 << 20, waiting.len() as u64 * DELETE_BYTES)?;
        self.logs.on_disk.deletes.extend(waiting);
        Ok(())
    }

    /// Writes the mappings of all existing files. So they contain no file that was deleted before.
    pub(super) fn write_mappings(&mut self) -> Result<(), HummingbirdError> {
        let mappings: Vec<_> = self.files.numbers().map(|n| self.mapping(n)).collect();
        let mappings: Vec<_> = mappings
            .into_iter()
            .filter(|m| !m.places.is_empty())
            .collect();
        self.write_log(2 << 20, mappings.len() as u64 * MAPPING_BYTES)?;
        self.logs.on_disk.mappings = mappings;
        self.logs.mapped_at = self.disk.now();
        Ok(())
    }

    fn mapping(&self, number: u32) -> Mapping {
        let file = self.files.get(number);
        let place = |c: &u32| {
            let cluster = self.clusters.get(*c);
            let at = cluster.files.iter().position(|f| *f == number)?;
            Some((*c, cluster.sequence, at as u32))
        };
        Mapping {
            hash: file.hash,
            places: file.clusters.iter().filter_map(place).collect(),
        }
    }

    fn write_log(&mut self, at: u64, bytes: u64) -> Result<(), HummingbirdError> {
        let bytes = bytes.next_multiple_of(512);
        self.logs.bytes += bytes;
        if bytes > 0 {
            self.disk.write_reserved(at, bytes)?;
        }
        Ok(())
    }

    /// Bytes written to logs and mappings so far.
    #[must_use]
    pub const fn log_bytes(&self) -> u64 {
        self.logs.bytes
    }
}
