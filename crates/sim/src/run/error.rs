//! Reasons why a run failed.

use crate::layout::LayoutError;

/// An error of a run. Its text tells the user what to change.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload's file cannot be read.
    #[error(transparent)]
    Trace(#[from] foxy_trace::TraceError),
    /// A layout, or the file system below it, returned an error.
    #[error("{0}")]
    Layout(LayoutError),
    /// A parameter is impossible.
    #[error("{0}")]
    Config(String),
    /// A file of results or figures cannot be written.
    #[error("{path}: {source}")]
    Output {
        /// The file.
        path: std::path::PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A figure could not be drawn.
    #[error("figure: {0}")]
    Figure(String),
    /// The user asked to stop before everything was finished.
    #[error("stopped")]
    Stopped,
    /// An error ended the work, but some results exist. The results are printed first.
    #[error("{error}{note}")]
    Partly {
        /// Results to print.
        text: String,
        /// The error that ended the work.
        error: Box<Self>,
        /// Note on the consequence for the results.
        note: &'static str,
    },
    /// The stream contains no operation for the disk.
    #[error("the workload gives the disk nothing to do")]
    Nothing,
}
