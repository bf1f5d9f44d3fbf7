//! Shutdown, crash, and recovery after them.
//!
//! Rule (USENIX 2001): after a start the hot clusters are read, then the mappings are read, then the delete
//! intents are applied. From this point on the library serves requests. It reads the other clusters when it
//! is idle. Nothing is written before all clusters are read, because the free clusters are not known earlier.

use super::{
    Hummingbird, HummingbirdConfig, HummingbirdError,
    clusters::ClusterTable,
    files::{FileNo, FileTable, NONE, hash},
    logs::{DELETE_BYTES, Delete, HOT_BYTES, LogRegions, Logs, MAPPING_BYTES},
};
use crate::{
    model::SimTime,
    systems::{ClusterDisk, Stored},
};

/// The state of the disk after a crash or a shutdown.
#[derive(Clone, Debug)]
pub struct CrashImage {
    disk: ClusterDisk,
    regions: LogRegions,
}

/// Duration and results of a start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoveryReport {
    /// Seconds until the library serves requests.
    pub serving_s: f64,
    /// Number of files known at that time.
    pub files: u64,
    /// Number of hot clusters read.
    pub hot: u64,
    /// Number of files removed by delete intents.
    pub deletes: u64,
}

impl Hummingbird {
    /// Simulates a power failure: memory is lost.
    #[must_use]
    pub fn crash(self) -> CrashImage {
        CrashImage {
            disk: self.disk,
            regions: self.logs.on_disk,
        }
    }

    /// Packs the files in memory, writes the logs and ends.
    ///
    /// # Errors
    /// Returns the first error of packing or of the partition. After an error the disk is as after a crash.
    pub fn shutdown(mut self) -> Result<CrashImage, HummingbirdError> {
        while self.files.oldest().is_some() {
            self.pack()?;
        }
        self.sync_logs()?;
        self.write_mappings()?;
        self.disk.flush();
        Ok(self.crash())
    }

    /// Starts the library from the state of a disk.
    ///
    /// # Errors
    /// Returns the error of the partition.
    pub fn recover(
        image: CrashImage,
        config: HummingbirdConfig,
    ) -> Result<(Self, RecoveryReport), HummingbirdError> {
        let CrashImage { disk, regions } = image;
        let begin = disk.now();
        let mut library = Self {
            clusters: ClusterTable::new(disk.count()),
            files: FileTable::new(),
            logs: Logs::new(begin),
            counts: super::HummingbirdCounts::default(),
            tick: 0,
            calls: 0,
            daemon: 0,
            idle_second: None,
            scan_at: Some(0),
            disk,
            config,
        };
        let hot = library.load_hot(&regions.hot)?;
        library.load_mappings(&regions)?;
        let bytes = regions.deletes.len() as u64 * DELETE_BYTES;
        library.disk.read_reserved(1 << 20, bytes.max(512))?;
        let deletes = library.apply(&regions.deletes);
        library.logs.on_disk = regions;
        let report = RecoveryReport {
            serving_s: (library.now() - begin).as_secs(),
            files: library.len() as u64,
            hot,
            deletes,
        };
        Ok((library, report))
    }

    /// Reads the hot clusters in the order of their positions on the disk.
    fn load_hot(&mut self, hot: &[u32]) -> Result<u64, HummingbirdError> {
        self.disk
            .read_reserved(0, (hot.len() as u64 * HOT_BYTES).max(512))?;
        let fit = (self.config.memory / self.config.cluster) as usize;
        let mut hot: Vec<u32> = hot.iter().copied().take(fit).collect();
        hot.sort_unstable();
        let count = hot.len() as u64;
        for cluster in hot {
            if self.disk.read(cluster, 1)?.is_none() {
                continue;
            }
            self.learn(cluster);
            let tick = self.next_tick();
            if !self.clusters.get(cluster).files.is_empty() {
                self.clusters.enter(cluster, tick);
            }
        }
        Ok(count)
    }

    /// Adds the files of the mappings. Skips a mapping if its cluster was already read, and the read showed
    /// that the cluster was written again after the mapping.
    fn load_mappings(&mut self, regions: &LogRegions) -> Result<(), HummingbirdError> {
        let bytes = regions.mappings.len() as u64 * MAPPING_BYTES;
        self.disk.read_reserved(2 << 20, bytes.max(512))?;
        for mapping in &regions.mappings {
            for (cluster, sequence, place) in &mapping.places {
                // The mappings do not show whether the cluster was written again later. If it was, a later
                // read of the cluster finds other names in it.
                let known = self.clusters.get(*cluster);
                if known.sequence > 0 && known.sequence != *sequence {
                    continue;
                }
                self.attach(mapping.hash, *cluster, *sequence, *place as usize);
            }
        }
        Ok(())
    }

    /// Adds a file at place `place` of a cluster. Only the hash of the file's name is known.
    fn attach(&mut self, hash: u32, cluster: u32, sequence: u64, place: usize) {
        let entry = self.clusters.get(cluster);
        if entry.files.get(place).is_some_and(|f| *f != NONE) {
            return;
        }
        let now = self.disk.now();
        let tick = self.next_tick();
        let file = self.files.add(hash, tick, now);
        self.files.get_mut(file).clusters.push(cluster);
        self.clusters.free.take(cluster);
        let entry = self.clusters.get_mut(cluster);
        (entry.sequence, entry.used) = (sequence, now);
        if entry.files.len() <= place {
            entry.files.resize(place + 1, NONE);
        }
        entry.files[place] = file;
    }

    /// Adds the files of a cluster that was read to the known files. If there are two versions of a name, the
    /// later written version is valid.
    fn learn(&mut self, cluster: u32) {
        let Some(written) = self.disk.peek(cluster).cloned() else {
            return;
        };
        let known = self.clusters.get(cluster);
        if known.sequence == written.sequence {
            return;
        }
        if !known.files.is_empty() {
            // The mappings described an earlier write of this cluster.
            self.clear_cluster(cluster);
        }
        let now = self.disk.now();
        let mut files = Vec::with_capacity(written.records.len());
        for record in &written.records {
            files.push(self.learn_record(cluster, written.sequence, *record));
        }
        if files.iter().all(|f| *f == NONE) {
            return;
        }
        let first = written.records.first().map_or(0, |r| r.size);
        let span = (first + self.config.head_bytes).div_ceil(self.config.cluster) as u32;
        (cluster..cluster + span.max(1)).for_each(|c| {
            self.clusters.free.take(c);
        });
        let entry = self.clusters.get_mut(cluster);
        entry.files = files;
        (entry.sequence, entry.used) = (written.sequence, now);
        entry.span = span.max(1) - 1;
    }

    fn learn_record(&mut self, cluster: u32, sequence: u64, record: Stored) -> FileNo {
        let hash = hash(record.name);
        let older = std::iter::successors(self.files.first(hash), |n| self.files.next(*n))
            .find(|n| self.name_of(*n).is_some_and(|s| s.name == record.name));
        if let Some(file) = older {
            let place = self.files.get(file).clusters.last().copied();
            let theirs = place.map_or(0, |c| self.clusters.get(c).sequence);
            let same = self
                .name_of(file)
                .is_some_and(|s| s.version == record.version);
            if same {
                let clusters = &mut self.files.get_mut(file).clusters;
                if theirs > sequence {
                    clusters.insert(0, cluster);
                } else {
                    clusters.push(cluster);
                }
                return file;
            }
            if theirs > sequence {
                return NONE;
            }
            self.forget(file);
        }
        let tick = self.next_tick();
        let file = self.files.add(hash, tick, self.disk.now());
        let entry = self.files.get_mut(file);
        entry.clusters.push(cluster);
        entry.nomem = record.size + self.config.head_bytes > self.config.cluster;
        file
    }

    /// For each delete intent, removes the file that it names, unless the file was written after the intent.
    /// Returns the number of removed files.
    fn apply(&mut self, deletes: &[Delete]) -> u64 {
        let mut applied = 0;
        for (hash, sequence) in deletes {
            let bucket = std::iter::successors(self.files.first(*hash), |n| self.files.next(*n));
            let before = |n: &FileNo| {
                let clusters = &self.files.get(*n).clusters;
                clusters
                    .iter()
                    .all(|c| self.clusters.get(*c).sequence <= *sequence)
            };
            let gone: Vec<_> = bucket.filter(before).collect();
            applied += gone.len() as u64;
            gone.into_iter().for_each(|file| self.forget(file));
        }
        applied
    }

    /// Scans up to 64 of the remaining clusters with one request.
    ///
    /// # Errors
    /// Returns the error of the partition.
    pub fn scan_some(&mut self) -> Result<(), HummingbirdError> {
        let Some(at) = self.scan_at else {
            return Ok(());
        };
        let count = 64.min(self.clusters.count() - at);
        if count == 0 {
            self.scan_at = None;
            let deletes = self.logs.on_disk.deletes.clone();
            self.apply(&deletes);
            return Ok(());
        }
        self.disk.read(at, count)?;
        (at..at + count).for_each(|c| self.learn(c));
        self.scan_at = Some(at + count);
        Ok(())
    }

    /// Scans all remaining clusters now. Returns the time that this took.
    ///
    /// # Errors
    /// Returns the error of the partition.
    pub fn finish_scan(&mut self) -> Result<SimTime, HummingbirdError> {
        let begin = self.now();
        while self.scan_at.is_some() {
            self.scan_some()?;
        }
        Ok(self.now() - begin)
    }
}
