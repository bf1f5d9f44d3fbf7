//! File metadata: an index by a 32-bit hash of the name, and the list of files that are not packed, in the
//! order of their last use.
//!
//! Rule: name, size and hints are kept only until the file is packed. After that the name is only on disk, so
//! that a lookup may read a cluster and find a different name with the same hash.

use std::collections::HashMap;

use crate::model::{SimTime, hash::BuildIdHasher};

/// Number of a file.
pub(super) type FileNo = u32;
pub(super) const NONE: u32 = u32::MAX;

/// Data about a file that is kept only until the file is packed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unpacked {
    pub(super) name: u64,
    pub(super) size: u64,
    pub(super) version: u32,
    /// Files that should be put beside this file.
    pub(super) hints: Vec<FileNo>,
    older: FileNo,
    newer: FileNo,
}

/// Metadata of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) hash: u32,
    /// The next file with the same hash.
    next: FileNo,
    pub(super) readers: u32,
    pub(super) used: SimTime,
    /// Number of the last use of this file. Each use of a file gets a higher number than all earlier uses of
    /// any file.
    pub(super) tick: u64,
    /// Clusters that contain the file, oldest first. If there are several, they contain replicas.
    pub(super) clusters: Vec<u32>,
    pub(super) unpacked: Option<Box<Unpacked>>,
    /// True if the file bypasses memory.
    pub(super) nomem: bool,
    pub(super) live: bool,
}

/// The metadata of all files.
#[derive(Clone, Debug)]
pub(super) struct FileTable {
    files: Vec<File>,
    free: Vec<FileNo>,
    index: HashMap<u32, FileNo, BuildIdHasher>,
    oldest: FileNo,
    newest: FileNo,
    live: usize,
    /// Bytes of files that are not packed.
    pub(super) unpacked_bytes: u64,
    pub(super) unpacked_count: usize,
}

impl FileTable {
    pub(super) fn new() -> Self {
        Self {
            files: Vec::new(),
            free: Vec::new(),
            index: HashMap::default(),
            oldest: NONE,
            newest: NONE,
            live: 0,
            unpacked_bytes: 0,
            unpacked_count: 0,
        }
    }

    pub(super) fn get(&self, file: FileNo) -> &File {
        &self.files[file as usize]
    }

    pub(super) fn get_mut(&mut self, file: FileNo) -> &mut File {
        &mut self.files[file as usize]
    }

    pub(super) const fn len(&self) -> usize {
        self.live
    }

    /// Bytes that the published structures would take. A file takes 36 bytes (hash, number, state, count,
    /// time, list links, one cluster). A file that is not packed takes 24 bytes more, for example for its
    /// name.
    pub(super) fn metadata_bytes(&self) -> u64 {
        36 * self.live as u64 + 24 * self.unpacked_count as u64
    }

    /// The numbers of all existing files.
    pub(super) fn numbers(&self) -> impl Iterator<Item = FileNo> + '_ {
        (0..self.files.len() as u32).filter(|n| self.files[*n as usize].live)
    }

    /// The first file with this hash.
    pub(super) fn first(&self, hash: u32) -> Option<FileNo> {
        self.index.get(&hash).copied()
    }

    /// The next file with the same hash.
    pub(super) fn next(&self, file: FileNo) -> Option<FileNo> {
        let next = self.get(file).next;
        (next != NONE).then_some(next)
    }

    /// Adds a file without contents.
    pub(super) fn add(&mut self, hash: u32, tick: u64, used: SimTime) -> FileNo {
        let next = self.index.get(&hash).copied().unwrap_or(NONE);
        let file = File {
            hash,
            next,
            tick,
            used,
            live: true,
            ..File::default()
        };
        let number = if let Some(number) = self.free.pop() {
            self.files[number as usize] = file;
            number
        } else {
            self.files.push(file);
            (self.files.len() - 1) as u32
        };
        self.index.insert(hash, number);
        self.live += 1;
        number
    }

    /// Marks a file as unpacked, and as the most recently used of the unpacked files.
    pub(super) fn make_unpacked(&mut self, number: FileNo, name: u64, size: u64, version: u32) {
        self.get_mut(number).unpacked = Some(Box::new(Unpacked {
            name,
            size,
            version,
            hints: Vec::new(),
            older: NONE,
            newer: NONE,
        }));
        self.unpacked_bytes += size;
        self.unpacked_count += 1;
        self.link(number);
    }

    /// Removes name, size and hints from a file that is packed or deleted, and returns them.
    pub(super) fn take_unpacked(&mut self, number: FileNo) -> Option<Box<Unpacked>> {
        self.unlink(number);
        let unpacked = self.get_mut(number).unpacked.take()?;
        self.unpacked_bytes -= unpacked.size;
        self.unpacked_count -= 1;
        Some(unpacked)
    }

    /// Records a use of the file.
    pub(super) fn touch(&mut self, number: FileNo, tick: u64, now: SimTime) {
        let file = self.get_mut(number);
        (file.tick, file.used) = (tick, now);
        if file.unpacked.is_some() && self.newest != number {
            self.unlink(number);
            self.link(number);
        }
    }

    /// The least recently used file that is not packed.
    pub(super) fn oldest(&self) -> Option<FileNo> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The next unpacked file in the order of use, from the least to the most recently used file.
    pub(super) fn newer(&self, number: FileNo) -> Option<FileNo> {
        let newer = self.get(number).unpacked.as_ref()?.newer;
        (newer != NONE).then_some(newer)
    }

    /// Removes a file that is in no cluster and not in memory.
    pub(super) fn remove(&mut self, number: FileNo) {
        let (hash, next) = {
            let file = self.get(number);
            (file.hash, file.next)
        };
        self.leave_bucket(number, hash, next);
        let file = self.get_mut(number);
        *file = File::default();
        file.next = NONE;
        self.free.push(number);
        self.live -= 1;
    }

    fn leave_bucket(&mut self, number: FileNo, hash: u32, next: FileNo) {
        let Some(first) = self.first(hash) else {
            return;
        };
        if first == number {
            if next == NONE {
                self.index.remove(&hash);
            } else {
                self.index.insert(hash, next);
            }
            return;
        }
        let mut at = first;
        while let Some(after) = self.next(at) {
            if after == number {
                self.get_mut(at).next = next;
                return;
            }
            at = after;
        }
    }

    fn link(&mut self, number: FileNo) {
        let last = self.newest;
        if let Some(unpacked) = &mut self.get_mut(number).unpacked {
            (unpacked.older, unpacked.newer) = (last, NONE);
        }
        match self.unpacked_of(last) {
            Some(unpacked) => unpacked.newer = number,
            None => self.oldest = number,
        }
        self.newest = number;
    }

    fn unlink(&mut self, number: FileNo) {
        let Some(unpacked) = &self.get(number).unpacked else {
            return;
        };
        let (older, newer) = (unpacked.older, unpacked.newer);
        match self.unpacked_of(older) {
            Some(unpacked) => unpacked.newer = newer,
            None => self.oldest = newer,
        }
        match self.unpacked_of(newer) {
            Some(unpacked) => unpacked.older = older,
            None => self.newest = older,
        }
    }

    fn unpacked_of(&mut self, number: FileNo) -> Option<&mut Unpacked> {
        self.files
            .get_mut(number as usize)
            .and_then(|f| f.unpacked.as_deref_mut())
    }
}

/// The 32-bit hash of a name.
pub(super) const fn hash(name: u64) -> u32 {
    let mixed = (name ^ (name >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as u32 ^ (mixed >> 7) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_keep_all_files_of_a_hash() {
        let mut table = FileTable::new();
        let numbers = [0u64, 1, 2].map(|t| table.add(7, t, SimTime::ZERO));
        let bucket = |table: &FileTable| {
            std::iter::successors(table.first(7), |n| table.next(*n)).collect::<Vec<_>>()
        };
        assert_eq!(bucket(&table), [numbers[2], numbers[1], numbers[0]]);
        table.remove(numbers[1]);
        assert_eq!(bucket(&table), [numbers[2], numbers[0]]);
        table.remove(numbers[2]);
        table.remove(numbers[0]);
        assert_eq!((table.first(7), table.len()), (None, 0));
        assert_eq!(table.add(8, 9, SimTime::ZERO), numbers[0]);
    }

    #[test]
    fn unpacked_files_leave_in_the_order_of_use() {
        let mut table = FileTable::new();
        for tick in 0..4u64 {
            let number = table.add(tick as u32, tick, SimTime::ZERO);
            table.make_unpacked(number, tick, 10, 0);
        }
        table.touch(0, 9, SimTime::ZERO);
        table.take_unpacked(2);
        let order: Vec<_> = std::iter::successors(table.oldest(), |n| table.newer(*n)).collect();
        assert_eq!(order, [1, 3, 0]);
        assert_eq!((table.unpacked_bytes, table.unpacked_count), (30, 3));
    }
}
