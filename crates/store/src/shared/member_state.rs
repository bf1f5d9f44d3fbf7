//! The state of a store as a member of its engine: its duty, and how it joins and leaves.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

use crate::interface::Duty;

/// The state of one store as a member of its engine.
#[derive(Debug)]
pub(crate) struct MemberState {
    /// The duty, as a number of [`Duty`].
    duty: AtomicU8,
    /// The number of segments of a draining store that the drain has still to process.
    undrained: AtomicU32,
    /// True once the store has joined the stores of its engine; before that, the store is only read.
    joined: AtomicBool,
    /// The epoch (number of changes of the store set) of the membership that the store's superblocks record.
    recorded: AtomicU64,
    /// True if the segments in quarantine should be tried again.
    retry: AtomicBool,
    departure: Mutex<DepartureState>,
}

/// The tasks that wait until a store has left.
#[derive(Debug, Default)]
struct DepartureState {
    gone: bool,
    wakers: Vec<Waker>,
}

impl MemberState {
    /// Makes the state of a store that has not joined, whose superblocks record the membership of this epoch.
    pub(super) fn new(epoch: u64) -> Self {
        Self {
            duty: AtomicU8::new(Duty::Serving as u8),
            undrained: AtomicU32::new(0),
            joined: AtomicBool::new(false),
            recorded: AtomicU64::new(epoch),
            retry: AtomicBool::new(false),
            departure: Mutex::default(),
        }
    }

    pub(crate) fn duty(&self) -> Duty {
        Duty::of(self.duty.load(Ordering::Acquire))
    }

    pub(crate) fn set_duty(&self, duty: Duty) {
        self.duty.store(duty as u8, Ordering::Release);
    }

    /// The part of a store with `segments` segments that a drain has not processed yet, from 0 to 1.
    pub(crate) fn left(&self, segments: u32) -> f64 {
        match self.duty() {
            Duty::Draining => {
                f64::from(self.undrained.load(Ordering::Relaxed)) / f64::from(segments.max(1))
            }
            _ => 0.0,
        }
    }

    /// Sets the number of segments that a drain has still to process.
    pub(crate) fn set_left(&self, segments: u32) {
        self.undrained.store(segments, Ordering::Relaxed);
    }

    pub(crate) fn has_joined(&self) -> bool {
        self.joined.load(Ordering::Acquire)
    }

    /// Returns whether the store's superblocks record the store set of this epoch.
    pub(crate) fn has_recorded(&self, epoch: u64) -> bool {
        self.recorded.load(Ordering::Acquire) == epoch
    }

    /// Notes that the store's superblocks record the membership of this epoch: the store has joined from
    /// now on.
    pub(crate) fn join(&self, epoch: u64) {
        self.recorded.store(epoch, Ordering::Release);
        self.joined.store(true, Ordering::Release);
    }

    /// Lets the store join without a membership record, before other threads can use the store.
    pub(crate) fn join_alone(&mut self) {
        self.joined = true.into();
    }

    /// Asks the writer to try segments in quarantine again.
    pub(crate) fn ask_retry(&self) {
        self.retry.store(true, Ordering::Release);
    }

    /// Returns whether [`Self::ask_retry`] was called since the last check.
    pub(crate) fn take_retry(&self) -> bool {
        self.retry.swap(false, Ordering::AcqRel)
    }

    /// Notes that the store is not among the open stores any more, and wakes the tasks that wait for
    /// that.
    pub(crate) fn depart(&self) {
        let mut state = self.departure.lock();
        state.gone = true;
        for waker in state.wakers.drain(..) {
            waker.wake();
        }
    }

    /// Returns whether the store has left; if it has not, `waker` is called when it leaves.
    pub(crate) fn poll_departure(&self, waker: &Waker) -> bool {
        let mut state = self.departure.lock();
        if !state.gone && !state.wakers.iter().any(|w| w.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        state.gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_draining_store_has_something_left() {
        let member = MemberState::new(3);
        member.set_left(2);
        assert_eq!(member.left(8), 0.0);
        member.set_duty(Duty::Draining);
        assert_eq!(member.left(8), 0.25);
    }

    #[test]
    fn a_store_joins_when_it_has_recorded_it_and_retries_once() {
        let member = MemberState::new(3);
        assert!(member.has_recorded(3) && !member.has_joined());
        member.join(4);
        assert!(member.has_recorded(4) && member.has_joined());
        member.ask_retry();
        assert_eq!([member.take_retry(), member.take_retry()], [true, false]);
    }
}
