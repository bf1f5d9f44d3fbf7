//! A regular file or block device as a [`Disk`].

use crate::{Disk, DiskError, Queue};
use std::io;
use std::path::Path;

/// Whether transfers bypass the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direct {
    /// Direct where the file system allows it, else buffered (see [`Report`]).
    #[default]
    Auto,
    /// Direct or an error.
    Yes,
    /// Through the page cache.
    No,
}

/// How queues reach the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A ring where the kernel allows it, else the thread pool (see [`Report`]).
    #[default]
    Auto,
    /// `io_uring` or an error.
    Ring,
    /// Threads that call `pread` and `pwrite`.
    Pool,
}

/// How to open a file or device.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Create the file with this length if it is missing, or make it longer if it is shorter
    /// (space is reserved). `None`: it must be there, and is used as long as it is. For a device:
    /// use no more than this.
    pub create_len: Option<u64>,
    /// Bypass the page cache?
    pub direct: Direct,
    /// Ring or pool?
    pub backend: Backend,
    /// Refuse when another process has it open with a lock, and keep others out while open.
    pub lock: bool,
    /// Open for reading alone: writes fail.
    pub read_only: bool,
    /// Most threads of the pool backend, over all queues of this disk.
    pub pool_threads: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create_len: None,
            direct: Direct::Auto,
            backend: Backend::Auto,
            lock: true,
            read_only: false,
            pool_threads: 16,
        }
    }
}

/// What was found and chosen at opening; for logs and stats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// A block device, not a file.
    pub device: bool,
    /// Transfers bypass the page cache.
    pub direct: bool,
    /// Why not, if direct I/O was wanted.
    pub direct_refused: Option<String>,
    /// Queues are rings (otherwise the thread pool).
    pub ring: bool,
    /// Why not, if a ring was wanted.
    pub ring_refused: Option<String>,
    /// The file was created by this opening.
    pub created: bool,
    /// Space was only promised by the file system (sparse file): writes may meet `ENOSPC`.
    pub sparse: bool,
    /// Logical block, bytes.
    pub block_bytes: u32,
}

/// A file or device. Cheap to share in an `Arc`; closed (and unlocked) with its last queue.
#[derive(Debug)]
pub struct FileDisk(Report);

impl FileDisk {
    /// Opens, creates or grows `path`.
    ///
    /// # Errors
    /// See [`DiskError`]: every kind says what to do.
    pub fn open(path: impl AsRef<Path>, _options: &OpenOptions) -> Result<Self, DiskError> {
        Err(DiskError::NotFound {
            path: path.as_ref().into(),
        })
    }

    /// What was found and chosen.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.0
    }
}

impl Disk for FileDisk {
    fn len(&self) -> u64 {
        0
    }
    fn block_bytes(&self) -> u32 {
        self.0.block_bytes
    }
    fn describe(&self) -> String {
        "file".into()
    }
    fn open_queue(&self, _depth: u32) -> io::Result<Box<dyn Queue>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn read_at(&self, _at: u64, _into: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn write_at(&self, _at: u64, _data: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn flush(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn grow(&self, _new_len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
