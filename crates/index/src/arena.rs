//! The memory of all shards: regions that are reserved large, filled from the front and never
//! moved, so that readers need no guard and the system can back them with huge pages.
//!
//! A region is zeroed memory, and zeroed memory of that length costs nothing until it is used.
//! Handing it out in order therefore spends no more than small allocations would, and keeps what
//! is used together: a random access to many small pages costs as much for the translation of its
//! address as for the data. Huge pages are asked for when their memory is handed out to the end;
//! before, they would hold what nobody uses yet.

use std::sync::OnceLock;

use crate::line::Line;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// `2^REGION_BITS` lines make a region: 64 MiB, as long as the longest chunk.
pub(crate) const REGION_BITS: u32 = if cfg!(loom) { 8 } else { 20 };
const REGION_LINES: usize = 1 << REGION_BITS;
/// Regions: all shards at their greatest size, and as much again for the ends of regions that a
/// chunk did not fit into.
const REGIONS: usize = if cfg!(loom) { 2 } else { 1024 };
/// What [`PageAdvice`] is asked for at once, and its alignment.
const HUGE_BYTES: usize = 2 << 20;

/// Asks the system to back whole pages of `len` bytes from `start` by huge pages. Called with
/// ranges of 2 MiB, aligned to that, with their contents in place.
pub type PageAdvice = fn(start: *const u8, len: usize);

type Region = [Line; REGION_LINES];

/// The memory, and how much of it may be used.
#[derive(Debug)]
pub(crate) struct Arena {
    regions: Box<[OnceLock<Box<Region>>]>,
    /// The first line not handed out.
    next: Mutex<u32>,
    advice: Option<PageAdvice>,
    used: AtomicU64,
    limit: u64,
}

impl Arena {
    /// `used` bytes are counted beside the lines; both together stay within `limit`.
    pub(crate) fn new(limit: u64, used: u64, advice: Option<PageAdvice>) -> Self {
        Self {
            regions: (0..REGIONS).map(|_| OnceLock::new()).collect(),
            next: Mutex::new(0),
            advice,
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

    /// Line `number` of those handed out.
    #[inline]
    pub(crate) fn line(&self, number: u32) -> Option<&Line> {
        let region = self.regions.get((number >> REGION_BITS) as usize)?;
        region.get()?.get(number as usize & (REGION_LINES - 1))
    }

    /// `lines` (at most a region) empty lines in a row; the number of the first, `None` at the end.
    pub(crate) fn take(&self, lines: u32) -> Option<u32> {
        let mut next = self.next.lock();
        let left = REGION_LINES as u32 - (*next & (REGION_LINES as u32 - 1));
        let first = if lines <= left { *next } else { *next + left };
        let region = self.regions.get((first >> REGION_BITS) as usize)?;
        let region = region.get_or_init(new_region);
        *next = first + lines;
        let offset = first as usize & (REGION_LINES - 1);
        self.advise(region, offset, offset + lines as usize);
        Some(first)
    }

    /// Asks for huge pages where the lines `from..to` complete them.
    fn advise(&self, region: &Region, from: usize, to: usize) {
        let Some(advice) = self.advice else { return };
        let start = region.as_ptr().cast::<u8>();
        let first = start.align_offset(HUGE_BYTES);
        let whole = |line: usize| (line * size_of::<Line>()).saturating_sub(first) / HUGE_BYTES;
        for huge in whole(from)..whole(to) {
            advice(start.wrapping_add(first + huge * HUGE_BYTES), HUGE_BYTES);
        }
    }

    /// Bytes of the directory.
    const fn base_bytes() -> u64 {
        (REGIONS * size_of::<OnceLock<Box<Region>>>()) as u64
    }
}

#[cfg(not(loom))]
fn new_region() -> Box<Region> {
    // Without memory for the reservation the program ends like at any other allocation.
    zerocopy::FromZeros::new_box_zeroed()
        .unwrap_or_else(|_| std::alloc::handle_alloc_error(std::alloc::Layout::new::<Region>()))
}

#[cfg(loom)]
fn new_region() -> Box<Region> {
    Box::new(std::array::from_fn(|_| Line::new()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn lines_are_handed_out_once_and_never_across_regions() {
        let arena = Arena::new(u64::MAX, 0, None);
        let mut end = 0;
        for (lines, first) in [
            (16, 0),
            (1 << 19, 16),
            (1 << 20, 1 << 20),
            (1, 2 << 20),
            (1 << 18, (2 << 20) + 1),
        ] {
            assert_eq!(arena.take(lines), Some(first));
            assert!(first >= end);
            end = first + lines;
            assert!(arena.line(first).is_some() && arena.line(end - 1).is_some());
        }
        assert!(arena.line(3 << 20).is_none());
    }

    #[test]
    fn huge_pages_are_asked_for_once_each_when_they_are_full() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        fn count(start: *const u8, len: usize) {
            assert_eq!((start.align_offset(HUGE_BYTES), len), (0, HUGE_BYTES));
            ASKED.fetch_add(1, Ordering::Relaxed);
        }
        let arena = Arena::new(u64::MAX, 0, Some(count));
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
