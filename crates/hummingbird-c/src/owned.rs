//! Memory whose ownership a C caller passes to the library.

use std::ffi::c_void;

use bytes::Bytes;

/// The function that frees the memory.
pub(crate) type Release = unsafe extern "C" fn(*mut c_void);

struct Owned {
    buf: *mut u8,
    size: usize,
    release: Release,
}

// SAFETY: the memory belongs to the library, and the caller permits `release` on any thread (hummingbird.h).
unsafe impl Send for Owned {}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the caller passed the memory with this size, and it is not NULL. Nobody changes it until
        // `release`, which the drop of `self` calls.
        unsafe { std::slice::from_raw_parts(self.buf, self.size) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: `release` is called once, with the pointer that the caller passed together with `release`.
        unsafe { (self.release)(self.buf.cast()) }
    }
}

/// Returns the contents of a write: the caller's memory itself if there is a `release`, otherwise a copy.
///
/// # Safety
/// `buf` is NULL or points to `size` readable bytes. If there is a `release`, these bytes belong to the
/// library from this call on.
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
            // SAFETY: the caller guarantees `size` bytes, and `buf` is not NULL.
            let bytes = unsafe { std::slice::from_raw_parts(buf.cast::<u8>(), size) };
            Some(Bytes::copy_from_slice(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const SIZE: usize = 5;

    /// Returns new memory with [`SIZE`] bytes, such as a C caller passes to the library.
    fn given() -> *mut c_void {
        Box::into_raw(Box::new(*b"bytes")).cast()
    }

    /// Frees memory that [`given`] returned, and counts the calls.
    unsafe extern "C" fn free(buf: *mut c_void) {
        FREED.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the drop of an `Owned` calls this function once, with memory that `given()` returned.
        drop(unsafe { Box::from_raw(buf.cast::<[u8; SIZE]>()) });
    }

    static FREED: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn memory_that_is_given_away_is_freed_once_after_its_last_use_on_any_thread() {
        // SAFETY: `given()` returns `SIZE` bytes, and `free` is the function that frees them.
        let bytes = unsafe { contents(given(), SIZE, Some(free)) }.unwrap();
        let tail = bytes.slice(1..);
        drop(bytes);
        assert_eq!(FREED.load(Ordering::SeqCst), 0);
        std::thread::spawn(move || assert_eq!(tail, "ytes"))
            .join()
            .unwrap();
        assert_eq!(FREED.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn memory_that_is_lent_is_copied_and_null_has_no_bytes() {
        let buf = given();
        // SAFETY: `buf` points to `SIZE` bytes, and `contents` only copies them, because there is no
        // `release`.
        let bytes = unsafe { contents(buf, SIZE, None) }.unwrap();
        // SAFETY: `given()` allocated `buf` with this type, and `buf` is freed only here.
        drop(unsafe { Box::from_raw(buf.cast::<[u8; SIZE]>()) });
        assert_eq!(bytes, "bytes");
        for (size, is_right) in [(0, true), (1, false)] {
            // SAFETY: `contents` permits NULL.
            let nothing = unsafe { contents(std::ptr::null_mut(), size, None) };
            assert_eq!(nothing.is_some_and(|bytes| bytes.is_empty()), is_right);
        }
    }
}
