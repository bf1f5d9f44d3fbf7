//! Stopping early: Ctrl-C sets a flag, long work looks at it now and
//! then and ends with [`RunError::Stopped`], so that what was finished can still be shown.

use std::sync::atomic::{AtomicBool, Ordering};

use super::RunError;

/// One flag for the process, because there is one terminal.
static STOP: AtomicBool = AtomicBool::new(false);

/// Asks all work of this process to end soon.
pub fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

/// True if somebody has asked this process to stop.
#[must_use]
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// For a loop: an error when it should end.
pub(crate) fn go_on() -> Result<(), RunError> {
    if stopped() {
        Err(RunError::Stopped)
    } else {
        Ok(())
    }
}
