//! File-space systems. A file-space system places the objects of a disk cache on a disk. Its operations are
//! URL-read, URL-write and URL-delete.
//!
//! Each system is a small module whose first comment states the papers' rule. The systems with one file per
//! object ([`simple`], [`squid`], [`multiple_dirs`]) and [`buddy`] use [`crate::model::Files`]. [`stream`]
//! and the systems derived from it use an [`Area`]: one large file, or a raw partition. Contents are not
//! stored, only positions and lengths. Simulated time passes in the modelled drive under the layout.

pub mod area;
pub mod buddy;
mod calls;
pub mod lazy_reads;
pub mod locality;
pub mod multiple_dirs;
pub mod one_file_each;
pub mod packetizer;
pub mod simple;
pub mod slots;
pub mod spec;
pub mod squid;
mod stats;
pub mod stream;

pub use area::{Area, FileArea};
pub use calls::Calls;
pub use spec::LayoutSpec;
pub use stats::{LayoutStats, ReadDistances};

use std::fmt;

use crate::{
    levels::{DiskOp, DiskOpKind},
    model::{DirId, FileId, FsCounters, FsError, SimTime},
};

/// Bytes of a block (a slot): the unit of allocation in the papers' layouts.
pub const BLOCK: u64 = 512;

/// Reason for which an operation was refused. The layout is unchanged, but the cost of the
/// operation is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// No space for the object.
    Full,
    /// The object is not stored.
    Missing,
    /// The object is already stored. The old version must be deleted before a new version is written.
    Exists,
    /// The file system below returned an error.
    Fs(FsError),
}

impl From<FsError> for LayoutError {
    fn from(error: FsError) -> Self {
        if error == FsError::NoSpace {
            Self::Full
        } else {
            Self::Fs(error)
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("no space for the object"),
            Self::Missing => f.write_str("the object is not stored"),
            Self::Exists => f.write_str("the object is stored already"),
            Self::Fs(error) => write!(f, "file system: {error}"),
        }
    }
}

impl std::error::Error for LayoutError {}

/// Position of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a separate file.
    Own {
        /// The file's directory.
        dir: DirId,
        /// The file's name in that directory.
        name: u64,
    },
    /// In a shared file or in a raw partition, in one or more byte ranges.
    Shared {
        /// The file; `FileId(0)` for a raw partition.
        file: FileId,
        /// Start and length of each range, multiples of [`BLOCK`].
        ranges: Vec<(u64, u64)>,
    },
    /// In a locality buffer in memory.
    Buffer,
}

/// A file-space system.
pub trait Layout {
    /// Stores an object of `size` bytes (0 counts as 1) that came from `server`.
    ///
    /// # Errors
    /// Returns [`LayoutError::Exists`], [`LayoutError::Full`] or [`LayoutError::Fs`].
    fn write(&mut self, object: u64, size: u64, server: u32) -> Result<(), LayoutError>;

    /// Reads an object. A layout with lazy reads can queue the read and issue it later.
    ///
    /// # Errors
    /// Returns [`LayoutError::Missing`] or [`LayoutError::Fs`].
    fn read(&mut self, object: u64) -> Result<(), LayoutError>;

    /// Deletes an object.
    ///
    /// # Errors
    /// Returns [`LayoutError::Missing`] or [`LayoutError::Fs`].
    fn delete(&mut self, object: u64) -> Result<(), LayoutError>;

    /// Issues all reads and writes that still wait in the layout's own buffers, and waits until they have
    /// reached the drive.
    ///
    /// # Errors
    /// Returns [`LayoutError::Fs`].
    fn finish(&mut self) -> Result<(), LayoutError>;

    /// Position of an object; `None` if it is not stored.
    fn place(&self, object: u64) -> Option<Place>;

    /// The counts of operations so far, and sizes of the present contents.
    fn stats(&self) -> LayoutStats;

    /// Divides the shared file into `parts` equal parts and returns the used share of each part, in order.
    /// Returns an empty list if the layout does not store all objects in one shared file.
    fn usage(&self, parts: usize) -> Vec<f32> {
        let _ = parts;
        Vec::new()
    }

    /// The present time of the simulated process. The drive may still have queued requests.
    fn now(&self) -> SimTime;

    /// The costs on the drive so far (requests, bytes and times).
    fn counters(&self) -> FsCounters;

    /// Applies one operation of the cache levels.
    ///
    /// # Errors
    /// Returns the error of the operation.
    fn apply(&mut self, op: &DiskOp) -> Result<(), LayoutError> {
        match op.kind {
            DiskOpKind::Read => self.read(op.object),
            DiskOpKind::Write => self.write(op.object, op.size, op.server),
            DiskOpKind::Delete => self.delete(op.object),
        }
    }
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
