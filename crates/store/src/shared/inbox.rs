//! The inbox of the thread that writes a store, and the bell that wakes this thread.

use std::time::Duration;

use foxy_base::KeyHash;
use parking_lot::{Condvar, Mutex};

use super::removals::Numbered;
use crate::Durable;
use crate::interface::TicketPart;

/// An object on its way to disk. The pending table contains the object itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) hash: KeyHash,
    /// The ticket of the entry in the pending table; the entry may have been replaced since this item
    /// was made.
    pub(crate) ticket: u64,
    pub(crate) group: u64,
    /// Length of the record on disk, in bytes.
    pub(crate) bytes: u32,
}

/// The request of a caller that waits until objects and removals are durable.
#[derive(Debug)]
pub(crate) struct SyncRequest {
    /// True if the caller waits for objects too, and not only for removals.
    pub(crate) objects: bool,
    pub(crate) part: TicketPart,
}

/// The objects, removals and requests that network threads pass to the writer.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) items: Vec<Item>,
    pub(crate) removals: Vec<Numbered>,
    pub(crate) requests: Vec<SyncRequest>,
    pub(crate) overflow: bool,
    /// The outcome for waiting callers; it is set once the writer has ended.
    closed: Option<Durable>,
}

impl Inbox {
    /// Adds a request. The writer ends the ticket part of the request after a flush.
    pub(crate) fn request(&mut self, request: SyncRequest) {
        match self.closed {
            Some(outcome) => request.part.finish(outcome),
            None => self.requests.push(request),
        }
    }

    /// Puts the removals of `taken`, and the requests that wait for them, back into the inbox. Returns
    /// the remaining contents of `taken`.
    pub(crate) fn keep_removals(&mut self, taken: Self) -> Self {
        self.removals = taken.removals;
        self.requests = taken.requests;
        self.overflow = taken.overflow;
        self.closed = taken.closed;
        Self {
            items: taken.items,
            ..Self::default()
        }
    }

    /// Handles the end of a writer when another writer continues with the store: passes the removals and the
    /// requests on to `heir`, the inbox of the other writer.
    pub(crate) fn hand_over(&mut self, heir: &mut Self) {
        // The heir's own removals are newer, so they come after the removals of this inbox.
        let later = std::mem::replace(&mut heir.removals, std::mem::take(&mut self.removals));
        heir.removals.extend(later);
        heir.requests.append(&mut self.requests);
        heir.overflow |= self.overflow;
        self.closed = Some(Durable::Failed);
    }

    /// Handles the end of the writer: ends the requests of all waiting callers with `outcome`.
    pub(crate) fn close(&mut self, outcome: Durable) {
        self.closed = Some(outcome);
        for request in self.requests.drain(..) {
            request.part.finish(outcome);
        }
    }
}

/// Wakes the thread that drives a writer.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    state: Mutex<BellState>,
    condvar: Condvar,
}

#[derive(Debug, Default)]
struct BellState {
    rung: bool,
    nudged: bool,
    /// True if the thread has nothing to do and waits in [`Bell::wait`].
    idle: bool,
}

impl Bell {
    /// Announces work that must be done now.
    pub(crate) fn ring(&self) {
        let mut state = self.state.lock();
        if !state.rung {
            state.rung = true;
            self.condvar.notify_one();
        }
    }

    /// Announces work that must be done soon. This wakes an idle thread, but not a thread that pauses
    /// between two turns of the writer. A wake-up for every single item would cost more than the work for
    /// the item.
    pub(crate) fn nudge(&self) {
        let mut state = self.state.lock();
        if !state.nudged {
            state.nudged = true;
            if state.idle {
                self.condvar.notify_one();
            }
        }
    }

    /// Waits until the bell is rung or nudged, or until the time is over.
    pub(crate) fn wait(&self, at_most: Duration) {
        let mut state = self.state.lock();
        if !state.rung && !state.nudged {
            state.idle = true;
            self.condvar.wait_for(&mut state, at_most);
        }
        *state = BellState::default();
    }

    /// Waits until the bell is rung, or until the time is over.
    pub(crate) fn pause(&self, at_most: Duration) {
        let mut state = self.state.lock();
        if !state.rung {
            self.condvar.wait_for(&mut state, at_most);
        }
        *state = BellState::default();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// This is longer than any test can wait, so a thread that is not woken is noticed.
    const LONG: Duration = Duration::from_secs(600);

    /// Runs `wait` in a thread. The receiver gets a message when `wait` returns.
    fn ends(bell: &Arc<Bell>, wait: fn(&Bell)) -> std::sync::mpsc::Receiver<()> {
        let (done, over) = std::sync::mpsc::channel();
        let bell = Arc::clone(bell);
        std::thread::spawn(move || {
            wait(&bell);
            let _ = done.send(());
        });
        over
    }

    #[test]
    fn a_nudge_wakes_who_is_idle_and_is_not_lost_on_who_is_not_yet() {
        let bell = Arc::new(Bell::default());
        bell.nudge();
        let over = ends(&bell, |bell| bell.wait(LONG));
        assert_eq!(over.recv_timeout(Duration::from_secs(60)), Ok(()));
        let over = ends(&bell, |bell| bell.wait(LONG));
        while !bell.state.lock().idle {
            std::thread::yield_now();
        }
        bell.nudge();
        assert_eq!(over.recv_timeout(Duration::from_secs(60)), Ok(()));
    }

    #[test]
    fn a_pause_ends_by_a_ring_and_not_by_a_nudge() {
        let bell = Arc::new(Bell::default());
        bell.nudge();
        let over = ends(&bell, |bell| bell.pause(LONG));
        let still = over.recv_timeout(Duration::from_millis(20));
        assert_eq!(still, Err(std::sync::mpsc::RecvTimeoutError::Timeout));
        bell.ring();
        assert_eq!(over.recv_timeout(Duration::from_secs(60)), Ok(()));
    }
}
