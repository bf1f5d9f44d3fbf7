//! The process's allocator, and its settings. They are here because this is the proxy's only crate with `unsafe`.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_long;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libmimalloc_sys as mi;

/// `mi_option_purge_delay` of mimalloc 3.
const PURGE_DELAY: i32 = 15;
/// `mi_option_allow_thp` of mimalloc 3: 1 asks the kernel for huge pages wherever mimalloc maps memory.
const ALLOW_THP: i32 = 43;

/// Runs [`forbid_huge_pages`] before `main`: the standard library allocates before it, and a huge page
/// that exists stays. The section is that of the C library's constructors.
#[cfg(target_os = "linux")]
// SAFETY: entries of this section are functions of the C calling convention that return nothing. The C
// library calls each of them once, in one thread, when it is itself ready.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = forbid_huge_pages;

/// Makes the memory of mimalloc ordinary pages of 4 KiB. With huge pages 5 MiB more are resident at the
/// start, and a thread that touches new memory waits until the kernel has made room for 2 MiB and cleared
/// them: up to 30 ms. Other memory may have huge pages ([`prefer_huge_pages`](crate::prefer_huge_pages)).
#[cfg(target_os = "linux")]
extern "C" fn forbid_huge_pages() {
    // SAFETY: both functions are for any thread and may be called again. mimalloc must be initialised first:
    // it would forbid huge pages to the whole process otherwise. The option's number is within the table.
    unsafe {
        mi::mi_process_init();
        mi::mi_option_set(ALLOW_THP, 0);
    }
}

/// mimalloc 3, for `#[global_allocator]`: fewer cycles per miss than the system's allocator.
///
/// It keeps blocks of one size together in an area: of 4 MiB for sizes of 84 to 512 KiB. An area goes back to the
/// system when its last block is freed, so a burst leaves many areas with few blocks each. See
/// [`separate_long_blocks`].
#[derive(Debug, Clone, Copy)]
pub struct Allocator;

/// Sizes of blocks, in bytes, that share areas of 4 MiB: from `MI_MEDIUM_MAX_OBJ_SIZE` (rounded down) to
/// `MI_LARGE_MAX_OBJ_SIZE` of mimalloc.
const SHARED: RangeInclusive<usize> = 80 << 10..=512 << 10;
/// A longer block is alone in its area.
const ALONE: usize = (512 << 10) + 1;

static SEPARATE: AtomicBool = AtomicBool::new(false);

/// Sets whether [`Allocator`] gives each block of 80 to 512 KiB an area of its own from now on. Pages
/// of it that are not touched need no memory; the block goes back to the system as soon as it is
/// freed, which costs a system call and the page faults of the next one.
pub fn separate_long_blocks(separate: bool) {
    SEPARATE.store(separate, Ordering::Relaxed);
}

/// Size to request from mimalloc for a block of `size` bytes.
fn separated(size: usize) -> usize {
    match SHARED.contains(&size) && SEPARATE.load(Ordering::Relaxed) {
        true => ALONE,
        false => size,
    }
}

// SAFETY: mimalloc's functions are for any thread, return null or a block of the size and alignment that was asked
// for, and free any block of theirs. A block of at least the layout's size is one of that layout.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: an alignment of a layout is a power of two.
        unsafe { mi::mi_malloc_aligned(separated(layout.size()), layout.align()).cast() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        if separated(size) == size {
            // SAFETY: as above.
            return unsafe { mi::mi_zalloc_aligned(size, align).cast() };
        }
        // mimalloc would write zeros to all of the area.
        // SAFETY: the layout is the caller's, and the block has at least `size` bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, size);
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller's block is one of mimalloc's.
        unsafe { mi::mi_free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; a block that is large enough stays where it is.
        unsafe {
            let alone = SHARED.contains(&layout.size()) && SHARED.contains(&size);
            if alone && mi::mi_usable_size(block.cast()) >= ALONE {
                return block;
            }
            mi::mi_realloc_aligned(block.cast(), separated(size), layout.align()).cast()
        }
    }
}

/// From now on mimalloc gives freed pages back to the system after `delay` (its default: 1 s;
/// resolution: 1 ms; zero: at once). Memory that is not given back counts as used by the process. Has
/// no effect on other allocators.
pub fn give_back_after(delay: Duration) {
    let millis = c_long::try_from(delay.as_millis()).unwrap_or(c_long::MAX);
    // SAFETY: the function stores a number in a table of the allocator, and is for any thread. The
    // option's number is within the table: `tests` below reads its default.
    unsafe { mi::mi_option_set(PURGE_DELAY, millis) };
}

/// Forbids huge pages to this process (`small`), or permits them where
/// [`prefer_huge_pages`](crate::prefer_huge_pages) or a buffer asks for them. The choice holds for pages that the
/// process touches later. A huge page (2 MiB) is resident as a whole as soon as one byte of it is used. A process
/// with many short objects needs more memory with huge pages. Programs that this process starts inherit the choice.
///
/// Linux before 6.18 cannot tell memory that asks from other memory. There, huge pages that the system gives
/// unasked (`transparent_hugepage/enabled` is `always`) stay permitted.
///
/// # Errors
/// The kernel refuses. Systems other than Linux have no such choice, and the call does nothing.
pub fn use_small_pages(small: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        /// `PR_THP_DISABLE_EXCEPT_ADVISED` of Linux 6.18.
        const EXCEPT_ADVISED: libc::c_ulong = 2;
        // SAFETY: this operation has numbers only, and changes which pages the kernel chooses later.
        let set = |forbidden: libc::c_ulong, flags: libc::c_ulong| unsafe {
            libc::prctl(libc::PR_SET_THP_DISABLE, forbidden, flags, 0_u64, 0_u64) == 0
        };
        let done = match small {
            true => set(1, 0),
            false => set(1, EXCEPT_ADVISED) || set(0, 0),
        };
        if !done {
            return Err(io::Error::last_os_error());
        }
    }
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
        let get = || unsafe { mi::mi_option_get(PURGE_DELAY) };
        assert_eq!(get(), 1000, "the documented default of mimalloc 3");
        give_back_after(Duration::from_millis(7));
        assert_eq!(get(), 7);
    }

    /// Zero: huge pages are permitted. 1: forbidden. 3: permitted where they are requested.
    #[cfg(target_os = "linux")]
    fn huge_pages_forbidden() -> i32 {
        // SAFETY: the operation reads a number of the process.
        unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0_u64, 0_u64, 0_u64, 0_u64) }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_allocator_asks_for_no_huge_pages_from_the_start() {
        // SAFETY: as above.
        assert_eq!(unsafe { mi::mi_option_get(ALLOW_THP) }, 0, "1 by default");
        // A parent that forbids huge pages forbids them to its children.
        let parent = format!("/proc/{}/status", std::os::unix::process::parent_id());
        let inherited = std::fs::read_to_string(parent)
            .is_ok_and(|status| status.lines().any(|line| line == "THP_enabled:\t0"));
        let _switch = SWITCH.lock();
        assert!(
            inherited || huge_pages_forbidden() != 1,
            "others may have them"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pages_are_small_until_they_may_be_huge_again() {
        let _switch = SWITCH.lock();
        use_small_pages(true).unwrap();
        assert_eq!(huge_pages_forbidden(), 1);
        use_small_pages(false).unwrap();
        assert!(matches!(huge_pages_forbidden(), 0 | 3));
    }

    /// Held by the tests that turn a switch of the process.
    static SWITCH: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    /// Uses the allocator under test directly; the tests' own may be another.
    fn at(size: usize, align: usize) -> (Layout, *mut u8) {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: the size is not zero.
        let block = unsafe { Allocator.alloc(layout) };
        assert!(!block.is_null());
        assert_eq!(block.align_offset(align), 0, "{size} at {align}");
        (layout, block)
    }

    fn usable(block: *mut u8) -> usize {
        // SAFETY: the callers' blocks are the allocator's, and not freed yet.
        unsafe { mi::mi_usable_size(block.cast()) }
    }

    #[test]
    fn long_blocks_are_alone_while_they_are_separated() {
        let _switch = SWITCH.lock();
        separate_long_blocks(true);
        for size in [
            1,
            4096,
            80 << 10,
            100_000,
            512 << 10,
            (512 << 10) + 1,
            3 << 20,
        ] {
            for align in [1, 64, 4096] {
                let (layout, block) = at(size, align);
                assert_eq!(usable(block) >= ALONE, size >= *SHARED.start(), "{size}");
                // SAFETY: the block is of this layout, and freed once.
                unsafe { Allocator.dealloc(block, layout) };
            }
        }
        separate_long_blocks(false);
        let (layout, block) = at(100_000, 1);
        assert!(usable(block) < ALONE);
        // SAFETY: as above.
        unsafe { Allocator.dealloc(block, layout) };
    }

    #[test]
    fn blocks_keep_their_bytes_when_their_size_changes() {
        let _switch = SWITCH.lock();
        let sizes = [
            500_000, 90_000, 600_000, 200_000, 30_000, 100_000, 100, 90_000,
        ];
        // The first block shares its area, and the later ones do not.
        let (mut layout, mut block) = at(90_000, 16);
        separate_long_blocks(true);
        // SAFETY: bytes within the block, which `realloc` replaces and `dealloc` frees once.
        unsafe {
            block.write_bytes(7, layout.size());
            for size in sizes {
                let kept = layout.size().min(size);
                block = Allocator.realloc(block, layout, size);
                layout = Layout::from_size_align(size, 16).unwrap();
                assert!(usable(block) >= size, "{size}");
                assert!((0..kept).all(|i| block.add(i).read() == 7), "{size}");
                block.write_bytes(7, size);
            }
            Allocator.dealloc(block, layout);
        }
        separate_long_blocks(false);
    }

    #[test]
    fn zeroed_blocks_are_zeroed_where_others_were_before() {
        let _switch = SWITCH.lock();
        separate_long_blocks(true);
        let layout = Layout::from_size_align(300_000, 4096).unwrap();
        for _ in 0..20 {
            // SAFETY: as above.
            unsafe {
                let block = Allocator.alloc_zeroed(layout);
                assert!((0..300_000).all(|i| block.add(i).read() == 0));
                block.write_bytes(9, 300_000);
                Allocator.dealloc(block, layout);
            }
        }
        separate_long_blocks(false);
    }
}
