//! The common parts of every measurement: a folder, a runtime on this thread, an exit code.

use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

/// Returns the exit code of a measurement: 0 if all its conditions were met, 1 if a condition was not met, 2
/// if nothing was measured. In the last case, the reason is printed on standard error.
#[must_use]
pub fn exit(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("foxy-lab: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Creates a folder for the files of a measurement. The folder is removed when the returned value is dropped.
///
/// # Errors
/// An error if the system cannot create a folder.
pub fn folder() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("no folder: {error}"))
}

/// Creates a runtime on the calling thread.
///
/// # Errors
/// An error if the system cannot create an event queue.
pub fn runtime() -> Result<Runtime, String> {
    let mut builder = Builder::new_current_thread();
    let built = builder.enable_all().build();
    built.map_err(|error| format!("no runtime: {error}"))
}
