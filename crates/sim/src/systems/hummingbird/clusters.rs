//! Cluster metadata: state, last use, files, and the order of use of those in memory.

use std::collections::BTreeSet;

use super::files::{FileNo, NONE};
use crate::{model::SimTime, systems::FreeMap};

/// Metadata of a cluster; one without files is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// In the order of the records on disk; [`NONE`] for what was deleted since.
    pub(super) files: Vec<FileNo>,
    /// Which files came along with the read of another file and were not wanted since.
    fetched: Vec<bool>,
    pub(super) in_memory: bool,
    pub(super) used: SimTime,
    pub(super) tick: u64,
    /// Uses of its files since it was written.
    pub(super) uses: u32,
    /// Number of the write that filled it.
    pub(super) sequence: u64,
    /// Readers of its files.
    pub(super) pins: u32,
    /// Clusters of a file that spans several and begins here.
    pub(super) span: u32,
}

/// All clusters.
#[derive(Clone, Debug)]
pub(super) struct ClusterTable {
    clusters: Vec<Cluster>,
    pub(super) free: FreeMap,
    /// Those in memory, by last use.
    memory: BTreeSet<(u64, u32)>,
    /// The cluster written last, and the next one under log placement.
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

    /// Bytes that the published structures would take: 28 for each cluster, 8 for each file in
    /// its list.
    pub(super) fn metadata_bytes(&self) -> u64 {
        let files: usize = self.clusters.iter().map(|c| c.files.len()).sum();
        28 * self.clusters.len() as u64 + 8 * files as u64
    }

    /// The cluster in memory that was used least recently and has no readers.
    pub(super) fn oldest(&self) -> Option<(u64, u32)> {
        let free = |c: &&(u64, u32)| self.get(c.1).pins == 0;
        self.memory.iter().find(free).copied()
    }

    /// A file of the cluster was used.
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

    /// The cluster is in memory now.
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

    /// The cluster left memory. It is clean: nothing is written.
    pub(super) fn leave(&mut self, cluster: u32) {
        let entry = &mut self.clusters[cluster as usize];
        if entry.in_memory {
            entry.in_memory = false;
            entry.fetched = Vec::new();
            self.memory.remove(&(entry.tick, cluster));
        }
    }

    /// The cluster was read for one file. Marks the others as brought along; returns their number.
    pub(super) fn mark_fetched(&mut self, cluster: u32, wanted: FileNo) -> u64 {
        let entry = &mut self.clusters[cluster as usize];
        let others = entry.files.iter().map(|f| *f != wanted && *f != NONE);
        entry.fetched = others.collect();
        entry.fetched.iter().filter(|f| **f).count() as u64
    }

    /// A file is wanted. True if it came along with another file's read and was not wanted since.
    pub(super) fn take_fetched(&mut self, cluster: u32, file: FileNo) -> bool {
        let entry = &mut self.clusters[cluster as usize];
        let place = entry.files.iter().position(|f| *f == file);
        let mark = place.and_then(|at| entry.fetched.get_mut(at));
        mark.is_some_and(std::mem::take)
    }

    /// Takes a file out of a cluster; true if it was the last one.
    pub(super) fn drop_file(&mut self, cluster: u32, file: FileNo) -> bool {
        let files = &mut self.clusters[cluster as usize].files;
        if let Some(place) = files.iter().position(|f| *f == file) {
            files[place] = NONE;
        }
        files.iter().all(|f| *f == NONE)
    }

    /// Empties a cluster (with those that continue it); returns the files it had.
    pub(super) fn clear(&mut self, cluster: u32) -> Vec<FileNo> {
        self.leave(cluster);
        let entry = std::mem::take(&mut self.clusters[cluster as usize]);
        for each in cluster..=cluster + entry.span {
            self.free.give(each);
        }
        entry.files.into_iter().filter(|f| *f != NONE).collect()
    }
}
