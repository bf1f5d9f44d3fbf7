//! Operations on a modelled or real file system, for a system that keeps files.

use crate::model::{FsCounters, SimTime};

/// An open file. It stays valid until it is closed or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A directory. Directories stay open for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId(pub u32);

/// Reason for which a file operation was refused. A refused operation changes nothing, with one exception: a
/// write keeps the data that it wrote before space ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsError {
    /// The name does not exist, or the handle was closed.
    NotFound,
    /// The name already exists.
    Exists,
    /// No free block, fragment or inode.
    NoSpace,
    /// The offset or length is beyond the limits of the file or partition.
    OutOfRange,
    /// A real file system or device returned an error that no other variant describes.
    Io,
}

impl std::fmt::Display for FsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotFound => "no such file",
            Self::Exists => "the name exists",
            Self::NoSpace => "no space left",
            Self::OutOfRange => "offset out of range",
            Self::Io => "input/output error",
        })
    }
}

impl std::error::Error for FsError {}

/// File operations of one process.
///
/// Names are numbers (`FsConfig::name_bytes` is the size of a directory entry). Contents are not stored, only
/// their places and lengths. Every call moves [`Files::now`] to the end of the call.
pub trait Files {
    /// The present time of the simulated process. The drive may still have queued requests.
    fn now(&self) -> SimTime;

    /// Lets the process compute or sleep for `span`; the drive continues to work meanwhile.
    fn advance(&mut self, span: SimTime);

    /// The root directory.
    fn root(&self) -> DirId;

    /// Creates a directory.
    ///
    /// # Errors
    /// Returns [`FsError::Exists`] or [`FsError::NoSpace`].
    fn mkdir(&mut self, parent: DirId, name: u64) -> Result<DirId, FsError>;

    /// Creates an empty file and opens it.
    ///
    /// # Errors
    /// Returns [`FsError::Exists`] or [`FsError::NoSpace`].
    fn create(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError>;

    /// Opens a file. Looks up the name and reads the inode, unless they are already in memory.
    ///
    /// # Errors
    /// Returns [`FsError::NotFound`].
    fn open(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError>;

    /// Closes a handle; the inode may leave memory afterwards. Unknown handles are ignored.
    fn close(&mut self, file: FileId);

    /// Reads `len` bytes at `offset`, like read(). Returns the number of bytes read.
    ///
    /// # Errors
    /// Returns [`FsError::NotFound`] for a handle that is not open.
    fn read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError>;

    /// Writes `len` bytes at `offset`, like write(). Space is allocated now. The data reaches the drive
    /// later, unless the write-behind limit of the file makes the process wait.
    ///
    /// # Errors
    /// Returns [`FsError::NotFound`], [`FsError::NoSpace`] or [`FsError::OutOfRange`].
    fn write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError>;

    /// Reads through a memory mapping. The process has page faults instead of system calls.
    ///
    /// # Errors
    /// The same errors as [`Files::read`].
    fn map_read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError> {
        self.read(file, offset, len)
    }

    /// Writes through a memory mapping. Any page that is not in memory is read first. Pages are written later
    /// by the update daemon, by memory pressure or by [`Files::fsync`].
    ///
    /// # Errors
    /// The same errors as [`Files::write`]; a mapping cannot grow a file ([`FsError::OutOfRange`]).
    fn map_write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError> {
        self.write(file, offset, len)
    }

    /// Removes a file. Open handles on it become invalid.
    ///
    /// # Errors
    /// Returns [`FsError::NotFound`].
    fn delete(&mut self, dir: DirId, name: u64) -> Result<(), FsError>;

    /// Waits until the file's data and inode are on the drive.
    ///
    /// # Errors
    /// Returns [`FsError::NotFound`].
    fn fsync(&mut self, file: FileId) -> Result<(), FsError>;

    /// Waits until everything is on the drive.
    fn sync(&mut self);

    /// Size of the file in bytes; 0 for a handle that is not open.
    fn size(&self, file: FileId) -> u64;

    /// The costs on the drive (requests, bytes and times) of all calls so far.
    fn counters(&self) -> FsCounters;
}
