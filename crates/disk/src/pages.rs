//! Mapped memory that takes no physical memory before it is used, and advice to the system about memory of
//! other crates.

use std::sync::{Mutex, PoisonError};

use crate::buf::map_aligned;

/// Memory that [`map_zeroed`] returned and [`unmap_zeroed`] took back. It is all zeros, and is reused.
static SPARE: Mutex<Vec<&'static mut [u8]>> = Mutex::new(Vec::new());
/// Addresses and lengths of the mappings in use.
static IN_USE: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Zeroed memory of `len` bytes (a multiple of 4096) on a boundary of 2 MiB. It takes no physical memory
/// before it is used. Return it with [`unmap_zeroed`]. The result is `None` if `len` is 0 or no multiple of
/// 4096, or if the system refuses the mapping.
#[must_use]
pub fn map_zeroed(len: usize) -> Option<&'static mut [u8]> {
    if len == 0 || !len.is_multiple_of(4096) {
        return None;
    }
    let bytes = match take_spare(len) {
        Some(spare) => spare,
        None => {
            let start = map_aligned(len)?;
            // SAFETY: the mapping is fresh and nobody else uses it; it has `len` readable and writable zeros.
            // The mapping stays for as long as the process lives.
            unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
        }
    };
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.push((bytes.as_ptr() as usize, len));
    Some(bytes)
}

fn take_spare(len: usize) -> Option<&'static mut [u8]> {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let at = spare.iter().position(|bytes| bytes.len() == len)?;
    Some(spare.swap_remove(at))
}

/// Takes back the complete memory that one call of [`map_zeroed`] returned. The pages go back to the system.
/// The addresses stay mapped, because a `'static` reference must stay valid for ever. The next request of
/// this length gets these addresses. Other memory is not changed.
pub fn unmap_zeroed(bytes: &'static mut [u8]) {
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let this = (bytes.as_ptr() as usize, bytes.len());
    let Some(at) = in_use.iter().position(|other| *other == this) else {
        return;
    };
    in_use.swap_remove(at);
    drop(in_use);
    drop_pages(bytes);
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    spare.push(bytes);
}

/// Replaces `bytes` with zeros that take no physical memory. `bytes` must be whole pages of a private
/// mapping.
fn drop_pages(bytes: &mut [u8]) {
    #[cfg(target_os = "linux")]
    {
        let start = bytes.as_mut_ptr().cast();
        // SAFETY: the pages are mapped, private, anonymous and ours alone while `bytes` is borrowed; later
        // reads return zeros, which are valid bytes.
        if unsafe { libc::madvise(start, bytes.len(), libc::MADV_DONTNEED) } == 0 {
            return;
        }
    }
    bytes.fill(0);
}

/// Asks the system to use huge pages (2 MiB) for the `len` bytes from `start`. Linux 6.1 and later do this
/// during the call, in about 0.3 ms for each huge page. Otherwise the system chooses the time. The contents
/// do not change, and concurrent reads and writes are safe. If the system has no huge pages, nothing happens.
pub fn prefer_huge_pages(start: *const u8, len: usize) {
    #[cfg(target_os = "linux")]
    for advice in [libc::MADV_COLLAPSE, libc::MADV_HUGEPAGE] {
        // SAFETY: neither advice changes the contents or the rights of a page. The address may be any number,
        // even if no memory is mapped there, because the system checks it.
        if unsafe { libc::madvise(start.cast_mut().cast(), len, advice) } == 0 {
            return;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, len);
}

/// Asks the processor to load the line of 64 bytes that contains `place` into its caches. A read would make
/// the processor wait for the line. After this request, the caller continues immediately. As many requests
/// can be under way as the processor supports. Any address is valid.
#[inline]
pub fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of every x86-64 processor. It is a hint that only affects the caches
    // and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    #[test]
    fn mapped_memory_is_zero_aligned_and_given_back_once() {
        for len in [4096, 4 << 20, (2 << 20) + 4096] {
            let bytes = super::map_zeroed(len).unwrap();
            assert_eq!(
                (bytes.len(), bytes.as_ptr().align_offset(2 << 20)),
                (len, 0)
            );
            assert!(bytes.iter().all(|b| *b == 0));
            bytes.fill(7);
            super::unmap_zeroed(bytes);
            let again = super::map_zeroed(len).unwrap();
            assert!(again.iter().all(|b| *b == 0), "zeros again");
            super::unmap_zeroed(again);
        }
        super::unmap_zeroed(Box::leak(Box::new([1; 64])));
        assert!(super::map_zeroed(77).is_none() && super::map_zeroed(0).is_none());
    }

    #[test]
    fn any_address_can_be_asked_for() {
        let here = 7u8;
        for place in [&raw const here, std::ptr::null(), usize::MAX as *const u8] {
            super::prefetch(place);
        }
        assert_eq!(here, 7);
    }

    #[test]
    fn advice_keeps_the_contents_and_survives_any_address() {
        let memory: Vec<u8> = (0..6 << 20).map(|n: u32| (n % 251) as u8).collect();
        let lead = memory.as_ptr().align_offset(2 << 20);
        super::prefer_huge_pages(memory[lead..].as_ptr(), 2 << 20);
        super::prefer_huge_pages(std::ptr::null(), 4096);
        super::prefer_huge_pages(memory.as_ptr().wrapping_add(1), 77);
        assert!(
            (0..)
                .zip(&memory)
                .all(|(n, b): (u32, _)| *b == (n % 251) as u8)
        );
    }
}
