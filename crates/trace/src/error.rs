//! What can go wrong with a trace, in words for the person who gave the file.

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
        /// What the system said.
        source: std::io::Error,
    },
    /// None of the known formats fits the first lines.
    #[error(
        "{path}: not a trace format that is known here; name it with --format ({known})",
        path = path.display(), known = crate::Format::names()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// A binary trace is damaged or ends in the middle.
    #[error("{path}: damaged after {records} records: {problem}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Whole records read before.
        records: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// So many lines are bad that the format must be another one.
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
        /// What was wrong there.
        reason: &'static str,
    },
}
