//! Settings of the process's allocator. They are here because this is the proxy's only crate with `unsafe`.

use std::ffi::c_long;
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
}
