//! Finds the buckets of a shard (a part of the index) by their number. The buckets lie in chunks, which are
//! contiguous in memory. A new chunk has at most a sixteenth of the shard's buckets plus 16 buckets, so that
//! the shard grows in small steps. Chunks are added, never moved, and freed only with the index.

use crate::arena::{Arena, NO_HANDLE, REGION_BITS};
use crate::bits::{BASE_BITS, BUCKET_BITS_MAX};
use crate::bucket::Bucket;
use crate::sync::{AtomicU32, Ordering};

/// A large shard gets `2^STEP_BITS` new chunks while its length doubles. In a small shard, every chunk has
/// `2^BASE_BITS` buckets: smaller chunks would cost more memory in their directory than they save.
const STEP_BITS: u32 = BASE_BITS;
/// Buckets below this number lie in chunks of the smallest size.
const SMALL_BITS: u32 = BASE_BITS + STEP_BITS;
const CHUNKS: usize = ((BUCKET_BITS_MAX - SMALL_BITS) << STEP_BITS) as usize;

const _: () = assert!(CHUNKS.is_power_of_two() && BUCKET_BITS_MAX - 1 - STEP_BITS <= REGION_BITS);

/// Positions of the chunks of a shard.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// Handle of a chunk's first bucket in the arena; [`NO_HANDLE`] if the chunk does not exist.
    starts: [AtomicU32; CHUNKS],
}

impl Chunks {
    /// Makes the first `2^BASE_BITS` buckets.
    pub(crate) fn new(arena: &Arena) -> Self {
        let starts = std::array::from_fn(|_| AtomicU32::new(NO_HANDLE));
        let chunks = Self { starts };
        chunks.ensure(0, arena);
        chunks
    }

    /// Bucket `number`; `None` if [`Chunks::ensure`] was never called for it.
    #[inline(always)]
    pub(crate) fn bucket<'a>(&self, number: u32, arena: &'a Arena) -> Option<&'a Bucket> {
        arena.bucket(self.handle(number))
    }

    /// Both buckets of `numbers`.
    #[inline(always)]
    pub(crate) fn buckets<'a>(
        &self,
        numbers: [u32; 2],
        arena: &'a Arena,
    ) -> Option<[&'a Bucket; 2]> {
        arena.buckets(numbers.map(|number| self.handle(number)))
    }

    #[inline(always)]
    fn handle(&self, number: u32) -> u32 {
        let (chunk, offset, _) = place(number);
        // The remainder makes a check of the bounds unnecessary. It never changes the number,
        // because chunk numbers are below `CHUNKS`.
        let start = self.starts[chunk % CHUNKS].load(Ordering::Acquire);
        start + offset
    }

    /// The number of the first bucket behind the chunk that contains bucket `number`.
    pub(crate) const fn end_of(number: u32) -> u32 {
        let (_, offset, buckets) = place(number);
        number - offset + buckets
    }

    /// Bytes of memory to allocate before bucket `number` can be used; 0 if the bucket exists already.
    pub(crate) fn cost(&self, number: u32) -> u64 {
        let (chunk, _, buckets) = place(number);
        match self.starts.get(chunk) {
            Some(start) if start.load(Ordering::Relaxed) == NO_HANDLE => {
                u64::from(buckets) * size_of::<Bucket>() as u64
            }
            _ => 0,
        }
    }

    /// Makes bucket `number` if it does not exist. Only the holder of the shard's lock calls this.
    /// Returns false if the bucket is beyond the greatest size, or if there is no memory for it.
    pub(crate) fn ensure(&self, number: u32, arena: &Arena) -> bool {
        let (chunk, _, buckets) = place(number);
        let Some(start) = self.starts.get(chunk) else {
            return false;
        };
        if start.load(Ordering::Relaxed) != NO_HANDLE {
            return true;
        }
        let taken = arena.take(buckets);
        start.store(taken.unwrap_or(NO_HANDLE), Ordering::Release);
        taken.is_some()
    }

    /// Number of bytes that the first buckets of a shard take.
    pub(crate) const fn base_bytes() -> u64 {
        (size_of::<Bucket>() << BASE_BITS) as u64
    }
}

/// The number of the chunk that contains a bucket, the bucket's offset in the chunk, and the chunk's
/// size in buckets.
///
/// `2^SMALL_BITS` is added to the number of the bucket, so that every level has the same number of chunks. (A
/// level begins where this sum is a power of two.) The sum is converted to a floating-point number. Its
/// exponent is the level; the exponent and the leading fraction bits together are the number of the chunk.
/// This is the fastest way for the processor.
#[inline]
const fn place(number: u32) -> (usize, u32, u32) {
    const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    const EXPONENT_ZERO: u32 = f64::MAX_EXP as u32 - 1;
    let counted = number + (1 << SMALL_BITS);
    let leading = (counted as f64).to_bits() >> (FRACTION_BITS - STEP_BITS);
    let chunk = leading as u32 - ((EXPONENT_ZERO + SMALL_BITS) << STEP_BITS);
    let size = (1 << BASE_BITS) << (chunk >> STEP_BITS);
    (chunk as usize, counted & (size - 1), size)
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
            assert!(size <= 16 + number / 16, "steps of a sixteenth");
            expected = if offset + 1 == size {
                (chunk + 1, 0)
            } else {
                (chunk, offset + 1)
            };
        }
        let last = (1 << BUCKET_BITS_MAX) - (1 << SMALL_BITS) - 1;
        assert_eq!((place(last).0, place(last + 1).0), (CHUNKS - 1, CHUNKS));
    }

    #[test]
    fn growth_ends_at_the_greatest_size() {
        let arena = Arena::new(u64::MAX, 0, None);
        let chunks = Chunks::new(&arena);
        assert!(chunks.bucket(15, &arena).is_some() && chunks.bucket(16, &arena).is_none());
        assert_eq!(chunks.cost(16), 1024);
        assert!(chunks.ensure(16, &arena) && chunks.bucket(16, &arena).is_some());
        assert_eq!(chunks.cost(16), 0);
        assert!(!chunks.ensure(1 << BUCKET_BITS_MAX, &arena));
    }
}
