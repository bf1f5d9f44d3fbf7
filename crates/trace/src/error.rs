//! Errors of traces, with texts for the person who named the file.

use std::path::PathBuf;

/// Reasons why a trace cannot be read, or cannot be read to its end. Single bad lines are no error: they are
/// counted in [`BadLines`](crate::BadLines).
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
    /// The output is the log itself.
    #[error("{path}: is the log itself; choose another output", path = path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{path}: the file is empty", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The first lines fit none of the known formats.
    #[error(
        "{path}: not a log that is known here (it begins with `{start}`); if it is one of {known}, \
         name its format",
        path = path.display(), known = crate::Format::names()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The beginning of the file, in printable form.
        start: String,
    },
    /// A text file cannot be read to its end, because compressed data is damaged or cut off, or because
    /// the device failed.
    #[error(
        "{path}: breaks off after line {line}, at byte {offset} of the file: {source}",
        path = path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// Number of complete lines read.
        line: u64,
        /// Number of bytes read from the (compressed) file.
        offset: u64,
        /// Error of the system or of the decompressor.
        source: std::io::Error,
    },
    /// A binary trace is damaged or ends in the middle of a record.
    #[error(
        "{path}: damaged at byte {offset} of its (unpacked) contents, after {records} records: \
         {problem}",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Length of the decompressed contents before the record that cannot be read, in bytes.
        offset: u64,
        /// Number of complete records that were read before the damaged record.
        records: u64,
        /// The mistake.
        problem: &'static str,
    },
    /// Too many lines are bad, so the log probably has another format.
    #[error(
        "{path}: {bad} of the first {lines} lines are not {format}; first: line {line}: {reason}",
        path = path.display()
    )]
    Hopeless {
        /// The file.
        path: PathBuf,
        /// The format that was tried.
        format: crate::Format,
        /// Number of bad lines so far.
        bad: u64,
        /// Number of lines so far.
        lines: u64,
        /// Number of the first bad line, from 1.
        line: u64,
        /// The mistake in the first bad line.
        reason: &'static str,
    },
}
