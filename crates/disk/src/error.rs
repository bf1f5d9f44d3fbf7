//! The reasons why a disk could not be opened. Each reason tells the operator what to do.

use std::io;
use std::path::PathBuf;

/// The reason why a disk could not be opened, created or grown.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The path does not exist, and no length was given to create a file.
    #[error("{path}: does not exist; create it by giving a size, or correct the path", path = .path.display())]
    NotFound {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// The folder in which the new file should be created is missing.
    #[error("{path}: its folder does not exist; mount its disk, or create the folder", path = .path.display())]
    NoFolder {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// The path is a directory, socket, pipe or character device.
    #[error("{path}: is a {found}, but a store is a regular file or a block device", path = .path.display())]
    WrongKind {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The kind of thing that was found: "directory", "socket", ...
        found: &'static str,
    },
    /// The user may not read or write the file or device.
    #[error("{path}: permission denied; give this user read and write access", path = .path.display())]
    Permission {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// The file system or the device is read-only.
    #[error("{path}: is on a read-only file system or device; choose another path", path = .path.display())]
    ReadOnly {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// Another process holds the lock, or the device is mounted.
    #[error("{path}: is in use by another process (or mounted); stop that one or choose another path", path = .path.display())]
    InUse {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// There is not enough free space to reserve the length.
    #[error("{path}: no space for {wanted} bytes ({available} free); choose a smaller size or free some space", path = .path.display())]
    NoSpace {
        /// The path as the caller gave it.
        path: PathBuf,
        /// Bytes that could not be reserved.
        wanted: u64,
        /// Bytes that are free in the file system for this user.
        available: u64,
    },
    /// A block device that has no length: it was unplugged, or its driver stopped using it.
    #[error("{path}: the device is gone (it has no length); check it, or run without this store", path = .path.display())]
    Gone {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// The length is more than the file system or the device allows.
    #[error("{path}: {wanted} bytes are more than it can hold ({limit}); choose a smaller size", path = .path.display())]
    TooLarge {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The requested length in bytes.
        wanted: u64,
        /// The greatest possible length in bytes; 0 if unknown.
        limit: u64,
    },
    /// `grow` was called with a length below the present length.
    #[error("{path}: is {len} bytes long and cannot shrink to {wanted}", path = .path.display())]
    Shrink {
        /// The path as the caller gave it.
        path: PathBuf,
        /// Present length in bytes.
        len: u64,
        /// Requested length in bytes.
        wanted: u64,
    },
    /// The options require direct I/O, and the file system refuses it.
    #[error("{path}: its file system refuses direct I/O; use another one, or allow buffered I/O", path = .path.display())]
    NoDirect {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// The options require a ring, and the kernel refuses it.
    #[error("{path}: io_uring was demanded, but {reason}; allow it or use the thread pool", path = .path.display())]
    NoRing {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The kernel's reason.
        reason: String,
    },
    /// Any other error of the system.
    #[error("{path}: cannot {doing}: {source}", path = .path.display())]
    Io {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl DiskError {
    /// True if the disk itself is the cause: it is missing or does not answer. All other errors are
    /// for the operator to correct.
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
