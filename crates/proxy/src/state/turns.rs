//! Turns of clients at a worker. The runtime polls tasks in the order in which they were woken: behind a
//! thousand connections of one client, everybody else would wait for all of them. So the connections of one
//! client are polled a few times, and then wait until what has arrived meanwhile for others had its turn.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, Waker};

/// Polls of one client's connections in a turn. With 50 us for each, others wait for 1 ms.
const PART: u8 = 16;
/// Connections that are woken for a turn. More than run in it, so that it is full where some have ended.
const WOKEN: usize = 64;
/// Clients are counted by their numbers modulo this. Two of them may share a part.
const SLOTS: usize = 1024;
/// Turns for which a worker stays careful after it has seen two clients in one.
const CAREFUL: u8 = 255;

/// The present turn.
#[derive(Debug)]
pub(crate) struct Turns {
    polls: [Cell<u8>; SLOTS],
    /// Slots with polls in this turn.
    clients: Cell<usize>,
    /// Turns that are still limited. One client alone has all turns.
    careful: Cell<u8>,
    waiting: RefCell<Waiting>,
}

/// Connections that had their part of this turn, in order.
#[derive(Debug, Default)]
struct Waiting {
    wakers: VecDeque<Waker>,
    /// Those that have left the queue.
    left: u64,
    /// The task that ends the turn.
    ends: Option<Waker>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            polls: [const { Cell::new(0) }; SLOTS],
            clients: Cell::new(0),
            careful: Cell::new(0),
            waiting: RefCell::default(),
        }
    }
}

impl Turns {
    /// Does the work of one connection of `client` (0: nobody counts it) in turns. Cancel safe if `work` is.
    /// It is pinned by the caller: a future that takes another one by value has room for it twice.
    pub(crate) async fn take<F: Future>(&self, client: u64, mut work: Pin<&mut F>) -> F::Output {
        let mut place = 0;
        poll_fn(|cx| {
            if self.is_over_for(client) {
                self.waiting.borrow_mut().enter(&mut place, cx.waker());
                return Poll::Pending;
            }
            work.as_mut().poll(cx)
        })
        .await
    }

    /// True if the client had its part of this turn; otherwise counts a poll.
    #[inline]
    fn is_over_for(&self, client: u64) -> bool {
        if client == 0 {
            return false;
        }
        let polls = &self.polls[(client % SLOTS as u64) as usize];
        let before = polls.get();
        if before >= PART && self.careful.get() > 0 {
            return true;
        }
        if before == 0 {
            self.clients.set(self.clients.get() + 1);
            if self.clients.get() > 1 {
                self.careful.set(CAREFUL);
            }
        }
        polls.set(before.saturating_add(1));
        false
    }

    /// Ends a turn whenever connections wait, once the runtime has looked for events. Never returns.
    pub(crate) async fn run(&self) {
        loop {
            poll_fn(|cx| {
                let mut waiting = self.waiting.borrow_mut();
                if !waiting.wakers.is_empty() {
                    return Poll::Ready(());
                }
                waiting.ends = Some(cx.waker().clone());
                Poll::Pending
            })
            .await;
            // The runtime continues this after it has looked for events, behind the tasks that these wake.
            tokio::task::yield_now().await;
            self.next();
        }
    }

    fn next(&self) {
        if self.clients.get() <= 1 {
            self.careful.set(self.careful.get().saturating_sub(1));
        }
        self.clients.set(0);
        self.polls.iter().for_each(|polls| polls.set(0));
        let mut waiting = self.waiting.borrow_mut();
        for _ in 0..WOKEN {
            let Some(waker) = waiting.wakers.pop_front() else {
                break;
            };
            waiting.left += 1;
            waker.wake();
        }
    }
}

impl Waiting {
    /// Puts a connection at the end, unless it is in the queue. `place` is its number, from 1.
    fn enter(&mut self, place: &mut u64, waker: &Waker) {
        if *place > self.left {
            return;
        }
        self.wakers.push_back(waker.clone());
        *place = self.left + self.wakers.len() as u64;
        if let Some(ends) = self.ends.take() {
            ends.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::rc::Rc;

    use super::*;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    /// Runs a worker in which `crowd` connections of client 1 are always ready to run. The most of their
    /// polls between two of client 2, which waits for an event each time.
    fn between(crowd: usize) -> usize {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        LocalSet::new().block_on(&runtime.unwrap(), async move {
            let turns = Rc::new(Turns::default());
            let polls = Rc::new(Cell::new(0));
            let ends = Rc::clone(&turns);
            spawn_local(async move { ends.run().await });
            for _ in 0..crowd {
                let polls = Rc::clone(&polls);
                let busy = poll_fn(move |cx| {
                    polls.set(polls.get() + 1);
                    cx.waker().wake_by_ref();
                    Poll::<()>::Pending
                });
                let turns = Rc::clone(&turns);
                spawn_local(async move { turns.take(1, pin!(busy)).await });
            }
            let other = async move {
                let mut most = 0;
                for round in 0..200 {
                    let before = polls.get();
                    yield_now().await;
                    // The first turns have not seen two clients yet.
                    if round > 2 {
                        most = most.max(polls.get() - before);
                    }
                }
                most
            };
            let other = async move { turns.take(2, pin!(other)).await };
            spawn_local(other).await.unwrap()
        })
    }

    #[test]
    fn a_client_does_not_wait_for_all_connections_of_another() {
        let most = between(2000);
        assert!(most <= 2 * usize::from(PART), "{most}");
        assert!(most > 0, "the other one goes on");
    }

    #[test]
    fn one_client_alone_has_all_turns() {
        let turns = Turns::default();
        assert!((0..1000).all(|_| !turns.is_over_for(7) && !turns.is_over_for(0)));
        assert!(!turns.is_over_for(8), "another one comes");
        assert!(turns.is_over_for(7) && !turns.is_over_for(0));
        turns.next();
        assert!((0..PART).all(|_| !turns.is_over_for(7)) && turns.is_over_for(7));
        (0..CAREFUL).for_each(|_| turns.next());
        assert!((0..1000).all(|_| !turns.is_over_for(7)), "alone again");
    }

    /// A connection that other events wake while it waits stays where it is.
    #[test]
    fn a_connection_waits_in_one_place() {
        let mut waiting = Waiting::default();
        let (mut first, mut second) = (0, 0);
        waiting.enter(&mut first, Waker::noop());
        waiting.enter(&mut second, Waker::noop());
        waiting.enter(&mut first, Waker::noop());
        assert_eq!((waiting.wakers.len(), first, second), (2, 1, 2));
        waiting.wakers.pop_front();
        waiting.left += 1;
        waiting.enter(&mut first, Waker::noop());
        waiting.enter(&mut second, Waker::noop());
        assert_eq!((waiting.wakers.len(), first, second), (2, 3, 2));
    }
}
