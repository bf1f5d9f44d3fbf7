//! Removal of files from memory. Files that leave memory are grouped into clusters on two levels (by site,
//! then by number of requests), and several clusters are written with one request.
//!
//! Rules: the file that leaves memory first is the oldest page (HTML file) in the older half of the cold
//! buffer. If there is no page in this half, the oldest cold file leaves first. First level: files of the
//! same site from the older half of the cold buffer join the leaving file, as far as they fit into its
//! cluster. Files with the same path join before the other files of the site. Second level: small files join
//! whose number of requests is equal to that of the leaving file, or differs by one. This level ends when the
//! free bytes of the cluster fall to a threshold. Before a write, a row of free clusters is searched near the
//! head of the drive. All groups that fit into this row are written with one request.

use super::{Part, Record, Ucfs, buffers::Held, tables::NONE};
use crate::model::FsError;

/// Maximum number of files that one level of grouping checks.
const MAX_CANDIDATES: usize = 256;

/// Files that share a cluster, or one file that needs several clusters.
#[derive(Debug, Default)]
struct Group {
    slots: Vec<u32>,
    bytes: u64,
}

impl Ucfs {
    /// Reduces the three buffers to their shares. Files that exceed the share of the cold buffer leave
    /// memory.
    pub(super) fn settle(&mut self) -> Result<(), FsError> {
        self.memory.settle();
        while self.memory.over() {
            self.swap_out()?;
        }
        Ok(())
    }

    /// Removes files from memory until their groups fill `write_clusters` clusters, and writes these
    /// clusters. Files with valid copies on disk leave without a write. If such files free enough memory
    /// before the first group is chosen, nothing is written.
    fn swap_out(&mut self) -> Result<(), FsError> {
        let mut pool: Vec<Vec<Record>> = Vec::new();
        let mut clusters = 0;
        while clusters < self.config.write_clusters.max(1) {
            let Some(slot) = self.memory.victim(self.config.grouping) else {
                break;
            };
            if self.leave_clean(slot) {
                if pool.is_empty() && !self.memory.over() {
                    return Ok(());
                }
                continue;
            }
            let group = self.group(slot);
            clusters += group.bytes.div_ceil(self.config.cluster).max(1) as u32;
            pool.push(self.take(&group));
        }
        self.write(pool)
    }

    /// Removes a file from memory without a write, if the file has a valid copy on disk. If the other files
    /// of its cluster are cold too, they also leave memory. Returns false if there is no valid copy, or if
    /// the copy had to be voided.
    fn leave_clean(&mut self, slot: u32) -> bool {
        let name = self.memory.get(slot).name;
        let Some(row) = self.row(name).filter(|row| row.cluster != NONE) else {
            return false;
        };
        let files = self.tables.get(row.cluster).files.clone();
        let held: Vec<_> = files
            .iter()
            .filter_map(|f| {
                self.row(*f)
                    .filter(|r| r.slot != NONE)
                    .map(|r| (*f, r.slot))
            })
            .collect();
        if held.iter().all(|(_, s)| self.memory.part(*s) == Part::Cold) {
            for (file, slot) in held {
                self.memory.remove(slot);
                self.set_slot(file, NONE);
            }
            self.tables.clusters[row.cluster as usize].in_memory = false;
            self.counts.clean_evictions += 1;
            return true;
        }
        if self.config.keep_partial {
            self.memory.remove(slot);
            self.set_slot(name, NONE);
            return true;
        }
        self.tables.void(row.cluster);
        false
    }

    /// Chooses the group of files that leave together with `first`.
    fn group(&self, first: u32) -> Group {
        let mut group = Group::default();
        let head = self.memory.get(first);
        self.add(&mut group, first);
        if group.bytes > self.config.cluster {
            return group;
        }
        if !self.config.grouping {
            let oldest: Vec<_> = self.memory.oldest().take(MAX_CANDIDATES).collect();
            oldest.into_iter().for_each(|s| self.join(&mut group, s));
            return group;
        }
        let site: Vec<_> = self
            .memory
            .of_host(head.host)
            .take(MAX_CANDIDATES)
            .collect();
        let same = |s: &&u32| self.memory.get(**s).path == head.path;
        for slot in site.iter().filter(same) {
            self.join(&mut group, *slot);
        }
        for slot in site.iter().filter(|s| !same(s)) {
            self.join(&mut group, *slot);
        }
        let counts = [
            Some(head.count),
            head.count.checked_add(1),
            head.count.checked_sub(1),
        ];
        for count in counts.into_iter().flatten() {
            let alike = self.memory.of_count(count).take(MAX_CANDIDATES);
            let small = alike.filter(|s| self.memory.get(*s).size <= self.config.fill_below);
            let small: Vec<_> = small.collect();
            for slot in small {
                if self.config.cluster.saturating_sub(group.bytes) <= self.config.fill_above {
                    return group;
                }
                self.join(&mut group, slot);
            }
        }
        group
    }

    /// Adds a file to a group if it fits and has no valid copy on disk.
    fn join(&self, group: &mut Group, slot: u32) {
        let held = self.memory.get(slot);
        let fits = group.bytes + held.size + self.config.head_bytes <= self.config.cluster;
        let unstored = self.row(held.name).is_some_and(|row| row.cluster == NONE);
        if fits && unstored && !group.slots.contains(&slot) {
            self.add(group, slot);
        }
    }

    fn add(&self, group: &mut Group, slot: u32) {
        group.bytes += self.memory.get(slot).size + self.config.head_bytes;
        group.slots.push(slot);
    }

    /// Removes the files of a group from memory.
    fn take(&mut self, group: &Group) -> Vec<Record> {
        let mut records = Vec::with_capacity(group.slots.len());
        for slot in &group.slots {
            let held = self.memory.remove(*slot);
            self.set_slot(held.name, NONE);
            records.push(record(&held));
        }
        records
    }

    /// Writes groups near the head. One request writes as many groups as there are free clusters in a row.
    fn write(&mut self, pool: Vec<Vec<Record>>) -> Result<(), FsError> {
        let mut waiting = pool.into_iter().peekable();
        while let Some(group) = waiting.next() {
            let need = self.clusters_of(&group);
            if !self.make_free(need) {
                self.lose(&group);
                continue;
            }
            if need > 1 {
                self.write_large(group, need)?;
                continue;
            }
            let mut groups = vec![group];
            let most = self.config.write_clusters.min(self.tables.free.total());
            let (first, room) = self
                .tables
                .free
                .run(self.disk.position(), most.max(1))
                .ok_or(FsError::NoSpace)?;
            while (groups.len() as u32) < room {
                let single = |g: &Vec<Record>| self.clusters_of(g) == 1;
                match waiting.next_if(single) {
                    Some(next) => groups.push(next),
                    None => break,
                }
            }
            self.write_run(first, groups)?;
        }
        self.disk.wait_below(self.config.pool);
        Ok(())
    }

    fn clusters_of(&self, group: &[Record]) -> u32 {
        let bytes = |r: &Record| r.size + self.config.head_bytes;
        group
            .iter()
            .map(bytes)
            .sum::<u64>()
            .div_ceil(self.config.cluster)
            .max(1) as u32
    }

    fn write_run(&mut self, first: u32, groups: Vec<Vec<Record>>) -> Result<(), FsError> {
        self.counts.writes += 1;
        self.counts.clusters_written += groups.len() as u64;
        for (cluster, group) in (first..).zip(&groups) {
            self.enter(cluster, group, Vec::new());
        }
        self.disk.write_behind(first, groups)
    }

    /// Writes a file of several clusters: in a row if there is a row of free clusters, otherwise in any free
    /// clusters. The first cluster contains the list of the other clusters.
    fn write_large(&mut self, group: Vec<Record>, need: u32) -> Result<(), FsError> {
        let mut places = Vec::new();
        while (places.len() as u32) < need {
            let near = places.last().map_or(self.disk.position(), |p| p + 1);
            let left = need - places.len() as u32;
            let (first, count) = self.tables.free.run(near, left).ok_or(FsError::NoSpace)?;
            for cluster in first..first + count {
                self.tables.free.take(cluster);
                places.push(cluster);
            }
        }
        let array = places.split_off(1);
        let first = places[0];
        self.enter(first, &group, array.clone());
        self.counts.clusters_written += u64::from(need);
        let mut contents = Some(group);
        for (start, count) in super::runs(first, &array) {
            let mut clusters = vec![Vec::new(); count as usize];
            if let Some(group) = contents.take() {
                clusters[0] = group;
            }
            self.counts.writes += 1;
            self.disk.write_behind(start, clusters)?;
        }
        Ok(())
    }

    /// Records the position of a group in the tables.
    fn enter(&mut self, cluster: u32, group: &[Record], array: Vec<u32>) {
        let names: Vec<u64> = group.iter().map(|r| r.name).collect();
        for name in &names {
            if let Some(row) = self.tables.files.get_mut(name) {
                row.cluster = cluster;
            }
        }
        self.counts.file_bytes_written += group.iter().map(|r| r.size).sum::<u64>();
        self.tables.fill(cluster, names, array, self.clock);
    }

    /// Frees clusters: first those of one-timers, then the least used clusters. Returns false if not enough
    /// can be freed.
    fn make_free(&mut self, need: u32) -> bool {
        let age = self.config.one_timers;
        self.counts.one_timers += self.tables.void_one_timers(self.clock, age);
        while self.tables.free.total() < need.max(self.config.write_clusters) {
            match self.tables.replace() {
                Some(gone) => self.counts.replaced += gone,
                None => break,
            }
        }
        self.tables.free.total() >= need
    }

    /// Removes files for which there is no place on disk.
    fn lose(&mut self, group: &[Record]) {
        for record in group {
            self.tables.files.remove(&record.name);
            self.refused += 1;
        }
    }
}

const fn record(held: &Held) -> Record {
    Record {
        name: held.name,
        size: held.size,
        version: held.version,
        host: held.host,
        path: held.path,
        page: held.page,
        count: held.count,
    }
}
