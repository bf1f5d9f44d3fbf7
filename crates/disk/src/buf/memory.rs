//! The memory of a buffer. It is allocated zeroed, freed once, and reached only through `&self` or `&mut`.

use super::{HUGE, PAGE};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

/// `capacity` initialised bytes at a fixed address.
pub(super) struct Memory {
    start: NonNull<u8>,
    capacity: usize,
    from: Source,
}

#[derive(Clone, Copy, PartialEq)]
enum Source {
    /// Capacity 0: there is nothing to free.
    Nothing,
    /// Memory from the allocator, with alignment [`PAGE`].
    Heap,
    /// An anonymous mapping.
    Mapping,
}

/// Memory of capacity 0.
pub(super) static EMPTY: Memory = Memory {
    start: NonNull::<u8>::dangling(),
    capacity: 0,
    from: Source::Nothing,
};

// SAFETY: Memory owns its bytes exclusively, like a Box<[u8]>. Access to the bytes needs `&` (read) or `&mut`
// (write) to the Memory. So sending or sharing it follows the rules of the bytes themselves.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`. `&Memory` gives read access only: `as_ptr` returns a pointer, and the unsafe code
// that dereferences the pointer is responsible for its use.
unsafe impl Sync for Memory {}

impl Memory {
    /// Zeroed memory for at least `len` bytes, aligned to [`PAGE`].
    pub(super) fn ordinary(len: usize) -> Self {
        if len == 0 {
            return Self {
                start: NonNull::dangling(),
                capacity: 0,
                from: Source::Nothing,
            };
        }
        let layout = layout(len.next_multiple_of(PAGE));
        // SAFETY: the layout is not empty, since len > 0 was rounded up.
        let raw = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(raw) else {
            handle_alloc_error(layout)
        };
        Self {
            start,
            capacity: layout.size(),
            from: Source::Heap,
        }
    }

    /// Zeroed memory for at least `len` bytes, aligned to [`HUGE`]. It is ordinary memory if the mapping
    /// fails, or if `len` is below a sixteenth of a huge page. A device transfers such a short buffer in one
    /// request, even from ordinary pages. In a huge page, most of the memory would be zeroed and resident,
    /// but not used.
    pub(super) fn huge(len: usize) -> Self {
        if len < HUGE / 16 {
            return Self::ordinary(len);
        }
        let capacity = len.next_multiple_of(HUGE);
        match map_huge(capacity) {
            Some(start) => Self {
                start,
                capacity,
                from: Source::Mapping,
            },
            None => Self::ordinary(len),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The first `len` bytes; `len` must not exceed the capacity (checked).
    pub(super) fn slice(&self, len: usize) -> &[u8] {
        assert!(len <= self.capacity);
        // SAFETY: `start` is valid for `capacity` initialised bytes: they were allocated zeroed, and are
        // overwritten only with initialised bytes. `&self` keeps these bytes alive and excludes writers. The
        // kernel gets a buffer only by value, when no reference to the buffer can exist.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), len) }
    }

    /// The first `len` bytes for writing; `len` must not exceed the capacity (checked).
    pub(super) fn slice_mut(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= self.capacity);
        // SAFETY: as in `slice`, and `&mut self` makes this the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.from {
            Source::Nothing => {}
            // SAFETY: `start` came from `alloc_zeroed` with exactly this layout and is freed once.
            Source::Heap => unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) },
            Source::Mapping => unmap(self.start, self.capacity),
        }
    }
}

/// The layout of `size` bytes (already rounded up), aligned to a page.
fn layout(size: usize) -> Layout {
    // An impossible size is handled like a failed allocation.
    Layout::from_size_align(size, PAGE).unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()))
}

/// Maps `capacity` bytes on a [`HUGE`] boundary and asks for huge pages.
fn map_huge(capacity: usize) -> Option<NonNull<u8>> {
    let start = map_aligned(capacity)?;
    advise_huge(start, capacity);
    Some(start)
}

/// Maps `capacity` zeroed bytes (a multiple of [`PAGE`]) on a [`HUGE`] boundary.
pub(crate) fn map_aligned(capacity: usize) -> Option<NonNull<u8>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let total = capacity.checked_add(HUGE)?;
    // SAFETY: a fresh private mapping at an address that the kernel chooses touches no other memory.
    let base = unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            total,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }
    .ok()?
    .cast::<u8>();
    let lead = base.align_offset(HUGE);
    let tail = HUGE - lead;
    let start = NonNull::new(base.wrapping_add(lead))?;
    if lead > 0 {
        unmap(NonNull::new(base)?, lead);
    }
    if tail > 0 {
        unmap(NonNull::new(start.as_ptr().wrapping_add(capacity))?, tail);
    }
    Some(start)
}

/// Returns whole pages of a mapping to the system.
pub(crate) fn unmap(start: NonNull<u8>, len: usize) {
    // SAFETY: callers pass a page-aligned part of a mapping they own and no longer use.
    let result = unsafe { rustix::mm::munmap(start.as_ptr().cast(), len) };
    debug_assert!(result.is_ok(), "unmapping our own memory: {result:?}");
}

/// Asks for pages of 2 MiB. The memory can also be used without them.
fn advise_huge(start: NonNull<u8>, len: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is our own mapping, and this advice does not change its contents.
        let _ = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, len);
}
