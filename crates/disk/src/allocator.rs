//! The process's allocator, and its settings. This crate contains them because it is the proxy's only crate
//! with `unsafe`.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_long;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libmimalloc_sys as mi;

/// Number of the option `mi_option_purge_delay` of mimalloc 3.
const PURGE_DELAY: i32 = 15;
/// Number of the option `mi_option_allow_thp` of mimalloc 3. With the value 1, mimalloc asks the kernel for
/// huge pages wherever it maps memory.
const ALLOW_THP: i32 = 43;

/// Runs [`forbid_huge_pages`] before `main`: the standard library allocates before `main` begins, and a page
/// that is huge by then would remain huge. The C library calls the functions in this section as constructors.
#[cfg(target_os = "linux")]
// SAFETY: entries of this section are functions of the C calling convention that return nothing. The C
// library calls each of them once, in one thread, after its own initialisation.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = forbid_huge_pages;

/// Makes mimalloc use ordinary pages of 4 KiB. With huge pages, 5 MiB more are resident at the start. Also, a
/// thread that touches new memory waits up to 30 ms, until the kernel has found and cleared 2 MiB. Other
/// memory may still be in huge pages ([`prefer_huge_pages`](crate::prefer_huge_pages)).
#[cfg(target_os = "linux")]
extern "C" fn forbid_huge_pages() {
    // SAFETY: both functions are for any thread and may be called again. mimalloc must be initialised before
    // the option is set: if the option is 0 during the initialisation, mimalloc forbids huge pages to the
    // whole process. `ALLOW_THP` is a valid number in mimalloc's table of options.
    unsafe {
        mi::mi_process_init();
        mi::mi_option_set(ALLOW_THP, 0);
    }
}

/// mimalloc 3, for `#[global_allocator]`. With it, a request that misses the proxy's cache costs fewer CPU
/// cycles than with the system's allocator.
///
/// mimalloc keeps blocks of similar size together in an area. For sizes of 84 to 512 KiB an area has 4 MiB.
/// An area goes back to the system when its last block is freed. So after a burst many areas may remain with
/// few blocks each. See [`separate_long_blocks`].
#[derive(Debug, Clone, Copy)]
pub struct Allocator;

/// Sizes of blocks, in bytes, that share areas of 4 MiB: from `MI_MEDIUM_MAX_OBJ_SIZE` (rounded down) to
/// `MI_LARGE_MAX_OBJ_SIZE` of mimalloc.
const SHARED: RangeInclusive<usize> = 80 << 10..=512 << 10;
/// Least size in bytes of a block that has its own area.
const ALONE: usize = (512 << 10) + 1;

static SEPARATE: AtomicBool = AtomicBool::new(false);

/// Sets whether [`Allocator`] gives each new block of 80 to 512 KiB its own area. Pages of the area that are
/// not touched need no memory. The block goes back to the system as soon as it is freed. This costs a system
/// call, and page faults when a later block is used.
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

// SAFETY: any thread may call mimalloc's functions. They return null or a block of the requested size and
// alignment, and they free any block of mimalloc. A block of at least the layout's size fits the layout.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: an alignment of a layout is a power of two.
        unsafe { mi::mi_malloc_aligned(separated(layout.size()), layout.align()).cast() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        if separated(size) == size {
            // SAFETY: as in `alloc`: an alignment of a layout is a power of two.
            return unsafe { mi::mi_zalloc_aligned(size, align).cast() };
        }
        // For a block with its own area, mimalloc would write zeros to the whole area. Only the requested
        // bytes must be zero. SAFETY: the layout is the caller's, and the block has at least `size` bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, size);
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: mimalloc allocated the caller's block.
        unsafe { mi::mi_free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: mimalloc allocated the caller's block. A block that is large enough is not moved.
        unsafe {
            let alone = SHARED.contains(&layout.size()) && SHARED.contains(&size);
            if alone && mi::mi_usable_size(block.cast()) >= ALONE {
                return block;
            }
            mi::mi_realloc_aligned(block.cast(), separated(size), layout.align()).cast()
        }
    }
}

/// Sets the delay after which mimalloc returns freed pages to the system. The default is 1 s, the resolution
/// is 1 ms, and zero means no delay. Memory that is not returned counts as used by the process. The call has
/// no effect on other allocators.
pub fn give_back_after(delay: Duration) {
    let millis = c_long::try_from(delay.as_millis()).unwrap_or(c_long::MAX);
    // SAFETY: the function stores a value in mimalloc's table of options, and any thread may call it.
    // `PURGE_DELAY` is a valid number in this table: `tests` below reads the default of this option.
    unsafe { mi::mi_option_set(PURGE_DELAY, millis) };
}

/// If `small` is true, forbids huge pages to this process. Otherwise permits them where
/// [`prefer_huge_pages`](crate::prefer_huge_pages) or a buffer asks for them. The choice applies to pages
/// that the process touches later. A huge page (2 MiB) is resident as a whole as soon as one byte of it is
/// used. So a process with many short objects needs more memory with huge pages. Programs that this process
/// starts inherit the choice.
///
/// Linux before 6.18 cannot restrict huge pages to the memory for which they were requested. There,
/// `use_small_pages(false)` permits huge pages everywhere. The system then also uses them without a request
/// if `transparent_hugepage/enabled` is `always`.
///
/// # Errors
/// The error of the kernel if it refuses. On systems other than Linux, the call does nothing, because they do
/// not offer this choice.
pub fn use_small_pages(small: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        /// `PR_THP_DISABLE_EXCEPT_ADVISED` of Linux 6.18.
        const EXCEPT_ADVISED: libc::c_ulong = 2;
        // SAFETY: the arguments of this operation are only numbers, and it only changes which pages the
        // kernel chooses later.
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
        // SAFETY: the function reads a number in a table of the allocator, and any thread may call it.
        let get = || unsafe { mi::mi_option_get(PURGE_DELAY) };
        assert_eq!(get(), 1000, "the documented default of mimalloc 3");
        give_back_after(Duration::from_millis(7));
        assert_eq!(get(), 7);
    }

    /// Returns 0 if huge pages are permitted, 1 if they are forbidden, and 3 if they are permitted only where
    /// they are requested.
    #[cfg(target_os = "linux")]
    fn huge_pages_forbidden() -> i32 {
        // SAFETY: the operation only reads a number of the process.
        unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0_u64, 0_u64, 0_u64, 0_u64) }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_allocator_asks_for_no_huge_pages_from_the_start() {
        // SAFETY: the function reads a number in a table of the allocator, and any thread may call it.
        assert_eq!(unsafe { mi::mi_option_get(ALLOW_THP) }, 0, "1 by default");
        // If the parent process forbids huge pages, they are also forbidden to its children.
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

    /// Lock that a test holds while it changes a setting of the process.
    static SWITCH: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    /// Allocates with the allocator under test directly. The test program itself may use another allocator.
    fn at(size: usize, align: usize) -> (Layout, *mut u8) {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: the size is not zero.
        let block = unsafe { Allocator.alloc(layout) };
        assert!(!block.is_null());
        assert_eq!(block.align_offset(align), 0, "{size} at {align}");
        (layout, block)
    }

    fn usable(block: *mut u8) -> usize {
        // SAFETY: the caller's block comes from this allocator and is not freed yet.
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
                // SAFETY: the block has this layout, and is freed once.
                unsafe { Allocator.dealloc(block, layout) };
            }
        }
        separate_long_blocks(false);
        let (layout, block) = at(100_000, 1);
        assert!(usable(block) < ALONE);
        // SAFETY: the block has this layout, and is freed once.
        unsafe { Allocator.dealloc(block, layout) };
    }

    #[test]
    fn blocks_keep_their_bytes_when_their_size_changes() {
        let _switch = SWITCH.lock();
        let sizes = [
            500_000, 90_000, 600_000, 200_000, 30_000, 100_000, 100, 90_000,
        ];
        // The first block shares its area; the later blocks do not.
        let (mut layout, mut block) = at(90_000, 16);
        separate_long_blocks(true);
        // SAFETY: the bytes written are within the block. `realloc` replaces the block, and `dealloc` frees
        // it once.
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
            // SAFETY: the bytes read and written are within the block, which is freed once.
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
