//! Cluster metadata: state, last use, files, and the order of use of the clusters in memory.

use std::collections::BTreeSet;

use super::files::{FileNo, NONE};
use crate::{model::SimTime, systems::FreeMap};

/// Metadata of a cluster. A cluster without files is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// Files in the order of their records on disk; [`NONE`] for a file that was deleted since.
    pub(super) files: Vec<FileNo>,
    /// For each file: true if it was prefetched by the read of another file and not requested since.
    fetched: Vec<bool>,
    pub(super) in_memory: bool,
    pub(super) used: SimTime,
    pub(super) tick: u64,
    /// Number of uses of the cluster's files since the cluster was written.
    pub(super) uses: u32,
    /// Number of the write that filled the cluster.
    pub(super) sequence: u64,
    /// Number of readers of the cluster's files.
    pub(super) pins: u32,
    /// Number of clusters after this cluster that continue its file.
    pub(super) span: u32,
}

/// The metadata of all clusters.
#[derive(Clone, Debug)]
pub(super) struct ClusterTable {
    clusters: Vec<Cluster>,
    pub(super) free: FreeMap,
    /// Clusters in memory, by last use.
    memory: BTreeSet<(u64, u32)>,
    /// The cluster written last. `next` is the cluster that log placement tries next.
    pub(super) last_written: u32,
    pub(super) next: u32,
}

impl ClusterTable {
    pub(super) fn new(count: u32) -> Self {
        Self {
            clusters: vec![Cluster::default(); count as usize],
            free: FreeMap::new(count),
            memory: BTreeSet::new(),
            last_written: 0,
            next: 0,
        }
    }

    pub(super) fn get(&self, cluster: u32) -> &Cluster {
        &self.clusters[cluster as usize]
    }

    pub(super) fn get_mut(&mut self, cluster: u32) -> &mut Cluster {
        &mut self.clusters[cluster as usize]
    }

    pub(super) fn count(&self) -> u32 {
        self.clusters.len() as u32
    }

    pub(super) fn in_memory(&self) -> usize {
        self.memory.len()
    }

    /// Clusters in memory, most recently used first.
    pub(super) fn recent(&self) -> impl Iterator<Item = u32> + '_ {
        self.memory.iter().rev().map(|(_, cluster)| *cluster)
    }

    /// Bytes that the published structures would take: 28 bytes for each cluster, and 8 bytes for each file
    /// in its list.
    pub(super) fn metadata_bytes(&self) -> u64 {
        let files: usize = self.clusters.iter().map(|c| c.files.len()).sum();
        28 * self.clusters.len() as u64 + 8 * files as u64
    }

    /// The least recently used cluster in memory that has no readers.
    pub(super) fn oldest(&self) -> Option<(u64, u32)> {
        let free = |c: &&(u64, u32)| self.get(c.1).pins == 0;
        self.memory.iter().find(free).copied()
    }

    /// Records that a file of the cluster was used.
    pub(super) fn touch(&mut self, cluster: u32, tick: u64, now: SimTime) {
        let entry = &mut self.clusters[cluster as usize];
        let before = (entry.tick, cluster);
        (entry.tick, entry.used) = (tick, now);
        entry.uses = entry.uses.saturating_add(1);
        if entry.in_memory {
            self.memory.remove(&before);
            self.memory.insert((tick, cluster));
        }
    }

    /// Records that the cluster is now in memory.
    pub(super) fn enter(&mut self, cluster: u32, tick: u64) {
        let entry = &mut self.clusters[cluster as usize];
        if entry.in_memory {
            self.memory.remove(&(entry.tick, cluster));
        }
        let entry = &mut self.clusters[cluster as usize];
        entry.in_memory = true;
        entry.tick = tick;
        self.memory.insert((tick, cluster));
    }

    /// Records that the cluster left memory. The cluster is clean, so nothing is written.
    pub(super) fn leave(&mut self, cluster: u32) {
        let entry = &mut self.clusters[cluster as usize];
        if entry.in_memory {
            entry.in_memory = false;
            entry.fetched = Vec::new();
            self.memory.remove(&(entry.tick, cluster));
        }
    }

    /// Called after the cluster was read for one file. Marks the other files as prefetched;
    /// returns their number.
    pub(super) fn mark_fetched(&mut self, cluster: u32, wanted: FileNo) -> u64 {
        let entry = &mut self.clusters[cluster as usize];
        let others = entry.files.iter().map(|f| *f != wanted && *f != NONE);
        entry.fetched = others.collect();
        entry.fetched.iter().filter(|f| **f).count() as u64
    }

    /// Called when a file is requested. Returns true if the file is marked as prefetched, and clears this
    /// mark.
    pub(super) fn take_fetched(&mut self, cluster: u32, file: FileNo) -> bool {
        let entry = &mut self.clusters[cluster as usize];
        let place = entry.files.iter().position(|f| *f == file);
        let mark = place.and_then(|at| entry.fetched.get_mut(at));
        mark.is_some_and(std::mem::take)
    }

    /// Removes a file from a cluster. Returns true if the cluster has no more files.
    pub(super) fn drop_file(&mut self, cluster: u32, file: FileNo) -> bool {
        let files = &mut self.clusters[cluster as usize].files;
        if let Some(place) = files.iter().position(|f| *f == file) {
            files[place] = NONE;
        }
        files.iter().all(|f| *f == NONE)
    }

    /// Empties a cluster and the clusters that continue it. Returns the files that it contained.
    pub(super) fn clear(&mut self, cluster: u32) -> Vec<FileNo> {
        self.leave(cluster);
        let entry = std::mem::take(&mut self.clusters[cluster as usize]);
        for each in cluster..=cluster + entry.span {
            self.free.give(each);
        }
        entry.files.into_iter().filter(|f| *f != NONE).collect()
    }
}
