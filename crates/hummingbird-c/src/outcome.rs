//! Codes and texts of errors.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use foxy_hummingbird::Error;

/// A pointer that must not be NULL is.
pub(crate) const NULL: Failure = Failure::Text(-8, "a pointer is NULL");
/// `HUMMINGBIRD_BUSY` for a file system.
pub(crate) const READS_OPEN: Failure = Failure::Text(-2, "there are reads that were not ended");
/// `HUMMINGBIRD_NOT_FOUND` for the end of a read.
pub(crate) const NO_READ: Failure = Failure::Text(-1, "there is no such read to end");
const INTERNAL: Failure = Failure::Text(-9, "a defect of the library");

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library says so.
    Library(Error),
    /// The boundary says so: code and text.
    Text(i64, &'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(failure: &Failure) -> i64 {
    let (code, text) = match failure {
        Failure::Library(error) => (error.code(), error.to_string()),
        Failure::Text(code, text) => (*code, (*text).to_owned()),
    };
    // Paths in texts come from C strings, so there is no zero in them.
    LAST.with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
    code
}

/// The text of this thread's last error.
pub(crate) fn last() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// Carries out a call; a panic ends here.
pub(crate) fn guarded(call: impl FnOnce() -> Result<i64, Failure>) -> i64 {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(INTERNAL));
    result.unwrap_or_else(|failure| remember(&failure))
}
