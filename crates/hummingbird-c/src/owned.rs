//! Memory that a caller hands over.

use std::ffi::c_void;

use bytes::Bytes;

/// The function that frees it.
pub(crate) type Release = unsafe extern "C" fn(*mut c_void);

struct Owned {
    buf: *mut u8,
    size: usize,
    release: Release,
}

// SAFETY: the caller gave the memory away and allows `release` on any thread (hummingbird.h).
unsafe impl Send for Owned {}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory was given away with this size, is not NULL, and nobody changes it until
        // `release`, which the drop of `self` calls.
        unsafe { std::slice::from_raw_parts(self.buf, self.size) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: it is called once, with the pointer that it was given for.
        unsafe { (self.release)(self.buf.cast()) }
    }
}

/// The contents of a write: the caller's memory itself with `release`, else a copy.
///
/// # Safety
/// `buf` is NULL or points to `size` readable bytes; with `release` they are given away.
pub(crate) unsafe fn contents(
    buf: *mut c_void,
    size: usize,
    release: Option<Release>,
) -> Option<Bytes> {
    match release {
        _ if buf.is_null() => (size == 0).then(Bytes::new),
        Some(release) => Some(Bytes::from_owner(Owned {
            buf: buf.cast(),
            size,
            release,
        })),
        None => {
            // SAFETY: the caller says that there are `size` bytes, and `buf` is not NULL.
            let bytes = unsafe { std::slice::from_raw_parts(buf.cast::<u8>(), size) };
            Some(Bytes::copy_from_slice(bytes))
        }
    }
}
