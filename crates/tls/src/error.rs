//! Errors in TLS settings.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why certificates or keys cannot be used. If a file is the reason, the text names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {source}; correct the path, or let Foxy read the file")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file does not contain what it should contain.
    #[error("{path}: {text}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The missing or wrong part.
        text: String,
    },
    /// The configured name of an origin's certificate is not a valid name.
    #[error("`{0}` is neither a host name nor an address")]
    Name(String),
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
}

impl TlsError {
    pub(crate) fn content(path: &Path, text: impl Into<String>) -> Self {
        Self::Content {
            path: path.to_owned(),
            text: text.into(),
        }
    }
}
