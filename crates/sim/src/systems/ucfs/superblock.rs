//! Clean shutdown and restart of UCFS.
//!
//! Rule: a shutdown writes the file table, the cluster table and the files in memory into the superblock
//! area. The signal of a backup battery has the same effect. A start reads them back. After a crash
//! everything is lost; according to the paper a cache can tolerate that.

use super::{Part, Record, Ucfs, UcfsConfig, UcfsCounts, buffers::Buffers, tables::Tables};
use crate::{
    model::{FsError, SimTime},
    systems::ClusterDisk,
};

/// The state of the disk after a shutdown.
#[derive(Debug)]
pub struct UcfsImage {
    disk: ClusterDisk<Record>,
    saved: Option<(Tables, Buffers)>,
    clock: SimTime,
    first_ms: Option<i64>,
}

/// Cost of saving or restoring.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SaveReport {
    /// Time in seconds.
    pub seconds: f64,
    /// Bytes written or read.
    pub bytes: u64,
}

impl Ucfs {
    fn saved_bytes(&self) -> u64 {
        self.tables.bytes() + self.memory.used() + self.memory.len() as u64 * self.config.head_bytes
    }

    /// Saves tables and memory, and ends the system.
    ///
    /// # Errors
    /// Returns the error of the partition.
    pub fn save(mut self) -> Result<(UcfsImage, SaveReport), FsError> {
        let begin = self.disk.now();
        let bytes = self.saved_bytes().next_multiple_of(512);
        self.disk.write_reserved(0, bytes)?;
        self.disk.flush();
        let report = SaveReport {
            seconds: (self.disk.now() - begin).as_secs(),
            bytes,
        };
        let image = UcfsImage {
            disk: self.disk,
            saved: Some((self.tables, self.memory)),
            clock: self.clock,
            first_ms: self.first_ms,
        };
        Ok((image, report))
    }

    /// Simulates a power failure: nothing is saved.
    #[must_use]
    pub fn crash(self) -> UcfsImage {
        UcfsImage {
            disk: self.disk,
            saved: None,
            clock: self.clock,
            first_ms: self.first_ms,
        }
    }

    /// Starts the system from a disk. If there is no saved state, the system is empty.
    ///
    /// # Errors
    /// Returns the error of the partition.
    pub fn restore(image: UcfsImage, config: UcfsConfig) -> Result<(Self, SaveReport), FsError> {
        let begin = image.disk.now();
        let count = image.disk.count();
        let found = image.saved.is_some();
        let (tables, memory) = image
            .saved
            .unwrap_or_else(|| (Tables::new(count), Buffers::new(&config)));
        let mut system = Self {
            tables,
            memory,
            disk: image.disk,
            counts: UcfsCounts::default(),
            clock: image.clock,
            first_ms: image.first_ms,
            refused: 0,
            config,
        };
        let bytes = if found {
            system.saved_bytes().next_multiple_of(512)
        } else {
            512
        };
        system.disk.read_reserved(0, bytes)?;
        let seconds = (system.disk.now() - begin).as_secs();
        Ok((system, SaveReport { seconds, bytes }))
    }

    /// Number of hot files in memory, which are useful after a restart.
    #[must_use]
    pub fn hot_files(&self) -> usize {
        let rows = self.tables.files.values();
        rows.filter(|r| r.slot != super::tables::NONE && self.memory.part(r.slot) == Part::Hot)
            .count()
    }
}
