//! The memory for the buckets of all shards (parts of the index with their own locks). It is handed out from
//! the front. A bucket never moves, so readers need no lock to use it, and the system can back the memory
//! with huge pages.
//!
//! Memory is handed out in order, so buckets that are used together lie together. All of the memory comes
//! from one *reserve*: mapped memory that takes no physical memory until it is used. So the number of a
//! bucket is enough to find the bucket. Huge pages are requested for the reserve, because with small pages a
//! random access spends as much time on the translation of its address as on the data. A huge page is
//! requested only when all of its memory has been handed out. An earlier request would make memory resident
//! that nobody uses yet.
//!
//! If the system cannot map memory, or the reserve is used up, further buckets are placed in *regions*, which
//! are allocated on the heap. The first regions are short: each is as long as all regions before it
//! together. So a small index stays small.

use std::sync::OnceLock;

use crate::bucket::Bucket;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The first region has `2^FIRST_BITS` buckets: 256 KiB.
const FIRST_BITS: u32 = if cfg!(loom) { 8 } else { 12 };
/// Together the short regions have `2^SHORT_BITS` buckets: 2 MiB, enough for 136,000 entries.
const SHORT_BITS: u32 = if cfg!(loom) { 8 } else { 15 };
/// A long region has `2^REGION_BITS` buckets: 64 MiB. The longest chunk (contiguous buckets of one shard) is
/// half as long.
pub(crate) const REGION_BITS: u32 = if cfg!(loom) { 8 } else { 20 };
const SHORT: usize = (SHORT_BITS - FIRST_BITS + 1) as usize;
/// Number of regions. There are twice as many regions as all shards need at their greatest size, because the
/// end of a region stays unused if a chunk does not fit into it.
const REGIONS: usize = SHORT + if cfg!(loom) { 1 } else { 1024 };
/// The reserve of an index without a limit has `2^RESERVE_BITS` buckets: 16 GiB.
const RESERVE_BITS: u32 = 28;
/// A handle identifies a bucket in the arena. This handle identifies no bucket. The sum of this handle and an
/// offset in a chunk identifies no bucket either.
pub(crate) const NO_HANDLE: u32 = 1 << 31;
const _: () = assert!((1 << RESERVE_BITS) + ((REGIONS as u64) << REGION_BITS) <= NO_HANDLE as u64);
/// Length and alignment of the memory in one call of [`PageAdvice`].
const HUGE_BYTES: usize = 2 << 20;

/// A function that asks the system to back `len` bytes from `start` by huge pages. It is called with ranges
/// of 2 MiB, aligned to 2 MiB, after all buckets in the range were handed out.
pub type PageAdvice = fn(start: *const u8, len: usize);

/// Functions that get memory from the system. The caller provides them, because they need unsafe code, and
/// this crate has none.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Returns zeroed memory of this many bytes (a multiple of 4096), aligned to 64. It takes no physical
    /// memory until it is used.
    pub map: fn(usize) -> Option<&'static mut [u8]>,
    /// Takes back memory that `map` returned.
    pub unmap: fn(&'static mut [u8]),
    /// Called with memory for which huge pages are useful.
    pub advice: PageAdvice,
    /// Prefetches the memory at this address into the processor's caches, without waiting for it.
    pub prefetch: fn(*const u8),
}

/// Buckets in mapped memory; empty if no memory was mapped.
#[derive(Debug)]
struct Reserve {
    buckets: &'static mut [Bucket],
    pages: Option<Pages>,
}

impl Reserve {
    /// Maps as many buckets as fit into `limit` bytes (at most 16 GiB), or fewer if the system does not map
    /// that many.
    #[cfg(not(loom))]
    fn new(limit: u64, pages: Option<Pages>) -> Self {
        let most = HUGE_BYTES << (RESERVE_BITS - SHORT_BITS);
        let most = usize::try_from(limit).map_or(most, |limit| limit.min(most));
        let sizes = std::iter::successors(Some(most), |size| Some(size / 2));
        let pages_of = |size: usize| size.next_multiple_of(HUGE_BYTES);
        let mapped = pages.and_then(|pages| {
            let mut sizes = sizes.take_while(|size| *size > 0).map(pages_of);
            sizes.find_map(|size| (pages.map)(size))
        });
        // The mapped memory is aligned and full of zeros: buckets without entries.
        let buckets = mapped.and_then(|bytes| zerocopy::FromBytes::mut_from_bytes(bytes).ok());
        Self {
            buckets: buckets.unwrap_or_default(),
            pages,
        }
    }

    #[cfg(loom)]
    fn new(_: u64, pages: Option<Pages>) -> Self {
        let buckets = Default::default();
        Self { buckets, pages }
    }

    /// Requests huge pages after the buckets `from..to` were handed out. Buckets are handed out in order. So
    /// if the last bucket of a huge page is one of these buckets, the whole page has been handed out. Only
    /// such pages are requested.
    fn advise(&self, from: usize, to: usize) {
        let Some(Pages { advice, .. }) = self.pages else {
            return;
        };
        let start = self.buckets.as_ptr().cast::<u8>();
        let first = start.align_offset(HUGE_BYTES);
        let whole =
            |bucket: usize| (bucket * size_of::<Bucket>()).saturating_sub(first) / HUGE_BYTES;
        for huge in whole(from)..whole(to) {
            advice(start.wrapping_add(first + huge * HUGE_BYTES), HUGE_BYTES);
        }
    }
}

#[cfg(not(loom))]
impl Drop for Reserve {
    fn drop(&mut self) {
        if let (Some(pages), false) = (self.pages, self.buckets.is_empty()) {
            let buckets = std::mem::take(&mut self.buckets);
            (pages.unmap)(zerocopy::IntoBytes::as_mut_bytes(buckets));
        }
    }
}

/// The memory of all shards, and its limit.
#[derive(Debug)]
pub(crate) struct Arena {
    reserve: Reserve,
    regions: Box<[OnceLock<Box<[Bucket]>>]>,
    /// Number of the first bucket that was not handed out.
    next: Mutex<u32>,
    used: AtomicU64,
    limit: AtomicU64,
    /// The limit that the reserve was made for.
    limit_max: u64,
}

impl Arena {
    /// Makes an arena. `used` bytes are counted in addition to the buckets; both together stay within
    /// `limit`.
    pub(crate) fn new(limit: u64, used: u64, pages: Option<Pages>) -> Self {
        Self {
            reserve: Reserve::new(limit, pages),
            regions: (0..REGIONS).map(|_| OnceLock::new()).collect(),
            next: Mutex::new(0),
            used: AtomicU64::new(used + Self::base_bytes()),
            limit: AtomicU64::new(limit),
            limit_max: limit,
        }
    }

    /// Number of bytes that are counted as used.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Sets another limit, at most the first limit. Memory in use beyond the new limit is kept.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit
            .store(bytes.min(self.limit_max), Ordering::Relaxed);
    }

    /// Number of bytes that may still be used.
    pub(crate) fn left(&self) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        limit.saturating_sub(self.used())
    }

    /// Counts `bytes` as used if the limit allows it.
    pub(crate) fn charge(&self, bytes: u64) -> bool {
        let fits = bytes == 0 || self.used() + bytes <= self.limit.load(Ordering::Relaxed);
        if fits && bytes > 0 {
            self.used.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// The bucket of `handle`, if it exists.
    #[inline(always)]
    pub(crate) fn bucket(&self, handle: u32) -> Option<&Bucket> {
        let reserved = self.reserve.buckets.get(handle as usize);
        reserved.or_else(|| self.bucket_of_region(handle))
    }

    /// Both buckets of `handles`. They are looked up in the reserve first, because it usually contains both.
    #[inline(always)]
    pub(crate) fn buckets(&self, handles: [u32; 2]) -> Option<[&Bucket; 2]> {
        let [first, second] = handles.map(|handle| self.reserve.buckets.get(handle as usize));
        match (first, second) {
            (Some(first), Some(second)) => Some([first, second]),
            _ => self.buckets_of_regions(handles),
        }
    }

    #[cold]
    #[inline(never)]
    fn buckets_of_regions(&self, handles: [u32; 2]) -> Option<[&Bucket; 2]> {
        let [first, second] = handles.map(|handle| self.bucket(handle));
        Some([first?, second?])
    }

    #[cold]
    #[inline(never)]
    fn bucket_of_region(&self, handle: u32) -> Option<&Bucket> {
        let handle = handle - self.reserved();
        let (region, offset) = (handle >> REGION_BITS, handle & ((1 << REGION_BITS) - 1));
        let region = self.regions.get(region as usize)?.get()?;
        region.get(offset as usize)
    }

    fn reserved(&self) -> u32 {
        self.reserve.buckets.len() as u32
    }

    /// Function that prefetches buckets, if the source of memory has such a function.
    #[inline]
    pub(crate) fn prefetch(&self) -> Option<fn(*const u8)> {
        self.reserve.pages.map(|pages| pages.prefetch)
    }

    /// Takes `buckets` empty buckets in a row (at most a long region). Returns the handle of the first
    /// bucket; the handles of the other buckets follow it. Returns `None` if all regions are used up.
    pub(crate) fn take(&self, buckets: u32) -> Option<u32> {
        let mut next = self.next.lock();
        let reserved = self.reserved();
        let (from, to) = (*next, *next + buckets);
        if to <= reserved {
            *next = to;
            self.reserve.advise(from as usize, to as usize);
            return Some(from);
        }
        let from = from.saturating_sub(reserved);
        let (first, region, offset, length) = room_from(from, buckets as usize);
        let there = self.regions.get(region)?;
        there.get_or_init(|| new_region(length));
        *next = reserved + first + buckets;
        Some(reserved + handle(region, offset))
    }

    /// Size of the directory of regions, in bytes.
    const fn base_bytes() -> u64 {
        (REGIONS * size_of::<OnceLock<Box<[Bucket]>>>()) as u64
    }
}

/// A region and an offset in that region as one number.
const fn handle(region: usize, offset: usize) -> u32 {
    (region << REGION_BITS | offset) as u32
}

/// Region of a bucket, the bucket's offset in the region, and the region's length. Offset and length are in
/// buckets.
#[inline]
const fn place(number: u32) -> (usize, usize, usize) {
    if let Some(far) = number.checked_sub(1 << SHORT_BITS) {
        let region = SHORT + (far >> REGION_BITS) as usize;
        let offset = far & ((1 << REGION_BITS) - 1);
        return (region, offset as usize, 1 << REGION_BITS);
    }
    if number < 1 << FIRST_BITS {
        return (0, number as usize, 1 << FIRST_BITS);
    }
    let level = number.ilog2();
    let offset = number - (1 << level);
    let region = (level - FIRST_BITS + 1) as usize;
    (region, offset as usize, 1 << level)
}

/// Finds the first bucket, from `next` on, at which `buckets` contiguous buckets fit into one region. Returns
/// the bucket, its region, its offset in the region, and the region's length.
const fn room_from(mut next: u32, buckets: usize) -> (u32, usize, usize, usize) {
    loop {
        let (region, offset, length) = place(next);
        let left = length - offset;
        if buckets <= left || length == 1 << REGION_BITS && offset == 0 {
            return (next, region, offset, length);
        }
        next += left as u32;
    }
}

#[cfg(not(loom))]
fn new_region(buckets: usize) -> Box<[Bucket]> {
    // If there is no memory, the program ends, as with any other failed allocation.
    let heap = <[Bucket] as zerocopy::FromZeros>::new_box_zeroed_with_elems(buckets);
    heap.unwrap_or_else(|_| std::alloc::handle_alloc_error(std::alloc::Layout::new::<Bucket>()))
}

#[cfg(loom)]
fn new_region(buckets: usize) -> Box<[Bucket]> {
    (0..buckets).map(|_| Bucket::new()).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_line_has_a_place_of_its_own_in_regions_that_follow_each_other() {
        let mut expected = (0, 0);
        for number in 0..(1 << SHORT_BITS) + (2 << REGION_BITS) {
            let (region, offset, length) = place(number);
            assert_eq!((region, offset), expected, "{number}");
            // A short region after the first is at most as long as all regions before it. So a small index
            // allocates at most twice the memory that it uses.
            assert!(number >= 1 << SHORT_BITS || length <= number.max(1 << FIRST_BITS) as usize);
            expected = if offset + 1 == length {
                (region + 1, 0)
            } else {
                (region, offset + 1)
            };
        }
    }

    #[test]
    fn buckets_are_handed_out_once_and_never_across_regions() {
        let arena = Arena::new(u64::MAX, 0, None);
        let long = 1 << SHORT_BITS;
        let mut end = 0;
        for (buckets, first) in [
            (16, 0),
            (1 << 12, 1 << 12),
            (1 << 12, 1 << 13),
            (1 << 20, long),
            (1, long + (1 << 20)),
            (1 << 20, long + (2 << 20)),
        ] {
            let (region, offset, _) = place(first);
            let at = handle(region, offset);
            assert_eq!(arena.take(buckets), Some(at));
            assert!(first >= end);
            end = first + buckets;
            assert!(arena.bucket(at).is_some() && arena.bucket(at + buckets - 1).is_some());
        }
        let (region, offset, _) = place(end);
        assert!(arena.bucket(handle(region, offset)).is_none());
    }

    fn leak(bytes: usize) -> Option<&'static mut [u8]> {
        // This source has no more than two huge pages, as if memory were short.
        if bytes > 2 * HUGE_BYTES {
            return None;
        }
        let huge = zerocopy::FromZeros::new_box_zeroed_with_elems(bytes / HUGE_BYTES).ok()?;
        let huge: &'static mut [Huge] = Box::leak(huge);
        Some(zerocopy::IntoBytes::as_mut_bytes(huge))
    }

    #[derive(zerocopy::FromBytes, zerocopy::IntoBytes)]
    #[repr(C, align(2097152))]
    struct Huge([u8; HUGE_BYTES]);

    #[test]
    fn the_reserve_is_used_first_in_huge_pages_when_they_are_full() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
        fn count(start: *const u8, len: usize) {
            assert_eq!((start.align_offset(HUGE_BYTES), len), (0, HUGE_BYTES));
            ASKED.fetch_add(1, Ordering::Relaxed);
        }
        fn give_back(bytes: &'static mut [u8]) {
            GIVEN_BACK.fetch_add(bytes.len(), Ordering::Relaxed);
        }
        let pages = Pages {
            map: leak,
            unmap: give_back,
            advice: count,
            prefetch: |_| {},
        };
        let arena = Arena::new(u64::MAX, 0, Some(pages));
        let (reserved, step) = (1 << 16, 1 << 14);
        assert_eq!(arena.reserved(), reserved, "as much as there was");
        for taken in 0..4 {
            assert_eq!(ASKED.load(Ordering::Relaxed), taken / 2);
            // Each step takes 1 MiB.
            assert_eq!(arena.take(step), Some(taken as u32 * step));
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 2);
        let last = arena.bucket(reserved - 1).expect("in the reserve");
        assert!(arena.bucket(reserved).is_none() && arena.bucket(NO_HANDLE).is_none());
        let further = arena.take(step).expect("in a region");
        let first = arena.bucket(further).expect("in a region");
        assert!(further >= reserved && !std::ptr::eq(first, last));
        assert_eq!(ASKED.load(Ordering::Relaxed), 2);
        drop(arena);
        assert_eq!(GIVEN_BACK.load(Ordering::Relaxed), 2 * HUGE_BYTES);
    }

    #[test]
    fn a_small_index_reserves_no_more_than_its_limit() {
        let pages = Pages {
            map: leak,
            unmap: |_| {},
            advice: |_, _| {},
            prefetch: |_| {},
        };
        let arena = Arena::new(1 << 20, 0, Some(pages));
        assert_eq!(arena.reserved() as usize * size_of::<Bucket>(), HUGE_BYTES);
    }
}
