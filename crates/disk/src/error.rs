//! Why a disk could not be opened: each kind says what the operator can do.

use std::io;
use std::path::PathBuf;

/// A refusal to open, create or grow a disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Nothing there, and no length given to create it with.
    #[error("{path}: does not exist; create it by giving a size, or correct the path", path = .path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder for a new file is missing.
    #[error("{path}: its folder does not exist; mount its disk, or create the folder", path = .path.display())]
    NoFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// A directory, socket, pipe or character device.
    #[error("{path}: is a {found}, but a store is a regular file or a block device", path = .path.display())]
    WrongKind {
        /// The path as given.
        path: PathBuf,
        /// "directory", "socket", ...
        found: &'static str,
    },
    /// The user may not read or write it.
    #[error("{path}: permission denied; give this user read and write access", path = .path.display())]
    Permission {
        /// The path as given.
        path: PathBuf,
    },
    /// The file system or device can only be read.
    #[error("{path}: is on a read-only file system or device; choose another path", path = .path.display())]
    ReadOnly {
        /// The path as given.
        path: PathBuf,
    },
    /// Another process holds the lock, or the device is mounted.
    #[error("{path}: is in use by another process (or mounted); stop that one or choose another path", path = .path.display())]
    InUse {
        /// The path as given.
        path: PathBuf,
    },
    /// Not enough free space to reserve the length.
    #[error("{path}: no space for {wanted} bytes ({available} free); choose a smaller size or free some space", path = .path.display())]
    NoSpace {
        /// The path as given.
        path: PathBuf,
        /// Bytes to be reserved.
        wanted: u64,
        /// Bytes the file system has for us.
        available: u64,
    },
    /// A block device without any length: it was taken out, or its driver has given it up.
    #[error("{path}: the device is gone (it has no length); check it, or run without this store", path = .path.display())]
    Gone {
        /// The path as given.
        path: PathBuf,
    },
    /// Longer than the file system or the device allows.
    #[error("{path}: {wanted} bytes are more than it can hold ({limit}); choose a smaller size", path = .path.display())]
    TooLarge {
        /// The path as given.
        path: PathBuf,
        /// Bytes wanted.
        wanted: u64,
        /// Bytes possible; 0 if unknown.
        limit: u64,
    },
    /// `grow` was asked for less than there is.
    #[error("{path}: is {len} bytes long and cannot shrink to {wanted}", path = .path.display())]
    Shrink {
        /// The path as given.
        path: PathBuf,
        /// Present length.
        len: u64,
        /// Length asked for.
        wanted: u64,
    },
    /// Direct I/O was demanded and the file system refuses it.
    #[error("{path}: its file system refuses direct I/O; use another one, or allow buffered I/O", path = .path.display())]
    NoDirect {
        /// The path as given.
        path: PathBuf,
    },
    /// The ring was demanded and the kernel refuses it.
    #[error("{path}: io_uring was demanded, but {reason}; allow it or use the thread pool", path = .path.display())]
    NoRing {
        /// The path as given.
        path: PathBuf,
        /// Reason from the kernel.
        reason: String,
    },
    /// Anything else the system said.
    #[error("{path}: cannot {doing}: {source}", path = .path.display())]
    Io {
        /// The path as given.
        path: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl DiskError {
    /// True if the disk itself is at fault: it is gone or does not answer. Everything else is for
    /// the operator to correct.
    #[must_use]
    pub const fn is_of_the_disk(&self) -> bool {
        matches!(
            self,
            Self::NotFound { .. }
                | Self::NoFolder { .. }
                | Self::Gone { .. }
                | Self::ReadOnly { .. }
                | Self::Io { .. }
        )
    }
}

impl From<DiskError> for io::Error {
    fn from(error: DiskError) -> Self {
        use io::ErrorKind as K;
        let kind = match &error {
            DiskError::NotFound { .. } | DiskError::NoFolder { .. } | DiskError::Gone { .. } => {
                K::NotFound
            }
            DiskError::Permission { .. } => K::PermissionDenied,
            DiskError::ReadOnly { .. } => K::ReadOnlyFilesystem,
            DiskError::InUse { .. } => K::ResourceBusy,
            DiskError::NoSpace { .. } => K::StorageFull,
            DiskError::NoDirect { .. } | DiskError::NoRing { .. } => K::Unsupported,
            DiskError::Io { source, .. } => source.kind(),
            DiskError::WrongKind { .. } | DiskError::TooLarge { .. } | DiskError::Shrink { .. } => {
                K::InvalidInput
            }
        };
        Self::new(kind, error)
    }
}
