//! A queue of tasks that wait for a later round of their worker (see `poll_budgets`).

use std::collections::VecDeque;
use std::task::Waker;

/// Number of tasks for which an empty queue keeps memory. A worker has a queue for each slot of clients. Many
/// clients that had thousands of connections must not leave megabytes in these queues.
const KEPT: usize = 16;

/// Tasks in order of arrival. Their numbers count from 1.
#[derive(Debug, Default)]
pub(super) struct RoundQueue {
    wakers: VecDeque<Waker>,
    /// Number of tasks that have left the queue since the start.
    left: u64,
}

impl RoundQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.wakers.is_empty()
    }

    /// Returns true if the task with this number has left the queue. Number 0 means that the task was never in
    /// the queue.
    pub(super) fn has_left(&self, number: u64) -> bool {
        number <= self.left
    }

    /// Puts a task at the end of the queue, unless it is already in the queue. `number` is the number of the
    /// task's last entry, or 0 if the task was never in the queue.
    pub(super) fn enter(&mut self, number: &mut u64, waker: &Waker) {
        if self.has_left(*number) {
            self.wakers.push_back(waker.clone());
            *number = self.left + self.wakers.len() as u64;
        }
    }

    /// Wakes the first tasks, at most `most`. They leave the queue. Returns their number.
    pub(super) fn wake(&mut self, most: usize) -> usize {
        let woken = self.wakers.len().min(most);
        self.left += woken as u64;
        self.wakers.drain(..woken).for_each(Waker::wake);
        if self.wakers.is_empty() {
            self.wakers.shrink_to(KEPT);
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other events may wake a task while it waits for the next round. It then keeps its position in the
    /// queue.
    #[test]
    fn a_task_is_in_the_queue_once() {
        let mut queue = RoundQueue::default();
        let (mut first, mut second) = (0, 0);
        queue.enter(&mut first, Waker::noop());
        queue.enter(&mut second, Waker::noop());
        queue.enter(&mut first, Waker::noop());
        assert_eq!((queue.wakers.len(), first, second), (2, 1, 2));
        assert_eq!(queue.wake(1), 1);
        assert!(queue.has_left(first) && !queue.has_left(second));
        queue.enter(&mut first, Waker::noop());
        queue.enter(&mut second, Waker::noop());
        assert_eq!((queue.wakers.len(), first, second), (2, 3, 2));
        assert_eq!(queue.wake(5), 2);
        assert!(queue.is_empty());
    }

    #[test]
    fn an_empty_queue_keeps_little_memory() {
        let mut queue = RoundQueue::default();
        (0..5000).for_each(|_| queue.enter(&mut 0, Waker::noop()));
        queue.wake(4999);
        assert!(queue.wakers.capacity() >= 5000, "one task is left");
        queue.wake(1);
        assert!(queue.wakers.capacity() <= 2 * KEPT);
    }
}
