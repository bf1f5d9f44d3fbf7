//! The memory of a shard: chunks that are added, never moved and never freed before the end,
//! each a sixteenth of what was there, so that growth is smooth and readers need no guard.

use std::sync::OnceLock;

use crate::bits::{BASE_BITS, LINE_BITS_MAX};
use crate::line::Line;

/// `2^STEP_BITS` chunks double a shard, once it is large enough for chunks of `2^BASE_BITS`
/// lines; smaller ones would cost more in the allocator than they save.
const STEP_BITS: u32 = BASE_BITS;
/// Lines below this number lie in chunks of the smallest size.
const SMALL_BITS: u32 = BASE_BITS + STEP_BITS;
const CHUNKS: usize = ((LINE_BITS_MAX - SMALL_BITS + 1) << STEP_BITS) as usize;

/// Lines by number.
#[derive(Debug)]
pub(crate) struct Chunks {
    chunks: Box<[OnceLock<Box<[Line]>>]>,
}

impl Chunks {
    /// The first `2^BASE_BITS` lines.
    pub(crate) fn new() -> Self {
        let chunks = (0..CHUNKS).map(|_| OnceLock::new()).collect();
        let chunks = Self { chunks };
        chunks.chunk(0);
        chunks
    }

    /// Line `number`; `None` if [`Chunks::ensure`] was never called for it.
    pub(crate) fn line(&self, number: u32) -> Option<&Line> {
        let (chunk, offset, _) = place(number);
        self.chunks.get(chunk)?.get()?.get(offset)
    }

    /// Bytes that line `number` would cost if it is not there yet.
    pub(crate) fn cost(&self, number: u32) -> u64 {
        let (chunk, _, lines) = place(number);
        match self.chunks.get(chunk) {
            Some(chunk) if chunk.get().is_none() => (lines * size_of::<Line>()) as u64,
            _ => 0,
        }
    }

    /// Makes line `number` if it is not there; false beyond the greatest size.
    pub(crate) fn ensure(&self, number: u32) -> bool {
        let (chunk, _, _) = place(number);
        chunk < CHUNKS && {
            self.chunk(number);
            true
        }
    }

    fn chunk(&self, number: u32) {
        let (chunk, _, lines) = place(number);
        self.chunks[chunk].get_or_init(|| (0..lines).map(|_| Line::new()).collect());
    }

    /// Bytes of the directory and of the first lines.
    pub(crate) const fn base_bytes() -> u64 {
        (CHUNKS * size_of::<OnceLock<Box<[Line]>>>() + (size_of::<Line>() << BASE_BITS)) as u64
    }
}

/// Chunk number, offset in it and its size in lines.
const fn place(number: u32) -> (usize, usize, usize) {
    let level = if number < 1 << SMALL_BITS {
        SMALL_BITS
    } else {
        number.ilog2()
    };
    let size_bits = level - STEP_BITS;
    // The chunks of a level above the smallest are numbered from 2^STEP_BITS up, which is what
    // the leading bit of `number` makes of them.
    let chunk = ((level - SMALL_BITS) << STEP_BITS) + (number >> size_bits);
    let offset = number & ((1 << size_bits) - 1);
    (chunk as usize, offset as usize, 1 << size_bits)
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
            assert!(size <= 16.max(number as usize / 16), "steps of a sixteenth");
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
        let chunks = Chunks::new();
        assert!(chunks.line(15).is_some() && chunks.line(16).is_none());
        assert_eq!(chunks.cost(16), 1024);
        assert!(chunks.ensure(16) && chunks.line(16).is_some());
        assert_eq!(chunks.cost(16), 0);
        assert!(!chunks.ensure(1 << LINE_BITS_MAX));
    }
}
