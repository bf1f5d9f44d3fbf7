//! Errors of traces, in words for the person who gave the file.

use std::path::PathBuf;

/// Why a trace cannot be read (further). Single bad lines are no error: they are counted in
/// [`BadLines`](crate::BadLines).
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
    /// There is nothing in the file.
    #[error("{path}: the file is empty", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// None of the known formats fits the first lines.
    #[error(
        "{path}: not a log that is known here (it begins with `{start}`); if it is one of {known}, \
         name its format",
        path = path.display(), known = crate::Format::names()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its beginning, printable.
        start: String,
    },
    /// A file of lines cannot be read to its end: compressed data that is damaged or cut off, or
    /// the device.
    #[error(
        "{path}: breaks off after line {line}, at byte {offset} of the file: {source}",
        path = path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// Lines read whole.
        line: u64,
        /// Bytes taken from the (compressed) file.
        offset: u64,
        /// Error of the system or of the decompressor.
        source: std::io::Error,
    },
    /// A binary trace is damaged or ends in the middle.
    #[error(
        "{path}: damaged at byte {offset} of its (unpacked) contents, after {records} records: \
         {problem}",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Bytes of the unpacked contents before the record that cannot be read.
        offset: u64,
        /// Whole records read before.
        records: u64,
        /// The mistake.
        problem: &'static str,
    },
    /// With this number of bad lines the format must be another one.
    #[error(
        "{path}: {bad} of the first {lines} lines are not {format}; first: line {line}: {reason}",
        path = path.display()
    )]
    Hopeless {
        /// The file.
        path: PathBuf,
        /// The format tried.
        format: crate::Format,
        /// Bad lines so far.
        bad: u64,
        /// Lines so far.
        lines: u64,
        /// Number of the first bad line, from 1.
        line: u64,
        /// The mistake at that place.
        reason: &'static str,
    },
}
