//! BUDDY: one file for each size class.
//!
//! Rule (USITS'99 section 3): the file of class k consists of fixed slots of k blocks of 512 bytes. This file
//! contains the objects that need k blocks. A URL-write writes the first free slot of the class's file, a
//! URL-delete marks the slot free, and a URL-read reads the slot. An object of more than THRESHOLD blocks
//! (256 blocks, 128 KB) is stored in a separate file. An object is always contiguous. The paper does not
//! state whether the class files grow or exist beforehand. This layout can simulate both variants.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use hashbrown::HashMap;

use super::{BLOCK, Calls, Layout, LayoutError, LayoutStats, Place, area::fill};
use crate::{
    levels::{DiskOp, DiskOpKind},
    model::{DirId, FileId, Files, FsCounters, SimTime},
};

/// The paper's threshold, in blocks.
pub const THRESHOLD: u32 = 256;

#[derive(Debug)]
struct Class {
    file: FileId,
    /// Free slots that were used before.
    free: BinaryHeap<Reverse<u64>>,
    /// Number of slots that were used so far. A file that exists beforehand can have more slots.
    slots: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    size: u64,
    /// Class of the object and number of its slot. `None`: the object has a separate file.
    slot: Option<(u64, u64)>,
}

/// The layout BUDDY.
#[derive(Debug)]
pub struct Buddy<F> {
    files: F,
    calls: Calls,
    threshold: u64,
    /// Directory of the class files. The name of a class file is the number k of its class.
    classes_dir: DirId,
    /// Directory of the files of large objects. The name of a file is the number of its object.
    own_dir: DirId,
    classes: HashMap<u64, Class>,
    objects: HashMap<u64, Entry>,
    stats: LayoutStats,
}

impl<F: Files> Buddy<F> {
    /// Creates an empty layout. Objects of more than `threshold` blocks get separate files.
    ///
    /// # Errors
    /// Returns the first error of the file system.
    pub fn new(mut files: F, threshold: u32) -> Result<Self, LayoutError> {
        let classes_dir = files.mkdir(files.root(), 0)?;
        let own_dir = files.mkdir(files.root(), 1)?;
        Ok(Self {
            files,
            calls: Calls::Write,
            threshold: u64::from(threshold),
            classes_dir,
            own_dir,
            classes: HashMap::new(),
            objects: HashMap::new(),
            stats: LayoutStats::default(),
        })
    }

    /// Returns this layout with `calls` as the calls that write into class files.
    #[must_use]
    pub fn by(self, calls: Calls) -> Self {
        Self { calls, ..self }
    }

    /// Creates the class files and fills them up to the size that the operations `coming` need. `coming`
    /// contains all operations of the run.
    ///
    /// # Errors
    /// Returns the first error of the file system.
    pub fn prepare(&mut self, coming: &[DiskOp]) -> Result<(), LayoutError> {
        for (k, slots) in slots_needed(coming, self.threshold) {
            let file = self.class(k)?.file;
            fill(&mut self.files, file, slots * k * BLOCK)?;
        }
        self.files.sync();
        Ok(())
    }

    fn class(&mut self, k: u64) -> Result<&mut Class, LayoutError> {
        if !self.classes.contains_key(&k) {
            let file = self.files.create(self.classes_dir, k)?;
            self.classes.insert(
                k,
                Class {
                    file,
                    free: BinaryHeap::new(),
                    slots: 0,
                },
            );
        }
        self.classes.get_mut(&k).ok_or(LayoutError::Missing)
    }

    fn write_slot(&mut self, k: u64) -> Result<u64, LayoutError> {
        let class = self.class(k)?;
        let file = class.file;
        let slot = match class.free.pop() {
            Some(Reverse(slot)) => slot,
            None => {
                class.slots += 1;
                class.slots - 1
            }
        };
        let (at, len) = (slot * k * BLOCK, k * BLOCK);
        if let Err(error) = self.calls.write(&mut self.files, file, at, len) {
            self.class(k)?.free.push(Reverse(slot));
            return Err(error.into());
        }
        self.stats.write_bytes += k * BLOCK;
        self.stats.allocated_bytes += k * BLOCK;
        Ok(slot)
    }

    fn write_own(&mut self, object: u64, size: u64) -> Result<(), LayoutError> {
        let file = self.files.create(self.own_dir, object)?;
        let written = self.files.write(file, 0, size);
        self.files.close(file);
        if let Err(error) = written {
            self.files.delete(self.own_dir, object)?;
            return Err(error.into());
        }
        self.stats.write_bytes += size;
        self.stats.allocated_bytes += size;
        Ok(())
    }

    fn read_own(&mut self, object: u64, size: u64) -> Result<u64, LayoutError> {
        let file = self.files.open(self.own_dir, object)?;
        let read = self.files.read(file, 0, size);
        self.files.close(file);
        Ok(read?)
    }
}

/// Class of a size: the number of blocks needed; `None` above the threshold.
fn class_of(size: u64, threshold: u64) -> Option<u64> {
    let blocks = size.div_ceil(BLOCK).max(1);
    (blocks <= threshold).then_some(blocks)
}

/// The maximum number of slots in use at one time, by class. A file never needs more slots, because a write
/// always takes the first free slot.
fn slots_needed(ops: &[DiskOp], threshold: u64) -> BTreeMap<u64, u64> {
    let mut objects = HashMap::new();
    let mut used: HashMap<u64, u64> = HashMap::new();
    let mut most = BTreeMap::new();
    for op in ops {
        match op.kind {
            DiskOpKind::Read => {}
            DiskOpKind::Write => {
                if let Some(k) = class_of(op.size, threshold) {
                    objects.insert(op.object, k);
                    let used = used.entry(k).or_insert(0);
                    *used += 1;
                    let most = most.entry(k).or_insert(0);
                    *most = (*most).max(*used);
                }
            }
            DiskOpKind::Delete => {
                if let Some(used) = objects.remove(&op.object).and_then(|k| used.get_mut(&k)) {
                    *used -= 1;
                }
            }
        }
    }
    most
}

impl<F: Files> Layout for Buddy<F> {
    fn write(&mut self, object: u64, size: u64, _server: u32) -> Result<(), LayoutError> {
        if self.objects.contains_key(&object) {
            return Err(LayoutError::Exists);
        }
        let size = size.max(1);
        let slot = match class_of(size, self.threshold) {
            Some(k) => Some((k, self.write_slot(k)?)),
            None => {
                self.write_own(object, size)?;
                None
            }
        };
        self.objects.insert(object, Entry { size, slot });
        self.stats.objects += 1;
        self.stats.object_bytes += size;
        self.stats.pieces += 1;
        self.stats.writes += 1;
        self.stats.write_calls += 1;
        Ok(())
    }

    fn read(&mut self, object: u64) -> Result<(), LayoutError> {
        let entry = *self.objects.get(&object).ok_or(LayoutError::Missing)?;
        let read = match entry.slot {
            Some((k, slot)) => {
                let file = self.class(k)?.file;
                self.files.read(file, slot * k * BLOCK, k * BLOCK)?
            }
            None => self.read_own(object, entry.size)?,
        };
        self.stats.reads += 1;
        self.stats.read_calls += 1;
        self.stats.read_bytes += read;
        Ok(())
    }

    fn delete(&mut self, object: u64) -> Result<(), LayoutError> {
        let entry = *self.objects.get(&object).ok_or(LayoutError::Missing)?;
        match entry.slot {
            Some((k, slot)) => {
                self.class(k)?.free.push(Reverse(slot));
                self.stats.allocated_bytes -= k * BLOCK;
            }
            None => {
                self.files.delete(self.own_dir, object)?;
                self.stats.allocated_bytes -= entry.size;
            }
        }
        self.objects.remove(&object);
        self.stats.objects -= 1;
        self.stats.object_bytes -= entry.size;
        self.stats.pieces -= 1;
        self.stats.deletes += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), LayoutError> {
        self.files.sync();
        Ok(())
    }

    fn place(&self, object: u64) -> Option<Place> {
        let entry = self.objects.get(&object)?;
        Some(match entry.slot {
            None => Place::Own {
                dir: self.own_dir,
                name: object,
            },
            Some((k, slot)) => Place::Shared {
                file: self.classes.get(&k)?.file,
                ranges: vec![(slot * k * BLOCK, k * BLOCK)],
            },
        })
    }

    fn stats(&self) -> LayoutStats {
        let mut stats = self.stats.clone();
        for (k, class) in &self.classes {
            let free = class.free.len() as u64;
            stats.free_chunks += free;
            stats.free_bytes += free * k * BLOCK;
            if free > 0 {
                stats.free_largest = stats.free_largest.max(k * BLOCK);
            }
        }
        stats
    }

    fn now(&self) -> SimTime {
        self.files.now()
    }

    fn counters(&self) -> FsCounters {
        self.files.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::fake::FakeFiles;

    fn slot(buddy: &Buddy<FakeFiles>, object: u64) -> Option<(u64, u64)> {
        match buddy.place(object) {
            Some(Place::Shared { ranges, .. }) => Some(ranges[0]),
            _ => None,
        }
    }

    #[test]
    fn class_files_that_are_there_beforehand_never_grow() {
        let mut rng = foxy_base::Rng::new(3);
        let mut live = Vec::new();
        let mut ops = Vec::new();
        for object in 0..400 {
            let op = |kind, object, size| DiskOp {
                kind,
                object,
                size,
                server: 1,
            };
            ops.push(op(DiskOpKind::Write, object, rng.below(3_000)));
            live.push(object);
            if live.len() > 60 {
                let gone = live.swap_remove(rng.below(live.len() as u64) as usize);
                ops.push(op(DiskOpKind::Delete, gone, 0));
            }
        }
        let files = FakeFiles::new();
        let mut buddy = Buddy::new(files.clone(), 4).unwrap();
        buddy.prepare(&ops).unwrap();
        let sizes = || -> Vec<u64> {
            let class = |k| {
                buddy
                    .classes
                    .get(&k)
                    .map_or(0, |c: &Class| files.size(c.file))
            };
            (1..=4).map(class).collect()
        };
        let before = sizes();
        assert!(before.iter().all(|bytes| *bytes > 0));
        for op in &ops {
            buddy.apply(op).unwrap();
        }
        let used = |k: u64| buddy.classes[&k].slots * k * BLOCK;
        let class = |k| files.size(buddy.classes[&k].file);
        let after: Vec<_> = (1..=4).map(class).collect();
        assert_eq!(after, before);
        assert_eq!(before, (1..=4).map(used).collect::<Vec<_>>());
    }

    #[test]
    fn classes_and_first_free_slots() {
        let mut buddy = Buddy::new(FakeFiles::new(), 4).unwrap();
        for (object, size) in [
            (1, 512),
            (2, 513),
            (3, 1024),
            (4, 2048),
            (5, 2049),
            (6, 600),
        ] {
            buddy.write(object, size, 1).unwrap();
        }
        assert_eq!(slot(&buddy, 1), Some((0, 512)));
        assert_eq!(
            [2, 3, 6].map(|o| slot(&buddy, o)),
            [Some((0, 1024)), Some((1024, 1024)), Some((2048, 1024))]
        );
        assert_eq!(slot(&buddy, 4), Some((0, 2048)));
        assert!(matches!(buddy.place(5), Some(Place::Own { name: 5, .. })));
        // The lowest slot is used first, in whatever order the slots were freed.
        for object in [6, 2] {
            buddy.delete(object).unwrap();
        }
        buddy.write(7, 1000, 1).unwrap();
        assert_eq!(slot(&buddy, 7), Some((0, 1024)));
        let stats = buddy.stats();
        assert_eq!(
            (stats.allocated_bytes, stats.free_bytes),
            (512 + 2048 + 2048 + 2049, 1024)
        );
    }
}
