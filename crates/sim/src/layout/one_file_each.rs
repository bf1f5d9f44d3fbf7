//! Common part of SIMPLE, SQUID and MULTIPLE-DIRS: every object is a separate file.
//!
//! A URL-write creates, writes and closes the file, a URL-read opens, reads and closes it, and a URL-delete
//! unlinks it. The three layouts differ only in the directory and the name of a file.

use hashbrown::{HashMap, hash_map::Entry as MapEntry};

use super::{Layout, LayoutError, LayoutStats, Place};
use crate::model::{DirId, Files, FsCounters, SimTime};

/// Chooses the directory and the name of a new object's file.
pub trait Directories<F> {
    /// Directory and name of an object that came from `server`. The call may create directories.
    ///
    /// # Errors
    /// Returns the first error of the file system.
    fn place(
        &mut self,
        files: &mut F,
        object: u64,
        server: u32,
    ) -> Result<(DirId, u64), LayoutError>;
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    dir: DirId,
    name: u64,
    size: u64,
}

/// A layout with one file for each object.
#[derive(Debug)]
pub struct OneFileEach<F, D> {
    files: F,
    directories: D,
    objects: HashMap<u64, Entry>,
    stats: LayoutStats,
}

impl<F: Files, D: Directories<F>> OneFileEach<F, D> {
    /// Creates an empty layout over a file system.
    pub fn with_directories(files: F, directories: D) -> Self {
        Self {
            files,
            directories,
            objects: HashMap::new(),
            stats: LayoutStats::default(),
        }
    }

    /// The file system.
    pub const fn files(&self) -> &F {
        &self.files
    }
}

fn create<F: Files>(files: &mut F, entry: Entry) -> Result<(), LayoutError> {
    let file = files.create(entry.dir, entry.name)?;
    let written = files.write(file, 0, entry.size);
    files.close(file);
    if let Err(error) = written {
        files.delete(entry.dir, entry.name)?;
        return Err(error.into());
    }
    Ok(())
}

impl<F: Files, D: Directories<F>> Layout for OneFileEach<F, D> {
    fn write(&mut self, object: u64, size: u64, server: u32) -> Result<(), LayoutError> {
        let MapEntry::Vacant(vacant) = self.objects.entry(object) else {
            return Err(LayoutError::Exists);
        };
        let size = size.max(1);
        let (dir, name) = self.directories.place(&mut self.files, object, server)?;
        let entry = Entry { dir, name, size };
        create(&mut self.files, entry)?;
        vacant.insert(entry);
        self.stats.stored(size);
        Ok(())
    }

    fn read(&mut self, object: u64) -> Result<(), LayoutError> {
        let entry = *self.objects.get(&object).ok_or(LayoutError::Missing)?;
        let file = self.files.open(entry.dir, entry.name)?;
        let read = self.files.read(file, 0, entry.size);
        self.files.close(file);
        self.stats.reads += 1;
        self.stats.read_calls += 1;
        self.stats.read_bytes += read?;
        Ok(())
    }

    fn delete(&mut self, object: u64) -> Result<(), LayoutError> {
        let MapEntry::Occupied(known) = self.objects.entry(object) else {
            return Err(LayoutError::Missing);
        };
        let entry = *known.get();
        self.files.delete(entry.dir, entry.name)?;
        known.remove();
        self.stats.gone(entry.size);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), LayoutError> {
        self.files.sync();
        Ok(())
    }

    fn place(&self, object: u64) -> Option<Place> {
        let entry = self.objects.get(&object)?;
        Some(Place::Own {
            dir: entry.dir,
            name: entry.name,
        })
    }

    fn stats(&self) -> LayoutStats {
        self.stats.clone()
    }

    fn now(&self) -> SimTime {
        self.files.now()
    }

    fn counters(&self) -> FsCounters {
        self.files.counters()
    }
}

impl LayoutStats {
    /// Counts a stored object that has a separate file.
    pub(super) fn stored(&mut self, size: u64) {
        self.objects += 1;
        self.object_bytes += size;
        self.pieces += 1;
        self.writes += 1;
        self.write_calls += 1;
        self.write_bytes += size;
        self.allocated_bytes += size;
    }

    /// Counts the removal of an object that has a separate file.
    pub(super) fn gone(&mut self, size: u64) {
        self.objects -= 1;
        self.object_bytes -= size;
        self.pieces -= 1;
        self.deletes += 1;
        self.allocated_bytes -= size;
    }
}
