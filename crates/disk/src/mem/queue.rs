//! A queue of a memory disk.

use super::state::{Owner, Parcel, State};
use crate::signal::Inbox;
use crate::{Completion, Nudge, Op, Queue, QueueStats, check};
use parking_lot::Mutex;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The pause between two checks of `wait` for operations whose completion is delayed.
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub(super) struct MemQueue {
    state: Arc<Mutex<State>>,
    owner: Owner,
    inbox: Arc<Inbox<Parcel>>,
    staged: Vec<(u64, Op)>,
    flying: usize,
    stats: QueueStats,
}

impl MemQueue {
    pub(super) fn new(state: Arc<Mutex<State>>) -> io::Result<Self> {
        let inbox = Arc::new(Inbox::new()?);
        let queue = {
            let mut state = state.lock();
            state.queues += 1;
            state.queues - 1
        };
        let owner = Owner {
            queue,
            inbox: Arc::downgrade(&inbox),
        };
        let (staged, stats) = (Vec::new(), QueueStats::default());
        Ok(Self {
            state,
            owner,
            inbox,
            staged,
            flying: 0,
            stats,
        })
    }
}

impl Queue for MemQueue {
    fn submit(&mut self, op: Op) {
        check::count(&mut self.stats, &op);
        // The operation gets its number at submission, not at execution: a flush covers only writes whose
        // completion the submitter had seen before it submitted the flush.
        let id = self.state.lock().new_id();
        self.staged.push((id, op));
    }

    fn flush_submissions(&mut self) -> io::Result<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        self.stats.submit_calls += 1;
        self.flying += self.staged.len();
        let mut state = self.state.lock();
        for (id, op) in self.staged.drain(..) {
            state.accept(id, op, &self.owner);
        }
        Ok(())
    }

    fn reap(&mut self, out: &mut Vec<Completion>) -> usize {
        let mut state = self.state.lock();
        let more = state.look(self.owner.queue);
        let next = state.next_id + 1;
        let count = self.inbox.drain(|parcel| {
            if let Some(seen) = parcel.seen {
                seen.store(next, Ordering::SeqCst);
            }
            out.push(parcel.completion);
        });
        if more {
            self.inbox.nudge();
        }
        self.flying -= count;
        count
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        self.flush_submissions()?;
        if self.flying == 0 {
            return Ok(false);
        }
        self.stats.wait_calls += 1;
        let longest = self.state.lock().longest_wait;
        let mut left = longest.map_or(timeout, |longest| timeout.min(longest));
        loop {
            let more = self.state.lock().look(self.owner.queue);
            let pause = if more { left.min(LOOK_EVERY) } else { left };
            if self.inbox.wait(1, pause) {
                return Ok(true);
            }
            left -= pause;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inbox.fd())
    }

    fn nudge(&self) -> Option<Nudge> {
        let inbox = self.inbox.clone();
        Some(Box::new(move || inbox.nudge()))
    }

    fn in_flight(&self) -> usize {
        self.staged.len() + self.flying
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }
}
