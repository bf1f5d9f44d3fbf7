//! The calls of the interface: write a file, start and end a read, delete, collocate, write without keeping
//! the file in memory.

use super::{
    Hummingbird, HummingbirdError,
    files::{FileNo, hash},
};
use crate::{
    model::SimTime,
    systems::{ClusterDisk, Stored},
};

/// A buffer that a read lends until [`Hummingbird::done_read_file`]. The version is used in place
/// of the contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Size in bytes.
    pub size: u64,
    /// The version that was written.
    pub version: u32,
    /// True if the file was in memory.
    pub from_memory: bool,
}

/// Sums over the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HummingbirdCounts {
    /// Number of clusters read.
    pub cluster_reads: u64,
    /// Number of clusters written.
    pub cluster_writes: u64,
    /// Total time of reading clusters.
    pub reading: SimTime,
    /// Total time of writing clusters.
    pub writing: SimTime,
    /// Number of prefetched files: files that were read together with a requested file.
    pub prefetched: u64,
    /// Number of prefetched files that were then requested. A file counts at most once for each read of its
    /// cluster.
    pub prefetch_hits: u64,
    /// Number of files put into clusters, including replicas.
    pub packed: u64,
    /// Number of replicas among the packed files: files that already were in another cluster.
    pub replicas: u64,
    /// Bytes of the packed files, including their names and heads.
    pub packed_bytes: u64,
    /// Number of files removed because their clusters were freed or overwritten.
    pub expired: u64,
    /// Number of hints that failed.
    pub hints_failed: u64,
    /// Number of clusters that were read in vain: the file found by its hash had a name other than the
    /// requested name.
    pub collisions: u64,
}

type Done<T> = Result<T, HummingbirdError>;

impl Hummingbird {
    /// Stores a file and returns its size. The library owns the file's buffer from now on.
    ///
    /// # Errors
    /// Returns [`HummingbirdError::TooLarge`] if the file does not fit into a cluster,
    /// [`HummingbirdError::NoCluster`] or [`HummingbirdError::Busy`] if memory cannot be freed, and
    /// [`HummingbirdError::Exists`] for a name that is in memory. (A name that is only on disk is replaced,
    /// because the newest file of a name is the valid file.)
    pub fn write_file(&mut self, name: u64, size: u64, version: u32) -> Done<u64> {
        self.disk.advance(self.config.call_cpu);
        if size + self.config.head_bytes > self.config.cluster {
            return Err(HummingbirdError::TooLarge);
        }
        if self.known(name).is_some() {
            return Err(HummingbirdError::Exists);
        }
        self.make_room(size)?;
        let tick = self.next_tick();
        let file = self.files.add(hash(name), tick, self.disk.now());
        self.files.make_unpacked(file, name, size, version);
        Ok(size)
    }

    /// Stores a file without keeping it in memory: the file is immediately written into clusters that contain
    /// no other file. A later read keeps it in memory only until the call of [`Hummingbird::done_read_file`].
    ///
    /// # Errors
    /// Returns [`HummingbirdError::NoCluster`] if there are not enough free clusters in a row, and
    /// [`HummingbirdError::Exists`] as [`Hummingbird::write_file`] does.
    pub fn write_nomem_file(&mut self, name: u64, size: u64, version: u32) -> Done<u64> {
        self.disk.advance(self.config.call_cpu);
        if self.known(name).is_some() {
            return Err(HummingbirdError::Exists);
        }
        let count = (size + self.config.head_bytes).div_ceil(self.config.cluster) as u32;
        let near = self.near();
        let (first, found) = self
            .clusters
            .free
            .run(near, count)
            .ok_or(HummingbirdError::NoCluster)?;
        if found < count {
            return Err(HummingbirdError::NoCluster);
        }
        let mut records = vec![Vec::new(); count as usize];
        records[0].push(Stored {
            name,
            size,
            version,
        });
        self.write_clusters(first, records)?;
        let tick = self.next_tick();
        let now = self.disk.now();
        let file = self.files.add(hash(name), tick, now);
        let entry = self.files.get_mut(file);
        entry.nomem = true;
        entry.clusters.push(first);
        (0..count).for_each(|n| {
            self.clusters.free.take(first + n);
        });
        let sequence = self.disk.peek(first).map_or(0, |w| w.sequence);
        let cluster = self.clusters.get_mut(first);
        cluster.files.push(file);
        (cluster.used, cluster.span, cluster.sequence) = (now, count - 1, sequence);
        Ok(size)
    }

    /// Finds a file and lends its buffer. If no cluster in memory contains the file, a cluster is read. Every
    /// successful call must be followed by one call of [`Hummingbird::done_read_file`].
    ///
    /// # Errors
    /// Returns [`HummingbirdError::NotFound`] if there is no such file, and [`HummingbirdError::NoCluster`]
    /// or [`HummingbirdError::Busy`] if memory for the cluster cannot be freed.
    pub fn read_file(&mut self, name: u64) -> Done<Contents> {
        self.disk.advance(self.config.call_cpu);
        if let Some((file, stored)) = self.known(name) {
            let used_cluster = self.memory_cluster(file);
            if let Some(cluster) = used_cluster {
                let hit = self.clusters.take_fetched(cluster, file);
                self.counts.prefetch_hits += u64::from(hit);
            }
            self.lend(file, used_cluster);
            return Ok(contents(stored, true));
        }
        let mut next = self.files.first(hash(name));
        while let Some(file) = next {
            next = self.files.next(file);
            if let Some(cluster) = self.memory_cluster(file) {
                // The call of `known` above compared the names of the files with this hash that were in
                // memory. Since then, an iteration of this loop may have read a cluster, and this file may
                // have come into memory with that cluster. So its name is compared here.
                if let Some(stored) = self.name_of(file).filter(|s| s.name == name) {
                    self.lend(file, Some(cluster));
                    return Ok(contents(stored, false));
                }
                continue;
            }
            if self.files.get(file).unpacked.is_some() {
                continue;
            }
            if let Some(stored) = self.fetch(file, name)? {
                return Ok(contents(stored, false));
            }
            self.counts.collisions += 1;
        }
        Err(HummingbirdError::NotFound)
    }

    /// Ends a read that [`Hummingbird::read_file`] started.
    ///
    /// # Errors
    /// Returns [`HummingbirdError::NotFound`] if there is no read to end.
    pub fn done_read_file(&mut self, name: u64) -> Done<u64> {
        let mut next = self.files.first(hash(name));
        while let Some(file) = next {
            next = self.files.next(file);
            let entry = self.files.get(file);
            if entry.readers == 0 || self.name_of(file).is_none_or(|s| s.name != name) {
                continue;
            }
            let (nomem, clusters) = (entry.nomem, entry.clusters.clone());
            self.files.get_mut(file).readers -= 1;
            for cluster in clusters {
                let cluster = self.clusters.get_mut(cluster);
                cluster.pins = cluster.pins.saturating_sub(1);
            }
            let tick = self.next_tick();
            if !nomem {
                self.files.touch(file, tick, self.disk.now());
            }
            return Ok(0);
        }
        Err(HummingbirdError::NotFound)
    }

    /// Removes a file from memory and disk.
    ///
    /// # Errors
    /// Returns [`HummingbirdError::Busy`] if the file has readers, and [`HummingbirdError::NotFound`] if
    /// there is no such file.
    pub fn delete_file(&mut self, name: u64) -> Done<u64> {
        self.disk.advance(self.config.call_cpu);
        let mut file = match self.known(name) {
            Some((file, _)) => file,
            None => self.on_disk(name).ok_or(HummingbirdError::NotFound)?,
        };
        loop {
            if self.files.get(file).readers > 0 {
                return Err(HummingbirdError::Busy);
            }
            if !self.files.get(file).clusters.is_empty() {
                self.log_delete(hash(name))?;
            }
            self.forget(file);
            // Also remove older files of this name that are only on disk. They remain because `write_file`
            // replaces a name without a search on disk.
            match self.on_disk(name) {
                Some(older) => file = older,
                None => return Ok(0),
            }
        }
    }

    /// Gives the hint that `second` should be put beside `first` on disk. Both files must have been written
    /// before.
    ///
    /// # Errors
    /// Returns [`HummingbirdError::NotFound`] if the hint cannot be kept, because one of the files is not in
    /// memory or `first` was already packed. A client may ignore this error.
    pub fn collocate_files(&mut self, first: u64, second: u64) -> Done<u64> {
        let both = (self.known(first), self.known(second));
        let (Some((first, _)), Some((second, _))) = both else {
            self.counts.hints_failed += 1;
            return Err(HummingbirdError::NotFound);
        };
        let Some(unpacked) = &mut self.files.get_mut(first).unpacked else {
            self.counts.hints_failed += 1;
            return Err(HummingbirdError::NotFound);
        };
        if first != second && !unpacked.hints.contains(&second) {
            unpacked.hints.push(second);
        }
        Ok(0)
    }

    /// The file of a name, if it is in memory. The name is compared with the contents in memory.
    pub(super) fn known(&self, name: u64) -> Option<(FileNo, Stored)> {
        let files = std::iter::successors(self.files.first(hash(name)), |n| self.files.next(*n));
        files
            .filter(|file| self.in_memory(*file))
            .find_map(|file| Some((file, self.name_of(file).filter(|s| s.name == name)?)))
    }

    pub(super) fn in_memory(&self, file: FileNo) -> bool {
        self.files.get(file).unpacked.is_some() || self.memory_cluster(file).is_some()
    }

    /// A cluster in memory that contains the file.
    pub(super) fn memory_cluster(&self, file: FileNo) -> Option<u32> {
        let mut clusters = self.files.get(file).clusters.iter().rev();
        clusters.find(|c| self.clusters.get(**c).in_memory).copied()
    }

    /// Name, size and version of a file. They come from its metadata, from a cluster in memory, or from its
    /// newest cluster on disk. No simulated time passes.
    pub(super) fn name_of(&self, file: FileNo) -> Option<Stored> {
        let entry = self.files.get(file);
        if let Some(unpacked) = &entry.unpacked {
            return Some(Stored {
                name: unpacked.name,
                size: unpacked.size,
                version: unpacked.version,
            });
        }
        let cluster = self
            .memory_cluster(file)
            .or(entry.clusters.last().copied())?;
        record(&self.disk, self.clusters.get(cluster), cluster, file)
    }

    fn lend(&mut self, file: FileNo, cluster: Option<u32>) {
        let tick = self.next_tick();
        let now = self.disk.now();
        let entry = self.files.get_mut(file);
        entry.readers += 1;
        let clusters = entry.clusters.clone();
        for each in clusters {
            self.clusters.get_mut(each).pins += 1;
        }
        self.files.touch(file, tick, now);
        if let Some(cluster) = cluster {
            self.clusters.touch(cluster, tick, now);
        }
    }

    /// Reads the cluster of a file. Returns the file's record if its name is `name`.
    fn fetch(&mut self, file: FileNo, name: u64) -> Done<Option<Stored>> {
        let Some(&cluster) = self.files.get(file).clusters.last() else {
            return Ok(None);
        };
        let nomem = self.files.get(file).nomem;
        if !nomem {
            // Freeing memory could also free or overwrite this cluster before the cluster is read. The pin
            // prevents this.
            self.clusters.get_mut(cluster).pins += 1;
            let room = self.make_room(self.config.cluster);
            self.clusters.get_mut(cluster).pins -= 1;
            room?;
        }
        let begin = self.disk.now();
        let span = self.clusters.get(cluster).span;
        self.disk.read(cluster, span + 1)?;
        self.counts.cluster_reads += 1;
        self.counts.reading += self.disk.now() - begin;
        let found = record(&self.disk, self.clusters.get(cluster), cluster, file)
            .filter(|stored| stored.name == name);
        if !nomem {
            let tick = self.next_tick();
            self.clusters.enter(cluster, tick);
            self.counts.prefetched += self.clusters.mark_fetched(cluster, file);
        }
        if found.is_some() {
            self.lend(file, Some(cluster));
        }
        Ok(found)
    }

    /// The newest file of a name that is only on disk.
    fn on_disk(&self, name: u64) -> Option<FileNo> {
        let mut files =
            std::iter::successors(self.files.first(hash(name)), |n| self.files.next(*n));
        files.find(|file| {
            !self.in_memory(*file) && self.name_of(*file).is_some_and(|s| s.name == name)
        })
    }
}

const fn contents(stored: Stored, from_memory: bool) -> Contents {
    Contents {
        size: stored.size,
        version: stored.version,
        from_memory,
    }
}

/// The record of a file in a cluster. Records and the cluster's list of files have the same order.
fn record(
    disk: &ClusterDisk,
    cluster: &super::clusters::Cluster,
    number: u32,
    file: FileNo,
) -> Option<Stored> {
    let place = cluster.files.iter().position(|f| *f == file)?;
    let written = disk
        .peek(number)
        .filter(|w| w.sequence == cluster.sequence)?;
    written.records.get(place).copied()
}
