//! The bytes of a running fill that are still in memory.

use std::collections::VecDeque;

use bytes::Bytes;

/// The bytes of a body from offset `base` up to `end`.
#[derive(Debug, Default)]
pub(crate) struct Window {
    chunks: VecDeque<(u64, Bytes)>,
    base: u64,
    end: u64,
}

impl Window {
    /// Returns an empty window whose first byte will be at `start`.
    pub(crate) fn starting_at(start: u64) -> Self {
        Self {
            base: start,
            end: start,
            ..Self::default()
        }
    }

    /// Offset of the first byte in memory.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Offset after the last byte received.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Number of bytes in memory.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.end - self.base).unwrap_or(usize::MAX)
    }

    /// Adds bytes at the end.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let at = self.end;
        self.end += bytes.len() as u64;
        self.chunks.push_back((at, bytes));
    }

    /// Drops complete chunks before offset `before`, oldest first, until at most `keep` bytes are left.
    pub(crate) fn trim(&mut self, before: u64, keep: usize) {
        while self.len() > keep {
            let Some((at, chunk)) = self.chunks.front() else {
                return;
            };
            let chunk_end = at + chunk.len() as u64;
            if chunk_end > before {
                return;
            }
            self.base = chunk_end;
            self.chunks.pop_front();
        }
    }

    /// Returns the bytes from `at` to the end of their chunk; `None` if `at` is not in memory.
    pub(crate) fn read(&self, at: u64) -> Option<Bytes> {
        if at < self.base || at >= self.end {
            return None;
        }
        let after = self.chunks.partition_point(|(start, _)| *start <= at);
        let (start, chunk) = self.chunks.get(after.checked_sub(1)?)?;
        let skip = usize::try_from(at - start).ok()?;
        (skip < chunk.len()).then(|| chunk.slice(skip..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trims_only_what_nobody_needs() {
        let mut window = Window::default();
        for _ in 0..4 {
            window.push(Bytes::from_static(&[7; 10]));
        }
        window.trim(25, 0);
        assert_eq!((window.base(), window.end(), window.len()), (20, 40, 20));
        window.trim(40, 15);
        assert_eq!(window.base(), 30);
        assert!(window.read(29).is_none());
        assert!(window.read(40).is_none());
        assert_eq!(window.read(33).unwrap().len(), 7);
    }

    proptest! {
        #[test]
        fn every_byte_in_memory_reads_back(
            sizes in prop::collection::vec(0usize..20, 1..20),
            trims in prop::collection::vec((0u64..200, 0usize..50), 0..5),
        ) {
            let whole: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(|i| i as u8).collect();
            let mut window = Window::default();
            let mut at = 0;
            for size in sizes {
                window.push(Bytes::copy_from_slice(&whole[at..at + size]));
                at += size;
            }
            let mut needed = 0;
            for (before, keep) in trims {
                needed = needed.max(before);
                window.trim(before, keep);
                prop_assert!(window.base() <= needed);
            }
            let mut at = window.base();
            while at < window.end() {
                let piece = window.read(at).unwrap();
                let from = at as usize;
                prop_assert_eq!(&piece[..], &whole[from..from + piece.len()]);
                at += piece.len() as u64;
            }
        }
    }
}
