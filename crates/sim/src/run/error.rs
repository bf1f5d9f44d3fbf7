//! Why a run could not be done.

use crate::layout::LayoutError;

/// The text says what to change.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload's file.
    #[error(transparent)]
    Trace(#[from] foxy_trace::TraceError),
    /// A layout or the file system below it.
    #[error("{0}")]
    Layout(LayoutError),
    /// A parameter that makes no sense.
    #[error("{0}")]
    Config(String),
    /// A file of results or figures.
    #[error("{path}: {source}")]
    Output {
        /// The file.
        path: std::path::PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A figure that could not be drawn.
    #[error("figure: {0}")]
    Figure(String),
    /// Somebody asked to end before everything was done.
    #[error("stopped")]
    Stopped,
    /// Something failed after there were results: they are printed first.
    #[error("{error}{note}")]
    Partly {
        /// Text to print.
        text: String,
        /// Why it ends.
        error: Box<Self>,
        /// Consequence for the results.
        note: &'static str,
    },
    /// A stream without any operation for the disk.
    #[error("the workload gives the disk nothing to do")]
    Nothing,
}
