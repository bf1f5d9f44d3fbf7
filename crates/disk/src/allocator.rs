//! Settings of the process's allocator. They are here because this is the proxy's only crate with `unsafe`.

use std::ffi::c_long;
use std::io;
use std::time::Duration;

/// `mi_option_purge_delay` of mimalloc 3.
const PURGE_DELAY: i32 = 15;

/// From now on mimalloc gives freed pages back to the system after `delay` (its default: 1 s;
/// resolution: 1 ms; zero: at once). Memory that is not given back counts as used by the process. Has
/// no effect on other allocators.
pub fn give_back_after(delay: Duration) {
    let millis = c_long::try_from(delay.as_millis()).unwrap_or(c_long::MAX);
    // SAFETY: the function stores a number in a table of the allocator, and is for any thread. The
    // option's number is within the table: `tests` below reads its default.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, millis) };
}

/// Forbids huge pages to this process (`small`), or permits them again. The choice holds for pages that
/// the process touches later, and prevails over [`prefer_huge_pages`](crate::prefer_huge_pages). A huge
/// page (2 MiB) is resident as a whole as soon as one byte of it is used, so many short objects need more
/// memory with them. Programs that this process starts inherit the choice.
///
/// # Errors
/// The kernel refuses. Systems other than Linux have no such choice, and the call does nothing.
pub fn use_small_pages(small: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(small)?;
    #[cfg(not(target_os = "linux"))]
    let _ = small;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_that_of_the_purge_delay() {
        // SAFETY: as above.
        let get = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(get(), 1000, "the documented default of mimalloc 3");
        give_back_after(Duration::from_millis(7));
        assert_eq!(get(), 7);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pages_are_small_until_they_may_be_huge_again() {
        let small = || rustix::thread::transparent_huge_pages_are_disabled().unwrap();
        use_small_pages(true).unwrap();
        assert!(small());
        use_small_pages(false).unwrap();
        assert!(!small());
    }
}
