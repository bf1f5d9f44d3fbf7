//! Stopping early: Ctrl-C sets a flag. Long work checks the flag now and then and ends with
//! [`RunError::Stopped`], so that finished results can still be shown.

use std::sync::atomic::{AtomicBool, Ordering};

use super::RunError;

/// One flag for the whole process, because there is one terminal.
static STOP: AtomicBool = AtomicBool::new(false);

/// Asks all work of this process to end soon.
pub fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

/// True if this process was asked to stop.
#[must_use]
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Returns an error if the loop that calls this function should end.
pub(crate) fn go_on() -> Result<(), RunError> {
    if stopped() {
        Err(RunError::Stopped)
    } else {
        Ok(())
    }
}
