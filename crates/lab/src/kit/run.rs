//! The common parts of every measurement: a folder, a runtime on this thread, an exit code.

use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

/// The exit code of a measurement: 0 if all promises were kept, 1 if a promise was broken, 2 if nothing was
/// measured. With 2, the reason is printed on standard error.
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
/// The system cannot create a folder.
pub fn folder() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("no folder: {error}"))
}

/// Creates a runtime on the calling thread.
///
/// # Errors
/// The system cannot create an event queue.
pub fn runtime() -> Result<Runtime, String> {
    let mut builder = Builder::new_current_thread();
    let built = builder.enable_all().build();
    built.map_err(|error| format!("no runtime: {error}"))
}
