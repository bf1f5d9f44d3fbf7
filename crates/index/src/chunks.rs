//! The lines of a shard by number: chunks that are added, never moved and never freed before the
//! end, each a sixteenth of what was there, so that growth is smooth.

use crate::arena::{Arena, REGION_BITS};
use crate::bits::{BASE_BITS, LINE_BITS_MAX};
use crate::line::Line;
use crate::sync::{AtomicU32, Ordering};

/// `2^STEP_BITS` chunks double a shard, once it is large enough for chunks of `2^BASE_BITS`
/// lines; smaller ones would cost more in their directory than they save.
const STEP_BITS: u32 = BASE_BITS;
/// Lines below this number lie in chunks of the smallest size.
const SMALL_BITS: u32 = BASE_BITS + STEP_BITS;
const CHUNKS: usize = ((LINE_BITS_MAX - SMALL_BITS + 1) << STEP_BITS) as usize;

const _: () = assert!(LINE_BITS_MAX - 1 - STEP_BITS <= REGION_BITS);

/// Where the chunks of a shard are.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// Handle of a chunk's first line in the arena, plus one; 0 without a chunk.
    starts: Box<[AtomicU32]>,
}

impl Chunks {
    /// The first `2^BASE_BITS` lines.
    pub(crate) fn new(arena: &Arena) -> Self {
        let starts = (0..CHUNKS).map(|_| AtomicU32::new(0)).collect();
        let chunks = Self { starts };
        chunks.ensure(0, arena);
        chunks
    }

    /// Line `number`; `None` if [`Chunks::ensure`] was never called for it.
    #[inline]
    pub(crate) fn line<'a>(&self, number: u32, arena: &'a Arena) -> Option<&'a Line> {
        let (chunk, offset, _) = place(number);
        let start = self.starts.get(chunk)?.load(Ordering::Acquire);
        arena.line(start.checked_sub(1)? + offset)
    }

    /// The first line behind the chunk of line `number`.
    pub(crate) const fn end_of(number: u32) -> u32 {
        let (_, offset, lines) = place(number);
        number - offset + lines
    }

    /// Bytes that line `number` would cost if it is not there yet.
    pub(crate) fn cost(&self, number: u32) -> u64 {
        let (chunk, _, lines) = place(number);
        match self.starts.get(chunk) {
            Some(start) if start.load(Ordering::Relaxed) == 0 => {
                u64::from(lines) * size_of::<Line>() as u64
            }
            _ => 0,
        }
    }

    /// Makes line `number` if it is not there (under the shard's lock only); false beyond the
    /// greatest size.
    pub(crate) fn ensure(&self, number: u32, arena: &Arena) -> bool {
        let (chunk, _, lines) = place(number);
        let Some(start) = self.starts.get(chunk) else {
            return false;
        };
        if start.load(Ordering::Relaxed) > 0 {
            return true;
        }
        let taken = arena.take(lines);
        start.store(taken.map_or(0, |first| first + 1), Ordering::Release);
        taken.is_some()
    }

    /// Bytes of the directory and of the first lines.
    pub(crate) const fn base_bytes() -> u64 {
        (CHUNKS * size_of::<AtomicU32>() + (size_of::<Line>() << BASE_BITS)) as u64
    }
}

/// Chunk number, offset in it and its size in lines.
#[inline]
const fn place(number: u32) -> (usize, u32, u32) {
    // No less than `SMALL_BITS`.
    let level = (number | 1 << SMALL_BITS).ilog2();
    let size_bits = level - STEP_BITS;
    // The chunks of a level above the smallest are numbered from 2^STEP_BITS up, which is what
    // the leading bit of `number` makes of them.
    let chunk = ((level - SMALL_BITS) << STEP_BITS) + (number >> size_bits);
    let offset = number & ((1 << size_bits) - 1);
    (chunk as usize, offset, 1 << size_bits)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_each_other_without_gap_or_overlap() {
        let mut expected = (0, 0);
        for number in 0..100_000 {
            let (chunk, offset, size) = place(number);
            assert_eq!((chunk, offset), expected);
            assert_eq!(Chunks::end_of(number), number - offset + size);
            assert!(size <= 16.max(number / 16), "steps of a sixteenth");
            expected = if offset + 1 == size {
                (chunk + 1, 0)
            } else {
                (chunk, offset + 1)
            };
        }
        assert_eq!(place((1 << LINE_BITS_MAX) - 1).0, CHUNKS - 1);
    }

    #[test]
    fn growth_ends_at_the_greatest_size() {
        let arena = Arena::new(u64::MAX, 0, None);
        let chunks = Chunks::new(&arena);
        assert!(chunks.line(15, &arena).is_some() && chunks.line(16, &arena).is_none());
        assert_eq!(chunks.cost(16), 1024);
        assert!(chunks.ensure(16, &arena) && chunks.line(16, &arena).is_some());
        assert_eq!(chunks.cost(16), 0);
        assert!(!chunks.ensure(1 << LINE_BITS_MAX, &arena));
    }
}
