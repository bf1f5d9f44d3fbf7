//! Errors and their codes (section 4.1 of the Hummingbird paper: "a negative return value indicates an error
//! code").

use foxy_disk::DiskError;
use foxy_store::OpenError;
use thiserror::Error;

/// The reason why a call failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no file of that name, or the file is past its lifetime.
    #[error("no such file")]
    NotFound,
    /// The file has readers.
    #[error("the file has readers; end their reads first")]
    Busy,
    /// Neither memory nor a disk has room for the file now.
    #[error("no room for the file now; its older contents, if any, are gone")]
    NoRoom,
    /// The file is longer than a quarter of the smallest disk.
    #[error("the file is longer than a quarter of the smallest disk")]
    TooLarge,
    /// The name is empty, or longer than [`crate::MAX_NAME_BYTES`].
    #[error("a name has 1 to 32768 bytes")]
    Name,
    /// A power cut can destroy written data, because a disk refuses writes.
    #[error("a disk takes no writes; what was written may be lost")]
    NotDurable,
    /// The value of a setting is out of range.
    #[error("{what} is out of range: {why}")]
    Config {
        /// The name of the setting.
        what: &'static str,
        /// The range of the setting.
        why: &'static str,
    },
    /// A file or device cannot be opened.
    #[error("{0}")]
    Disk(#[from] DiskError),
    /// The contents of a disk cannot be used.
    #[error("{0}")]
    Store(#[from] OpenError),
    /// The thread of a disk cannot be started.
    #[error("cannot start the thread of a disk: {0}")]
    Thread(std::io::Error),
}

impl Error {
    /// The code that the C interface returns; it is below 0.
    #[must_use]
    pub const fn code(&self) -> i64 {
        match self {
            Self::NotFound => -1,
            Self::Busy => -2,
            Self::NoRoom => -3,
            Self::TooLarge => -4,
            Self::Name => -5,
            Self::Disk(_) | Self::Store(_) | Self::Thread(_) => -6,
            Self::NotDurable => -7,
            Self::Config { .. } => -8,
        }
    }
}
