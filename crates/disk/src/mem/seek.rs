//! The times that a simulated rotating disk takes for its operations. The disk has one head, and longer moves
//! of the head take more time.

use foxy_base::{MonoTime, Rng};
use std::time::Duration;

/// The times that operations of a memory disk take, by its clock. The operations are executed one by one, in
/// order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seek {
    /// Time of a head move over the whole disk. The time of shorter moves scales with the square root of the
    /// distance.
    pub way: Duration,
    /// Time of one rotation of the platter. An operation waits for a random part of a rotation. It does not
    /// wait if it begins where the last operation ended.
    pub turn: Duration,
    /// Time of each operation in addition to the head move and the rotation.
    pub fixed: Duration,
}

/// The head of a disk that has these times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    seek: Seek,
    at: u64,
    free: MonoTime,
}

impl Head {
    pub(super) const fn new(seek: Seek) -> Self {
        Self {
            seek,
            at: 0,
            free: MonoTime(0),
        }
    }

    /// Returns the end time of an operation that is submitted at `now`. The operation begins when the head
    /// has ended all earlier operations. It covers `at..at + len` of a disk of `span` bytes.
    pub(super) fn serve(
        &mut self,
        now: MonoTime,
        at: u64,
        len: u64,
        span: u64,
        rng: &mut Rng,
    ) -> MonoTime {
        let mut took = self.seek.fixed;
        if at != self.at {
            let far = at.abs_diff(self.at) as f64 / span.max(1) as f64;
            took += self.seek.way.mul_f64(far.sqrt().min(1.0));
            took += self.seek.turn.mul_f64(rng.below(1000) as f64 / 1000.0);
        }
        self.at = at + len;
        self.free = self.free.max(now) + took;
        self.free
    }
}
