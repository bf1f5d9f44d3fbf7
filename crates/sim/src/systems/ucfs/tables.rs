//! The two tables of UCFS: the file table by name, and the cluster table by number.
//!
//! Rule: for each file, the file table contains the MD5 of its URL (16 bytes), its cluster (4), its
//! modification time (4) and one bit, "in memory". An entry has 24 bytes and one bit. The cluster table
//! contains the time of the last access, a counter and a state.

use std::collections::{HashMap, VecDeque};

use foxy_policy::{CachePolicy, LfuAging};

use crate::{
    model::{SimTime, hash::BuildIdHasher},
    systems::FreeMap,
};

/// Value that means "no slot" or "no cluster".
pub(super) const NONE: u32 = u32::MAX;

/// A row of the file table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// First cluster of the file on disk, or [`NONE`].
    pub(super) cluster: u32,
    /// Slot of the file in memory, or [`NONE`] if the file is not in memory. The paper has a bit MEM for
    /// this.
    pub(super) slot: u32,
}

/// A row of the cluster table. A row without files is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// Files in the cluster, in the order on disk.
    pub(super) files: Vec<u64>,
    /// Further clusters that continue the cluster's only file, in the order of the file.
    pub(super) array: Vec<u32>,
    /// True if the cluster's files are in memory too (a virtual cluster).
    pub(super) in_memory: bool,
    pub(super) uses: u32,
    /// Number of the write that filled the cluster.
    pub(super) written: u64,
}

/// The file table and the cluster table.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) files: HashMap<u64, Entry, BuildIdHasher>,
    pub(super) clusters: Vec<Cluster>,
    pub(super) free: FreeMap,
    /// Clusters by use, for replacement.
    lfu: LfuAging<u32, ()>,
    /// Clusters in the order of writing: time, cluster, number of the write.
    young: VecDeque<(SimTime, u32, u64)>,
    writes: u64,
}

impl Tables {
    pub(super) fn new(count: u32) -> Self {
        Self {
            files: HashMap::default(),
            clusters: vec![Cluster::default(); count as usize],
            free: FreeMap::new(count),
            lfu: LfuAging::new(u64::MAX),
            young: VecDeque::new(),
            writes: 0,
        }
    }

    pub(super) fn get(&self, cluster: u32) -> &Cluster {
        &self.clusters[cluster as usize]
    }

    /// Bytes that both tables take in their published form. A row of the cluster table is assumed to have 16
    /// bytes, because the published digits are lost.
    pub(super) fn bytes(&self) -> u64 {
        (self.files.len() as u64 * 193).div_ceil(8) + 16 * self.clusters.len() as u64
    }

    /// Records that a cluster was filled.
    pub(super) fn fill(&mut self, cluster: u32, files: Vec<u64>, array: Vec<u32>, now: SimTime) {
        self.writes += 1;
        self.free.take(cluster);
        for each in &array {
            self.free.take(*each);
        }
        self.young.push_back((now, cluster, self.writes));
        let _ = self.lfu.insert(cluster, (), 1, &mut Vec::new());
        self.clusters[cluster as usize] = Cluster {
            files,
            array,
            in_memory: false,
            uses: 0,
            written: self.writes,
        };
    }

    /// Records that a file of the cluster was used.
    pub(super) fn touch(&mut self, cluster: u32) {
        let entry = &mut self.clusters[cluster as usize];
        entry.uses = entry.uses.saturating_add(1);
        self.lfu.get(&cluster);
    }

    /// Voids the disk copy: the cluster becomes free, and its files have no place on disk. Removes the rows
    /// of files that are not in memory, and returns the number of these rows.
    pub(super) fn void(&mut self, cluster: u32) -> u64 {
        let entry = std::mem::take(&mut self.clusters[cluster as usize]);
        self.lfu.remove(&cluster);
        self.free.give(cluster);
        for each in entry.array {
            self.free.give(each);
        }
        let mut gone = 0;
        for file in entry.files {
            let Some(row) = self
                .files
                .get_mut(&file)
                .filter(|row| row.cluster == cluster)
            else {
                continue;
            };
            row.cluster = NONE;
            if row.slot == NONE {
                self.files.remove(&file);
                gone += 1;
            }
        }
        gone
    }

    /// Voids the clusters that were not used for `age` after they were written (one-timers).
    pub(super) fn void_one_timers(&mut self, now: SimTime, age: SimTime) -> u64 {
        let mut gone = 0;
        while let Some((written, cluster, number)) = self.young.front().copied() {
            if now - written <= age {
                break;
            }
            self.young.pop_front();
            let entry = self.get(cluster);
            let same = !entry.files.is_empty() && entry.written == number;
            if same && entry.uses == 0 && !entry.in_memory {
                gone += self.void(cluster);
            }
        }
        gone
    }

    /// Voids the cluster that is next in the order of replacement; `None` if there is no cluster.
    pub(super) fn replace(&mut self) -> Option<u64> {
        let victim = self.lfu.evict()?.key;
        Some(self.void(victim))
    }
}
