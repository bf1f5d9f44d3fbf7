//! The error codes and error texts that C callers get.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use foxy_hummingbird::Error;

/// A pointer that must not be NULL is NULL.
pub(crate) const NULL: Failure = Failure::Text(-8, "a pointer is NULL");
/// The failure of closing a file system while reads are open (`HUMMINGBIRD_BUSY`).
pub(crate) const READS_OPEN: Failure = Failure::Text(-2, "there are reads that were not ended");
/// The failure of ending a read that does not exist (`HUMMINGBIRD_NOT_FOUND`).
pub(crate) const NO_READ: Failure = Failure::Text(-1, "there is no such read to end");
const INTERNAL: Failure = Failure::Text(-9, "a defect of the library");

/// The reason why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library.
    Library(Error),
    /// An error of this crate: its code and its text.
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
    // The paths in the texts come from C strings, so they contain no zero.
    LAST.with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
    code
}

/// The text of this thread's last error.
pub(crate) fn last() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// Makes a call. A panic in the call becomes an error code.
pub(crate) fn guarded(call: impl FnOnce() -> Result<i64, Failure>) -> i64 {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(INTERNAL));
    result.unwrap_or_else(|failure| remember(&failure))
}
