//! The counts of a layout's operations, and sizes of its contents.

use serde::Serialize;

use super::BLOCK;

/// Sums since the layout was created, and its present contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LayoutStats {
    /// Number of objects stored now.
    pub objects: u64,
    /// Bytes of these objects, without padding.
    pub object_bytes: u64,
    /// Bytes allocated for these objects, including padding. Objects in buffers are not counted.
    pub allocated_bytes: u64,
    /// Capacity in bytes; 0 if only the file system below knows it.
    pub capacity: u64,
    /// Number of contiguous pieces of which the stored objects consist.
    pub pieces: u64,
    /// Number of URL-reads.
    pub reads: u64,
    /// URL-reads for which all data was in the layout's own buffers.
    pub buffer_reads: u64,
    /// Number of URL-writes.
    pub writes: u64,
    /// Number of URL-deletes.
    pub deletes: u64,
    /// Number of objects that were dropped because there was no space when their locality buffer was written.
    pub dropped: u64,
    /// Number of read() calls.
    pub read_calls: u64,
    /// Bytes of read() calls.
    pub read_bytes: u64,
    /// Number of write() calls.
    pub write_calls: u64,
    /// Bytes of write() calls.
    pub write_bytes: u64,
    /// Number of free pieces of space, if the layout manages its space.
    pub free_chunks: u64,
    /// Bytes in these free pieces.
    pub free_bytes: u64,
    /// Bytes of the largest free piece.
    pub free_largest: u64,
    /// Distances between consecutive reads in a shared file.
    pub distances: ReadDistances,
}

impl LayoutStats {
    /// Share of the capacity that is allocated; 0 if the capacity is not known.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        crate::levels::ratio(self.allocated_bytes, self.capacity)
    }

    /// Mean size of a free piece in bytes; 0 if there is none.
    #[must_use]
    pub fn mean_free_chunk(&self) -> f64 {
        crate::levels::ratio(self.free_bytes, self.free_chunks)
    }
}

/// Distance of each read() from the end of the previous read(), in 512-byte blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReadDistances {
    /// Number of pairs of consecutive reads.
    pub pairs: u64,
    /// Number of reads that begin at the block immediately after the previous read.
    pub next: u64,
    /// Number of reads that begin at most 10 blocks away in either direction, including those of `next`.
    pub within_10: u64,
    /// Number of reads by distance. Entry 0: reads that begin at the next block. Entry k: reads that begin
    /// 2^(k-1) to 2^k - 1 blocks away, in either direction.
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
        // The four distances between these reads are: the next block, 10 blocks forward, 11 blocks forward,
        // 26 blocks back.
        assert_eq!(
            (distances.pairs, distances.next, distances.within_10),
            (4, 1, 2)
        );
        assert_eq!(distances.histogram, [1, 0, 0, 0, 2, 1]);
    }
}
