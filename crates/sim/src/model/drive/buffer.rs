//! A disk's track buffer: a few segments of sectors that were read earlier. Read-ahead adds sectors to the
//! newest segment (`ahead`); the other segments (`kept`) no longer grow.

use std::collections::VecDeque;

use crate::model::SimTime;

/// The segment that read-ahead fills.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// First sector in the segment.
    pub(super) start: u64,
    /// Sector under the head at `since`. All sectors of the segment before this sector have been read.
    pub(super) next: u64,
    /// Time at which `next` was under the head.
    pub(super) since: SimTime,
    /// Sector at which read-ahead stops.
    pub(super) limit: u64,
}

/// The track buffer. `kept` contains the first sector and the end of each segment, the oldest segment first.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) ahead: Option<Ahead>,
    kept: VecDeque<(u64, u64)>,
    segments: usize,
    sectors: u64,
}

impl Buffer {
    /// Creates a buffer of `segments` segments with `sectors` sectors each. With 0 segments, the disk has no
    /// read cache.
    pub(super) fn new(segments: usize, sectors: u64) -> Self {
        Self {
            ahead: None,
            kept: VecDeque::with_capacity(segments),
            segments,
            sectors,
        }
    }

    /// True if all `count` sectors from `first` on are in the buffer when read-ahead has reached sector
    /// `reached`.
    pub(super) fn covers(&self, first: u64, count: u64, reached: u64) -> bool {
        let end = first + count;
        let growing = self.ahead.is_some_and(|a| {
            first >= a.start.max(reached.saturating_sub(self.sectors)) && end <= reached
        });
        growing
            || self
                .kept
                .iter()
                .any(|(from, to)| *from <= first && end <= *to)
    }

    /// Adds the sectors `[start, end)` to the growing segment, or starts a segment with them. Their transfer
    /// from the platter ended at `since`. From then on read-ahead adds up to `more` sectors.
    pub(super) fn remember(&mut self, start: u64, end: u64, since: SimTime, more: u64) {
        if self.segments == 0 {
            return;
        }
        let start = match self.ahead {
            Some(ahead) if ahead.start <= start => ahead.start,
            _ => start,
        };
        self.ahead = Some(Ahead {
            start,
            next: end,
            since,
            limit: end + more,
        });
    }

    /// Adds the segment `[start, end)`, which no longer grows, to `kept`. If the buffer is full, this segment
    /// replaces the oldest segment of `kept`.
    pub(super) fn keep(&mut self, start: u64, end: u64) {
        if self.segments < 2 || end <= start {
            return;
        }
        if self.kept.len() + 1 >= self.segments {
            self.kept.pop_front();
        }
        self.kept
            .push_back((start.max(end.saturating_sub(self.sectors)), end));
    }

    /// Drops the segments of `kept` that a write of `[from, to)` made stale.
    pub(super) fn forget(&mut self, from: u64, to: u64) {
        let clear = |(start, end): &(u64, u64)| *end <= from || to <= *start;
        if !self.kept.iter().all(clear) {
            self.kept.retain(clear);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_last_sectors_of_a_stream_only() {
        let mut buffer = Buffer::new(3, 100);
        buffer.remember(0, 50, SimTime::ZERO, 400);
        assert!(buffer.covers(0, 50, 50) && !buffer.covers(0, 51, 50));
        assert!(!buffer.covers(0, 50, 200) && buffer.covers(100, 100, 200));
        buffer.keep(0, 450);
        assert!(buffer.covers(350, 100, 0) && !buffer.covers(349, 2, 0));
    }

    #[test]
    fn old_segments_leave_and_writes_make_them_stale() {
        let mut buffer = Buffer::new(3, 100);
        for i in 0..3 {
            buffer.keep(i * 1_000, i * 1_000 + 10);
        }
        assert!(
            !buffer.covers(0, 1, 0) && buffer.covers(1_000, 1, 0) && buffer.covers(2_005, 5, 0)
        );
        buffer.forget(2_009, 2_020);
        assert!(!buffer.covers(2_005, 1, 0) && buffer.covers(1_000, 10, 0));
        let mut none = Buffer::new(0, 0);
        none.remember(0, 10, SimTime::ZERO, 10);
        assert!(!none.covers(0, 1, 10));
    }
}
