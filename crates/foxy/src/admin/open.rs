//! The open connections of the admin listener. If there are too many, the oldest idle connection is closed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::task::AbortHandle;

/// The current activity of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnState(Arc<AtomicU8>);

/// The client has not sent a complete request yet.
const READING: u8 = 0;
/// The answer is being prepared. A change may be under way.
const WORKING: u8 = 1;
/// The answer is being sent, or the client has not closed yet.
const SENDING: u8 = 2;

impl ConnState {
    /// Notes that the request is complete.
    pub(super) fn working(&self) {
        self.0.store(WORKING, Ordering::Relaxed);
    }

    /// Notes that the answer is complete.
    pub(super) fn sending(&self) {
        self.0.store(SENDING, Ordering::Relaxed);
    }

    fn is(&self, state: u8) -> bool {
        self.0.load(Ordering::Relaxed) == state
    }
}

/// The entry of a connection in the list of open connections.
#[derive(Debug)]
pub(super) struct Place(ConnState);

impl Place {
    /// Returns a shared handle, by which the task of the connection reports its activity.
    pub(super) fn state(&self) -> ConnState {
        self.0.clone()
    }
}

/// All connections, the oldest first.
#[derive(Debug)]
pub(super) struct Open {
    max: usize,
    all: RefCell<VecDeque<(ConnState, AbortHandle)>>,
}

impl Open {
    /// Creates an empty list. Idle connections are closed so that at most `max` connections are open.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            all: RefCell::default(),
        }
    }

    /// Returns an entry for a new connection. If too many connections are open, this function closes the
    /// oldest connection that waits for a request. If no connection waits for a request, it closes the oldest
    /// connection that is sending. Busy connections stay open.
    pub(super) fn place(&self) -> Place {
        let mut all = self.all.borrow_mut();
        all.retain(|(_, task)| !task.is_finished());
        if all.len() >= self.max {
            let oldest = |state| all.iter().position(|(at, _)| at.is(state));
            let goes = oldest(READING).or_else(|| oldest(SENDING));
            if let Some((_, task)) = goes.and_then(|at| all.remove(at)) {
                task.abort();
            }
        }
        Place(ConnState::default())
    }

    /// Registers a connection whose task has started.
    pub(super) fn enter(&self, place: Place, task: AbortHandle) {
        self.all.borrow_mut().push_back((place.0, task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_silent_one_goes_first_and_one_at_work_never() {
        let open = Open::new(3);
        let mut tasks = Vec::new();
        let mut come = || {
            let place = open.place();
            let state = place.state();
            let task = tokio::spawn(std::future::pending::<()>());
            open.enter(place, task.abort_handle());
            tasks.push(task);
            state
        };
        let states = [come(), come(), come()];
        states[0].working();
        states[1].sending();
        // The third connection waits for a request, and the second is sending. The first connection is busy.
        for _ in 0..3 {
            come().working();
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let ended: Vec<bool> = tasks.iter().map(|task| task.is_finished()).collect();
        assert_eq!(ended, [false, true, true, false, false, false]);
    }
}
