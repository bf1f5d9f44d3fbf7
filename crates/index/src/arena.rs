//! The memory of all shards: regions that are filled from the front and never moved, so that
//! readers need no guard and the system can back them with huge pages.
//!
//! Handing memory out in order keeps together what is used together: a random access to many small
//! pages costs as much for the translation of its address as for the data. The first regions are
//! short, each as long as all before it, so that a small index stays small wherever its memory
//! comes from; the others are long, and mapped memory of that length costs nothing until it is
//! used. Huge pages are asked for when their memory is handed out to the end; before, they would
//! hold what nobody uses yet.

use std::sync::OnceLock;

use crate::line::Line;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The first region has `2^FIRST_BITS` lines: 256 KiB.
const FIRST_BITS: u32 = if cfg!(loom) { 8 } else { 12 };
/// Together the short regions have `2^SHORT_BITS` lines: 2 MiB, enough for 136,000 entries.
const SHORT_BITS: u32 = if cfg!(loom) { 8 } else { 15 };
/// `2^REGION_BITS` lines make a long region: 64 MiB, as long as the longest chunk.
pub(crate) const REGION_BITS: u32 = if cfg!(loom) { 8 } else { 20 };
const SHORT: usize = (SHORT_BITS - FIRST_BITS + 1) as usize;
/// Regions: all shards at their greatest size, and as much again for the ends of regions that a
/// chunk did not fit into.
const REGIONS: usize = SHORT + if cfg!(loom) { 1 } else { 1024 };
/// Every handle has a number, and there is one to spare that means none.
const _: () = assert!(((REGIONS as u64) << REGION_BITS) < u32::MAX as u64);
/// What [`PageAdvice`] is asked for at once, and its alignment.
const HUGE_BYTES: usize = 2 << 20;

/// Asks the system to back whole pages of `len` bytes from `start` by huge pages. Called with
/// ranges of 2 MiB, aligned to that, with their contents in place.
pub type PageAdvice = fn(start: *const u8, len: usize);

/// How regions are had from the system. This crate has no unsafe code to ask for them.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Zeroed memory of so many bytes (a multiple of 4096), aligned to 64, that costs nothing
    /// until it is used.
    pub map: fn(usize) -> Option<&'static mut [u8]>,
    /// Takes it back.
    pub unmap: fn(&'static mut [u8]),
    /// Told of memory that is worth huge pages.
    pub advice: PageAdvice,
    /// Brings the line of memory at an address into the processor's caches, without waiting.
    pub prefetch: fn(*const u8),
}

/// Lines in a row.
#[derive(Debug)]
enum Region {
    Heap(Box<[Line]>),
    #[cfg(not(loom))]
    Mapped {
        lines: &'static mut [Line],
        unmap: fn(&'static mut [u8]),
    },
}

impl Region {
    fn lines(&self) -> &[Line] {
        match self {
            Self::Heap(lines) => lines,
            #[cfg(not(loom))]
            Self::Mapped { lines, .. } => lines,
        }
    }
}

#[cfg(not(loom))]
impl Drop for Region {
    fn drop(&mut self) {
        if let Self::Mapped { lines, unmap } = self {
            unmap(zerocopy::IntoBytes::as_mut_bytes(std::mem::take(lines)));
        }
    }
}

/// The memory, and how much of it may be used.
#[derive(Debug)]
pub(crate) struct Arena {
    regions: Box<[OnceLock<Region>]>,
    /// The first line not handed out.
    next: Mutex<u32>,
    pages: Option<Pages>,
    used: AtomicU64,
    limit: u64,
}

impl Arena {
    /// `used` bytes are counted beside the lines; both together stay within `limit`.
    pub(crate) fn new(limit: u64, used: u64, pages: Option<Pages>) -> Self {
        Self {
            regions: (0..REGIONS).map(|_| OnceLock::new()).collect(),
            next: Mutex::new(0),
            pages,
            used: AtomicU64::new(used + Self::base_bytes()),
            limit,
        }
    }

    /// Bytes counted as used.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts `bytes` as used if the limit allows it.
    pub(crate) fn charge(&self, bytes: u64) -> bool {
        let fits = bytes == 0 || self.used() + bytes <= self.limit;
        if fits && bytes > 0 {
            self.used.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// The line of `handle`, if its region is there.
    #[inline]
    pub(crate) fn line(&self, handle: u32) -> Option<&Line> {
        let (region, offset) = (handle >> REGION_BITS, handle & ((1 << REGION_BITS) - 1));
        let region = self.regions.get(region as usize)?.get()?;
        region.lines().get(offset as usize)
    }

    /// How lines are asked for ahead, if the system's memory comes with a way to.
    #[inline]
    pub(crate) fn prefetch(&self) -> Option<fn(*const u8)> {
        self.pages.map(|pages| pages.prefetch)
    }

    /// `lines` (at most a long region) empty lines in a row; the handle of the first, which those of
    /// the others follow. `None` at the end.
    pub(crate) fn take(&self, lines: u32) -> Option<u32> {
        let mut next = self.next.lock();
        let (first, region, offset, length) = room_from(*next, lines as usize);
        let there = self.regions.get(region)?;
        let there = there.get_or_init(|| new_region(length, self.pages)).lines();
        *next = first + lines;
        self.advise(there, offset, offset + lines as usize);
        Some(handle(region, offset))
    }

    /// Asks for huge pages where the lines `from..to` complete them.
    fn advise(&self, region: &[Line], from: usize, to: usize) {
        let Some(Pages { advice, .. }) = self.pages else {
            return;
        };
        let start = region.as_ptr().cast::<u8>();
        let first = start.align_offset(HUGE_BYTES);
        let whole = |line: usize| (line * size_of::<Line>()).saturating_sub(first) / HUGE_BYTES;
        for huge in whole(from)..whole(to) {
            advice(start.wrapping_add(first + huge * HUGE_BYTES), HUGE_BYTES);
        }
    }

    /// Bytes of the directory.
    const fn base_bytes() -> u64 {
        (REGIONS * size_of::<OnceLock<Region>>()) as u64
    }
}

/// A region and an offset in it as one number, which a lookup takes apart without a branch.
const fn handle(region: usize, offset: usize) -> u32 {
    (region << REGION_BITS | offset) as u32
}

/// Region of a line, offset in it, and the region's length, all in lines.
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

/// The first line from `next` on that has so many behind it in its region, with its place.
const fn room_from(mut next: u32, lines: usize) -> (u32, usize, usize, usize) {
    loop {
        let (region, offset, length) = place(next);
        let left = length - offset;
        if lines <= left || length == 1 << REGION_BITS && offset == 0 {
            return (next, region, offset, length);
        }
        next += left as u32;
    }
}

#[cfg(not(loom))]
fn new_region(lines: usize, pages: Option<Pages>) -> Region {
    use zerocopy::FromBytes;
    let mapped = pages.and_then(|pages| {
        let bytes = (pages.map)(lines * size_of::<Line>())?;
        let lines = <[Line]>::mut_from_bytes(bytes).ok()?;
        let unmap = pages.unmap;
        Some(Region::Mapped { lines, unmap })
    });
    mapped.unwrap_or_else(|| {
        // Without memory the program ends like at any other allocation.
        let heap = <[Line] as zerocopy::FromZeros>::new_box_zeroed_with_elems(lines);
        Region::Heap(
            heap.unwrap_or_else(|_| {
                std::alloc::handle_alloc_error(std::alloc::Layout::new::<Line>())
            }),
        )
    })
}

#[cfg(loom)]
fn new_region(lines: usize, _: Option<Pages>) -> Region {
    Region::Heap((0..lines).map(|_| Line::new()).collect())
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
            // A small index has at most twice the memory that it uses.
            assert!(number >= 1 << SHORT_BITS || length <= number.max(1 << FIRST_BITS) as usize);
            expected = if offset + 1 == length {
                (region + 1, 0)
            } else {
                (region, offset + 1)
            };
        }
    }

    #[test]
    fn lines_are_handed_out_once_and_never_across_regions() {
        let arena = Arena::new(u64::MAX, 0, None);
        let long = 1 << SHORT_BITS;
        let mut end = 0;
        for (lines, first) in [
            (16, 0),
            (1 << 12, 1 << 12),
            (1 << 12, 1 << 13),
            (1 << 20, long),
            (1, long + (1 << 20)),
            (1 << 20, long + (2 << 20)),
        ] {
            let (region, offset, _) = place(first);
            let at = handle(region, offset);
            assert_eq!(arena.take(lines), Some(at));
            assert!(first >= end);
            end = first + lines;
            assert!(arena.line(at).is_some() && arena.line(at + lines - 1).is_some());
        }
        let (region, offset, _) = place(end);
        assert!(arena.line(handle(region, offset)).is_none());
    }

    #[test]
    fn huge_pages_are_asked_for_once_each_when_they_are_full() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        fn count(start: *const u8, len: usize) {
            assert_eq!((start.align_offset(HUGE_BYTES), len), (0, HUGE_BYTES));
            ASKED.fetch_add(1, Ordering::Relaxed);
        }
        let arena = Arena::new(
            u64::MAX,
            0,
            Some(Pages {
                map: |_| None,
                unmap: |_| {},
                advice: count,
                prefetch: |_| {},
            }),
        );
        assert!(arena.take(1 << REGION_BITS).is_some());
        let before = ASKED.swap(0, Ordering::Relaxed);
        assert!((31..=32).contains(&before));
        assert!(arena.take(1 << 14).is_some());
        for step in 2..=64 {
            // 1 MiB each; a part of a huge page may be left over at the beginning.
            assert!(arena.take(1 << 14).is_some());
            let asked = ASKED.load(Ordering::Relaxed);
            assert!((step / 2 - 1..=step / 2).contains(&asked));
        }
        assert!((31..=32).contains(&ASKED.load(Ordering::Relaxed)));
    }
}
