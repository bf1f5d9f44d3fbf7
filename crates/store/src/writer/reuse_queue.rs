//! The reuse queue: the segments that are being prepared for their next incarnation, in sequence.
//!
//! One segment is enough as long as its preparation ends before the open segment is full. If writing had to
//! wait, more segments are prepared at a time. Then one flush makes the open headers of several segments
//! durable. A ready segment takes the clusters that arrive while the next segments are read, opened and
//! flushed. But the old contents of these segments are forgotten earlier. So the number of prepared segments
//! falls again after a while in which fewer segments would have sufficed.

use std::collections::VecDeque;

use foxy_format::{Entry, Geometry};

use super::reinsert::Reinsertion;
use crate::shared::segments_ahead;

/// If one prepared segment less would have sufficed for this number of segments in a row, the number of
/// segments in preparation falls by one.
const CALM: u32 = 64;

/// A segment that is being prepared to be overwritten.
#[derive(Debug)]
pub(super) struct Preparing {
    pub(super) index: u32,
    pub(super) sequence: u64,
    /// The entries of the segment's old incarnation.
    pub(super) victim: Vec<Entry>,
    pub(super) work: Reinsertion,
    /// The segments in quarantine that were skipped before this segment.
    pub(super) passed_over: Vec<u32>,
    pub(super) stage: Stage,
}

/// The progress of the preparation of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The victim's slot is being read.
    Reading,
    /// Used records are being read and reinserted.
    Reinserting,
    /// The open header must still be written. The write begins after the writes of the open headers of all
    /// earlier segments have begun. After a failed write, it also waits until a pause has ended.
    Unopened,
    /// The open header of the new incarnation is being written to the slot.
    Opening,
    /// The open header waits for this flush.
    Flushing(u64),
    /// The open header is being read back to check it.
    Checking,
    /// The open header is durable on the disk.
    Opened,
    /// The index entries of the old incarnation, which has this number, are being dropped. 0: the segment had
    /// no incarnation.
    Dropping(u64),
    /// The segment may be overwritten.
    Ready,
}

impl Preparing {
    pub(super) fn new(index: u32, sequence: u64, stage: Stage) -> Self {
        Self {
            index,
            sequence,
            victim: Vec::new(),
            work: Reinsertion::default(),
            passed_over: Vec::new(),
            stage,
        }
    }

    /// Returns whether the wanted records of this segment are chosen and read, so that the next segment
    /// may choose its records.
    pub(super) fn has_chosen(&self) -> bool {
        match self.stage {
            Stage::Reading => false,
            Stage::Reinserting => self.work.is_read(),
            _ => true,
        }
    }

    /// Returns whether the open header of this segment is written or is being written.
    pub(super) const fn is_opened(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Reading | Stage::Reinserting | Stage::Unopened
        )
    }

    /// Returns whether no work on the segment is under way: it is ready, or waits to be opened.
    const fn is_at_rest(&self) -> bool {
        matches!(self.stage, Stage::Ready | Stage::Unopened)
    }
}

/// The segments in preparation, oldest first, and the number of segments that should be in preparation.
#[derive(Debug)]
pub(super) struct ReuseQueue {
    all: VecDeque<Preparing>,
    ahead: u32,
    most: u32,
    calm: u32,
    /// True if writing waits for the first segment in the queue.
    urgent: bool,
}

impl ReuseQueue {
    pub(super) fn new(geometry: &Geometry, ready: Option<(u32, u64)>) -> Self {
        let ready = ready.map(|(index, sequence)| Preparing::new(index, sequence, Stage::Ready));
        Self {
            all: ready.into_iter().collect(),
            ahead: 1,
            most: segments_ahead(geometry),
            calm: 0,
            urgent: false,
        }
    }

    /// The number of segments that should be in preparation. `half` states whether the open segment is
    /// over half full.
    pub(super) const fn wanted(&self, half: bool) -> usize {
        if half || self.urgent {
            self.ahead as usize
        } else {
            self.ahead as usize - 1
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the segment that was added last.
    pub(super) fn newest(&self) -> Option<&Preparing> {
        self.all.back()
    }

    pub(super) fn push(&mut self, next: Preparing) {
        self.all.push_back(next);
    }

    /// Takes all segments out of the queue, in sequence. The caller must put them back with
    /// [`ReuseQueue::give_back`].
    pub(super) fn lend(&mut self) -> VecDeque<Preparing> {
        std::mem::take(&mut self.all)
    }

    pub(super) fn give_back(&mut self, all: VecDeque<Preparing>) {
        self.all = all;
    }

    /// Takes the first segment if it is ready. Otherwise the segment becomes urgent, and more segments
    /// are prepared at a time.
    pub(super) fn take_ready(&mut self) -> Option<(u32, u64)> {
        let Some(first) = self.all.pop_front_if(|p| p.stage == Stage::Ready) else {
            if !std::mem::replace(&mut self.urgent, true) {
                self.ahead = (self.ahead * 2).min(self.most);
                self.calm = 0;
            }
            return None;
        };
        let spare = self.all.front().is_some_and(|p| p.stage == Stage::Ready);
        self.calm = if spare && !self.urgent {
            self.calm + 1
        } else {
            0
        };
        if self.calm >= CALM {
            self.calm = 0;
            self.ahead = (self.ahead - 1).max(1);
        }
        self.urgent = false;
        Some((first.index, first.sequence))
    }

    /// Returns whether writing had to wait for a segment not long ago.
    pub(super) const fn is_pressed(&self) -> bool {
        self.ahead > 1
    }

    /// Returns whether writing waits for the first segment in the queue.
    pub(super) const fn is_urgent(&self) -> bool {
        self.urgent
    }

    pub(super) fn find(&mut self, sequence: u64) -> Option<&mut Preparing> {
        self.all.iter_mut().find(|p| p.sequence == sequence)
    }

    pub(super) fn has(&self, index: u32) -> bool {
        self.all.iter().any(|p| p.index == index)
    }

    pub(super) fn is_dropping(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|p| matches!(p.stage, Stage::Dropping(_)))
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.all.iter().all(Preparing::is_at_rest)
    }

    /// The capacity, in entries, of the entry lists of all victims.
    pub(super) fn entries(&self) -> usize {
        self.all.iter().map(|p| p.victim.capacity()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::AHEAD_MOST;

    fn queue(segments: u64) -> ReuseQueue {
        let total = segments * ((64 << 10) + 4096) + (64 << 10);
        ReuseQueue::new(
            &Geometry::fit(total, 64 << 10, 16 << 10, 512).unwrap(),
            None,
        )
    }

    fn ready(queue: &mut ReuseQueue, sequence: u64) {
        queue.push(Preparing::new(sequence as u32, sequence, Stage::Ready));
    }

    #[test]
    fn what_writing_had_to_wait_for_is_prepared_earlier_and_not_for_ever() {
        let mut queue = queue(256);
        assert_eq!((queue.wanted(false), queue.wanted(true)), (0, 1));
        // A wait counts once, however often it is checked.
        for _ in 0..10 {
            assert_eq!(queue.take_ready(), None);
        }
        assert_eq!((queue.is_urgent(), queue.wanted(false)), (true, 2));
        for sequence in 1..100 {
            ready(&mut queue, sequence);
            assert_eq!(queue.take_ready(), Some((sequence as u32, sequence)));
            assert_eq!(queue.take_ready(), None);
        }
        assert_eq!(queue.wanted(true), AHEAD_MOST as usize, "bounded");
        // From here on there is always one more ready segment than is needed.
        ready(&mut queue, 100);
        for sequence in 101..2000 {
            ready(&mut queue, sequence);
            assert!(queue.take_ready().is_some());
        }
        assert_eq!(queue.wanted(true), 1);
    }

    #[test]
    fn a_store_of_few_segments_keeps_to_one_ahead() {
        let mut queue = queue(16);
        for sequence in 1..10 {
            assert_eq!(queue.take_ready(), None);
            ready(&mut queue, sequence);
            assert!(queue.take_ready().is_some());
        }
        assert_eq!(queue.wanted(true), 1);
    }
}
