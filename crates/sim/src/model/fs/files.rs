//! Operations on a file system, modelled or real, for a system that keeps files.

use crate::model::{FsCounters, SimTime};

/// An open file. Stays valid until it is closed or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A directory. Directories stay open for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId(pub u32);

/// Why a file operation was refused. A refused operation changes nothing, except that a write
/// keeps what it had written before space ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsError {
    /// No such name, or a handle that was closed.
    NotFound,
    /// The name is taken.
    Exists,
    /// No free block, fragment or inode.
    NoSpace,
    /// The offset or length is outside of what the file or the partition can have.
    OutOfRange,
    /// A real file system failed; the text is in its log.
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
/// Names are numbers (a directory entry is sized by `FsConfig::name_bytes`); contents are not
/// kept, only their place and length. Every call moves [`Files::now`] to its own end.
pub trait Files {
    /// The moment the process has reached.
    fn now(&self) -> SimTime;

    /// Lets the process compute or sleep for `span`; the drive goes on meanwhile.
    fn advance(&mut self, span: SimTime);

    /// The directory everything hangs from.
    fn root(&self) -> DirId;

    /// Makes a directory.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::NoSpace`].
    fn mkdir(&mut self, parent: DirId, name: u64) -> Result<DirId, FsError>;

    /// Creates an empty file and opens it.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::NoSpace`].
    fn create(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError>;

    /// Opens a file: name look-up and inode read, as far as they are not in memory.
    ///
    /// # Errors
    /// [`FsError::NotFound`].
    fn open(&mut self, dir: DirId, name: u64) -> Result<FileId, FsError>;

    /// Closes a handle; the inode may leave memory afterwards. Unknown handles are ignored.
    fn close(&mut self, file: FileId);

    /// Reads `len` bytes at `offset` as read() does; returns how many there were.
    ///
    /// # Errors
    /// [`FsError::NotFound`] for a handle that is not open.
    fn read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError>;

    /// Writes `len` bytes at `offset` as write() does: allocated now, on the drive later
    /// unless the write-behind limit of the file makes the process wait.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::NoSpace`], [`FsError::OutOfRange`].
    fn write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError>;

    /// Reads through a memory mapping: page faults instead of system calls.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn map_read(&mut self, file: FileId, offset: u64, len: u64) -> Result<u64, FsError> {
        self.read(file, offset, len)
    }

    /// Writes through a memory mapping: any page that is not in memory is read first, and
    /// nothing is written before the update daemon, memory pressure or [`Files::fsync`].
    ///
    /// # Errors
    /// As [`Files::write`]; a mapping cannot grow a file ([`FsError::OutOfRange`]).
    fn map_write(&mut self, file: FileId, offset: u64, len: u64) -> Result<(), FsError> {
        self.write(file, offset, len)
    }

    /// Removes a file. Open handles on it become invalid.
    ///
    /// # Errors
    /// [`FsError::NotFound`].
    fn delete(&mut self, dir: DirId, name: u64) -> Result<(), FsError>;

    /// Waits until the file's data and inode are on the drive.
    ///
    /// # Errors
    /// [`FsError::NotFound`].
    fn fsync(&mut self, file: FileId) -> Result<(), FsError>;

    /// Waits until everything is on the drive.
    fn sync(&mut self);

    /// Bytes of the file; 0 for a handle that is not open.
    fn size(&self, file: FileId) -> u64;

    /// Cost of the calls so far on the drive.
    fn counters(&self) -> FsCounters;
}
