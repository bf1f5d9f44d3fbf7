//! Packing: the choice of files for a cluster, the place of the cluster, and the freeing of memory.

use super::{
    Hummingbird, HummingbirdError, Placement,
    files::{FileNo, NONE},
};
use crate::systems::Stored;

/// Largest number of files that packing tries in vain to add to a cluster. Then packing stops.
const MAX_ATTEMPTS: usize = 64;

/// Contents of a cluster that is being packed.
#[derive(Debug, Default)]
struct Parcel {
    files: Vec<FileNo>,
    records: Vec<Stored>,
    bytes: u64,
    /// Tick (number in the order of all uses) of the most recent use of a file in this cluster.
    tick: u64,
}

impl Hummingbird {
    /// Frees memory for `bytes` more bytes: the oldest files and clusters leave memory until enough memory is
    /// free.
    ///
    /// # Errors
    /// Returns the error of packing if no cluster can leave memory and no file can be packed.
    pub(super) fn make_room(&mut self, bytes: u64) -> Result<(), HummingbirdError> {
        let most = self.config.memory.saturating_sub(bytes);
        self.shrink_to(most)
    }

    /// Frees memory until at most `most` bytes are in use.
    pub(super) fn shrink_to(&mut self, most: u64) -> Result<(), HummingbirdError> {
        while self.memory_used() > most {
            let file = self.files.oldest().map(|f| self.files.get(f).tick);
            let cluster = self.clusters.oldest();
            match (file, cluster) {
                (Some(file), Some((tick, oldest))) => {
                    // Files older than the oldest cluster are packed first.
                    if tick < file || self.pack().is_err() {
                        self.clusters.leave(oldest);
                    }
                }
                (Some(_), None) => self.pack()?,
                (None, Some((_, oldest))) => self.clusters.leave(oldest),
                (None, None) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Packs one cluster, beginning with the least recently used file, and writes it.
    ///
    /// # Errors
    /// Returns [`HummingbirdError::NoCluster`] if no cluster is free (with log placement: if, in addition, no
    /// cluster can be overwritten), [`HummingbirdError::Busy`] if no file can be packed (all files have
    /// readers), and errors of the partition.
    pub(super) fn pack(&mut self) -> Result<(), HummingbirdError> {
        if self.scan_at.is_some() {
            // The scan finds which clusters are free, so it must end before the first write.
            self.finish_scan()?;
        }
        let Some(cluster) = self.place() else {
            return Err(HummingbirdError::NoCluster);
        };
        let parcel = self.parcel();
        if parcel.files.is_empty() {
            return Err(HummingbirdError::Busy);
        }
        self.disk
            .advance(self.config.copy_cpu * parcel.bytes.div_ceil(4 << 10));
        self.clusters.free.take(cluster);
        self.write_clusters(cluster, vec![parcel.records])?;
        self.counts.packed += parcel.files.len() as u64;
        self.counts.packed_bytes += parcel.bytes;
        for file in &parcel.files {
            self.files.take_unpacked(*file);
            let clusters = &mut self.files.get_mut(*file).clusters;
            self.counts.replicas += u64::from(!clusters.is_empty());
            clusters.push(cluster);
        }
        let now = self.disk.now();
        let sequence = self.disk.sequence();
        let entry = self.clusters.get_mut(cluster);
        entry.files = parcel.files;
        (entry.used, entry.sequence, entry.uses) = (now, sequence, 0);
        self.clusters.enter(cluster, parcel.tick);
        Ok(())
    }

    /// Collects files for a cluster, beginning with the least recently used file. After each collected file,
    /// the files that its hints name are added.
    fn parcel(&self) -> Parcel {
        let mut parcel = Parcel::default();
        let enough = (self.config.cluster as f64 * self.config.fill) as u64;
        let mut next = self.files.oldest();
        let mut refused = 0;
        while let Some(file) = next {
            next = self.files.newer(file);
            if parcel.files.contains(&file) {
                continue;
            }
            if !self.add(&mut parcel, file) {
                refused += 1;
            } else if let Some(unpacked) = &self.files.get(file).unpacked {
                let hints = unpacked.hints.iter().filter(|h| **h != NONE);
                // A file that a hint names is left out if it does not fit into the cluster.
                for hint in hints {
                    self.add(&mut parcel, *hint);
                }
            }
            if parcel.bytes >= enough || refused >= MAX_ATTEMPTS {
                break;
            }
        }
        parcel
    }

    /// Adds a file if it is in memory, fits and has no readers. Otherwise returns false.
    fn add(&self, parcel: &mut Parcel, file: FileNo) -> bool {
        let entry = self.files.get(file);
        if !entry.live || entry.nomem || entry.readers > 0 || !self.in_memory(file) {
            return false;
        }
        let Some(record) = self.name_of(file) else {
            return false;
        };
        let bytes = record.size + self.config.head_bytes;
        if parcel.bytes + bytes > self.config.cluster || parcel.files.contains(&file) {
            return false;
        }
        parcel.tick = parcel.tick.max(entry.tick);
        parcel.bytes += bytes;
        parcel.files.push(file);
        parcel.records.push(record);
        true
    }

    /// Chooses the cluster to write next. If necessary, frees clusters first.
    fn place(&mut self) -> Option<u32> {
        if self.config.placement == Placement::Log {
            return self.next_of_log();
        }
        if self.clusters.free.total() == 0 {
            self.free_disk_space();
        }
        self.clusters.free.nearest(self.near())
    }

    /// The cluster near which new clusters should be placed.
    pub(super) fn near(&self) -> u32 {
        match self.config.placement {
            Placement::Closest => self.disk.position(),
            Placement::PreviousWrite | Placement::Log => self.clusters.last_written,
        }
    }

    /// For log placement: returns the next cluster without readers, and removes its files.
    fn next_of_log(&mut self) -> Option<u32> {
        for _ in 0..self.clusters.count() {
            let at = self.clusters.next;
            self.clusters.next = (at + 1) % self.clusters.count();
            if self.clusters.free.is_free(at) {
                return Some(at);
            }
            if self.clusters.get(at).pins == 0 && !self.clusters.get(at).files.is_empty() {
                self.clear_cluster(at);
                return Some(at);
            }
        }
        None
    }

    /// Writes clusters and counts the writes.
    pub(super) fn write_clusters(
        &mut self,
        first: u32,
        clusters: Vec<Vec<Stored>>,
    ) -> Result<(), HummingbirdError> {
        let begin = self.disk.now();
        self.counts.cluster_writes += clusters.len() as u64;
        self.disk.write(first, clusters)?;
        self.counts.writing += self.disk.now() - begin;
        self.clusters.last_written = first;
        Ok(())
    }

    /// Empties a cluster. Files that are in no other cluster and not in memory are removed.
    pub(super) fn clear_cluster(&mut self, cluster: u32) {
        for file in self.clusters.clear(cluster) {
            let entry = self.files.get_mut(file);
            entry.clusters.retain(|c| *c != cluster);
            if entry.clusters.is_empty() && entry.unpacked.is_none() {
                self.files.remove(file);
                self.counts.expired += 1;
            }
        }
    }

    /// Removes a file, and frees the clusters that become empty.
    pub(super) fn forget(&mut self, file: FileNo) {
        self.files.take_unpacked(file);
        for cluster in std::mem::take(&mut self.files.get_mut(file).clusters) {
            if self.clusters.drop_file(cluster, file) {
                self.clusters.clear(cluster);
            }
        }
        self.files.remove(file);
    }
}
