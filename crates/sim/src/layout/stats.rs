//! Counts and contents of a layout.

use serde::Serialize;

use super::BLOCK;

/// Sums over a layout's life, and its present contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LayoutStats {
    /// Objects stored now.
    pub objects: u64,
    /// Bytes of these objects, as they are.
    pub object_bytes: u64,
    /// Bytes set aside for them, padding included; what waits in buffers is not counted.
    pub allocated_bytes: u64,
    /// Bytes there are; 0 where only the file system below knows.
    pub capacity: u64,
    /// Contiguous pieces that the stored objects consist of.
    pub pieces: u64,
    /// URL-reads.
    pub reads: u64,
    /// Those of the reads that found everything in the layout's own buffers.
    pub buffer_reads: u64,
    /// URL-writes.
    pub writes: u64,
    /// URL-deletes.
    pub deletes: u64,
    /// Objects that were dropped because there was no space when their buffer was written.
    pub dropped: u64,
    /// read() calls.
    pub read_calls: u64,
    /// Bytes of read() calls.
    pub read_bytes: u64,
    /// write() calls.
    pub write_calls: u64,
    /// Bytes of write() calls.
    pub write_bytes: u64,
    /// Free pieces of space, where the layout manages it.
    pub free_chunks: u64,
    /// Bytes in these.
    pub free_bytes: u64,
    /// The largest of them, bytes.
    pub free_largest: u64,
    /// Distances between consecutive reads in a shared file.
    pub distances: ReadDistances,
}

impl LayoutStats {
    /// Share of the capacity that is set aside; 0 where there is no capacity.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        crate::levels::ratio(self.allocated_bytes, self.capacity)
    }

    /// Mean free piece, bytes; 0 without one.
    #[must_use]
    pub fn mean_free_chunk(&self) -> f64 {
        crate::levels::ratio(self.free_bytes, self.free_chunks)
    }
}

/// Distance of each read() from the end of the one before, in 512-byte blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReadDistances {
    /// Pairs of consecutive reads.
    pub pairs: u64,
    /// Reads that begin at the very next block.
    pub next: u64,
    /// Reads that begin within 10 blocks, either way, the very next one included.
    pub within_10: u64,
    /// Entry 0: the very next block; entry k: 2^(k-1) to 2^k - 1 blocks away, either way.
    pub histogram: Vec<u64>,
    #[serde(skip)]
    last_end: Option<u64>,
}

impl ReadDistances {
    /// Counts a read of the bytes from `at` to `end`.
    pub fn count(&mut self, at: u64, end: u64) {
        if let Some(last) = self.last_end.replace(end) {
            let blocks = (at / BLOCK).abs_diff(last.div_ceil(BLOCK));
            self.pairs += 1;
            self.next += u64::from(blocks == 0);
            self.within_10 += u64::from(blocks <= 10);
            let bucket = (u64::BITS - blocks.leading_zeros()) as usize;
            if self.histogram.len() <= bucket {
                self.histogram.resize(bucket + 1, 0);
            }
            self.histogram[bucket] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        let mut distances = ReadDistances::default();
        for (at, len) in [
            (0, 512),
            (512, 1024),
            (512 * 13, 512),
            (512 * 25, 512),
            (0, 1),
        ] {
            distances.count(at, at + len);
        }
        // Next block, 10 blocks on, 11 blocks on, 26 back.
        assert_eq!(
            (distances.pairs, distances.next, distances.within_10),
            (4, 1, 2)
        );
        assert_eq!(distances.histogram, [1, 0, 0, 0, 2, 1]);
    }
}
