//! Times of a rotating disk for a memory disk: one head, which needs longer for longer ways.

use foxy_base::{MonoTime, Rng};
use std::time::Duration;

/// Duration of operations of a memory disk, by its clock. They are carried out one by one, in order
/// of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seek {
    /// Time of the head for a move over the whole disk; for shorter moves it scales with the root of
    /// the distance.
    pub way: Duration,
    /// Time of one turn of the platter. An operation waits for a random part of it, unless it begins
    /// where the last one ended.
    pub turn: Duration,
    /// Time of each operation besides these two.
    pub fixed: Duration,
}

/// The head of a disk with such times.
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

    /// End of an operation on `at..at + len` of a disk of `span` bytes that begins at `now`.
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
