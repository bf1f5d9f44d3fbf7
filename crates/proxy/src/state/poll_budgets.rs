//! Budgets of polls, one for each client of a worker. The runtime polls tasks (calls `Future::poll`) in the
//! order in which they were woken. Without budgets, a request could wait until a thousand connections of
//! another client are polled. With budgets, the connections of one client are polled only a few times in a
//! round. Then they wait for the next round, which begins after the runtime has checked for new events.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::round_queue::RoundQueue;
use super::turns::Turns;

/// Largest number of polls of one client's connections in a round. If each poll takes 50 us, a client delays
/// the others by 0.2 ms in each round.
const POLLS_MAX: u8 = 4;
/// Number of waiting connections of a client that are woken for a round in which the client has no limit.
const WOKEN: usize = 64;
/// Number of slots. A slot counts the polls of a round. The slot of a client is the client's number modulo
/// this value. Clients with the same slot share its polls.
const SLOTS: usize = 1024;
/// Number of successive rounds in which connections of only one client are polled. After these rounds, the
/// polls have no limit any more.
const ALONE: u8 = 255;

/// The budgets of the present round.
#[derive(Debug)]
pub(crate) struct PollBudgets {
    polls: [Cell<u8>; SLOTS],
    /// Number of slots whose clients were polled in this round.
    clients: Cell<usize>,
    /// Number of rounds in which the polls of a client still have a limit. A round with several clients sets
    /// this number to [`ALONE`]. A round with a single client decrements it.
    limited: Cell<u8>,
    /// Connections that wait because their client has used its polls of this round: one queue for each slot.
    waiting: RefCell<Box<[RoundQueue]>>,
    /// The slots whose queue is not empty.
    crowded: RefCell<Vec<usize>>,
    /// Wakes the task that ends rounds, if a connection begins to wait.
    ends: RefCell<Option<Waker>>,
    /// Number of polls of connections in this round.
    polled: Cell<usize>,
    turns: Rc<Turns>,
}

impl PollBudgets {
    /// Creates the budgets. A round also ends if long answers wait in `turns` for the next round.
    pub(crate) fn new(turns: &Rc<Turns>) -> Self {
        Self {
            polls: [const { Cell::new(0) }; SLOTS],
            clients: Cell::new(0),
            limited: Cell::new(0),
            waiting: RefCell::new((0..SLOTS).map(|_| RoundQueue::default()).collect()),
            crowded: RefCell::default(),
            ends: RefCell::default(),
            polled: Cell::new(0),
            turns: Rc::clone(turns),
        }
    }

    /// Runs `work`, which belongs to one connection of `client`. `work` is polled only while the client has
    /// polls left in the present round. If connections of only one client are active, or if `client` is 0,
    /// there is no limit. Cancel safe if `work` is cancel safe; if the future is dropped while it waits, it
    /// uses up one poll of a later round. The caller pins `work`, because a future that
    /// takes another future by value needs memory for that future twice.
    pub(crate) async fn take<F: Future>(&self, client: u64, mut work: Pin<&mut F>) -> F::Output {
        let mut number = 0;
        poll_fn(|cx| {
            if !self.may_be_polled(client, &mut number, cx.waker()) {
                return Poll::Pending;
            }
            self.polled.set(self.polled.get() + 1);
            work.as_mut().poll(cx)
        })
        .await
    }

    /// Returns true if a connection of `client` may be polled now. Otherwise the connection waits in a queue.
    /// `number` is its number in the queue, or 0 if it is not in the queue.
    #[inline]
    fn may_be_polled(&self, client: u64, number: &mut u64, waker: &Waker) -> bool {
        if *number == 0 && !self.has_had_its_polls(client) {
            return true;
        }
        let queue = &mut self.waiting.borrow_mut()[slot(client)];
        if *number > 0 {
            // Another event may wake a connection that waits. It keeps its position in the queue. The poll of
            // a connection that has left the queue was counted when the round began.
            let has_left = queue.has_left(*number);
            if has_left {
                *number = 0;
            }
            return has_left;
        }
        if queue.is_empty() {
            self.crowded.borrow_mut().push(slot(client));
        }
        queue.enter(number, waker);
        self.ends.take().into_iter().for_each(Waker::wake);
        false
    }

    /// Returns true if the client has used all its polls of this round. Otherwise counts one more poll and
    /// returns false.
    #[inline]
    fn has_had_its_polls(&self, client: u64) -> bool {
        if client == 0 {
            return false;
        }
        let polls = &self.polls[slot(client)];
        let before = polls.get();
        if before >= POLLS_MAX && self.has_limits() {
            return true;
        }
        if before == 0 {
            self.count_client();
        }
        polls.set(before.saturating_add(1));
        false
    }

    /// Returns true if the polls of a client have a limit, because several clients are active.
    pub(crate) fn has_limits(&self) -> bool {
        self.limited.get() > 0
    }

    /// Counts one more client that was polled in this round.
    fn count_client(&self) {
        self.clients.set(self.clients.get() + 1);
        if self.clients.get() > 1 {
            self.limited.set(ALONE);
        }
    }

    /// Ends the rounds. A round ends if connections or long answers wait for the next round, and the runtime
    /// has then checked for events. Never returns.
    pub(crate) async fn run(&self) {
        loop {
            poll_fn(|cx| {
                let waits = !self.crowded.borrow().is_empty();
                if waits || self.turns.poll_waiting(cx.waker()) {
                    return Poll::Ready(());
                }
                self.ends.replace(Some(cx.waker().clone()));
                Poll::Pending
            })
            .await;
            // The runtime checks for events, polls the tasks that these events wake, and then polls this task
            // again.
            tokio::task::yield_now().await;
            self.next();
        }
    }

    fn next(&self) {
        if self.clients.get() <= 1 {
            self.limited.set(self.limited.get().saturating_sub(1));
        }
        self.clients.set(0);
        self.polls.iter().for_each(|polls| polls.set(0));
        self.turns.next(self.polled.take());
        self.wake();
    }

    /// Wakes waiting connections and counts their polls. So connections of the same client that other events
    /// wake do not overtake them.
    fn wake(&self) {
        let most = match self.has_limits() {
            true => usize::from(POLLS_MAX),
            false => WOKEN,
        };
        let mut queues = self.waiting.borrow_mut();
        self.crowded.borrow_mut().retain(|slot| {
            let woken = queues[*slot].wake(most);
            self.polls[*slot].set(u8::try_from(woken).unwrap_or(u8::MAX));
            self.count_client();
            !queues[*slot].is_empty()
        });
    }
}

/// Returns the slot of a client.
const fn slot(client: u64) -> usize {
    (client % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    /// Runs a worker in which `crowd` connections of client 1 are always ready to run. The connection of
    /// client 2 waits for an event before each poll. Returns the largest number of polls of client 1 between
    /// two polls of client 2.
    fn between(crowd: usize) -> usize {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        LocalSet::new().block_on(&runtime.unwrap(), async move {
            let budgets = Rc::new(PollBudgets::new(&Rc::default()));
            let polls = Rc::new(Cell::new(0));
            let ends = Rc::clone(&budgets);
            spawn_local(async move { ends.run().await });
            for _ in 0..crowd {
                let polls = Rc::clone(&polls);
                let busy = poll_fn(move |cx| {
                    polls.set(polls.get() + 1);
                    cx.waker().wake_by_ref();
                    Poll::<()>::Pending
                });
                let budgets = Rc::clone(&budgets);
                spawn_local(async move { budgets.take(1, pin!(busy)).await });
            }
            let other = async move {
                let mut most = 0;
                for round in 0..200 {
                    let before = polls.get();
                    yield_now().await;
                    // The first rounds do not count, because the worker has not polled both clients yet.
                    if round > 2 {
                        most = most.max(polls.get() - before);
                    }
                }
                most
            };
            let other = async move { budgets.take(2, pin!(other)).await };
            spawn_local(other).await.unwrap()
        })
    }

    #[test]
    fn a_client_does_not_wait_for_all_connections_of_another() {
        let most = between(2000);
        assert!(most <= 2 * usize::from(POLLS_MAX), "{most}");
        assert!(most > 0, "client 1 is polled too");
    }

    /// Connections of one client are polled in the order in which they began to wait. A connection that another
    /// event wakes does not overtake them.
    #[test]
    fn waiting_connections_keep_their_order() {
        let budgets = PollBudgets::new(&Rc::default());
        let polled =
            |client, number: &mut u64| budgets.may_be_polled(client, number, Waker::noop());
        assert!(polled(2, &mut 0));
        let mut waiting = [0; POLLS_MAX as usize + 2];
        (0..POLLS_MAX).for_each(|_| assert!(polled(1, &mut 0)));
        assert!(waiting.iter_mut().all(|number| !polled(1, number)));
        // They keep their places if they are woken too early.
        assert!(waiting.iter_mut().rev().all(|number| !polled(1, number)));

        budgets.next();
        let mut newest = 0;
        assert!(
            !polled(1, &mut newest),
            "the first of the queue have the polls"
        );
        let (first, second) = waiting.split_at_mut(POLLS_MAX as usize);
        assert!(second.iter_mut().all(|number| !polled(1, number)));
        assert!(first.iter_mut().all(|number| polled(1, number)));
        assert!(
            first.iter_mut().all(|number| !polled(1, number)),
            "once each"
        );
        assert!(polled(2, &mut 0), "another client has polls of its own");

        budgets.next();
        assert!(second.iter_mut().all(|number| polled(1, number)));
        assert!(polled(1, &mut newest));
    }

    #[test]
    fn connections_that_end_while_they_wait_do_not_stop_the_others() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        LocalSet::new().block_on(&runtime.unwrap(), async move {
            let budgets = Rc::new(PollBudgets::new(&Rc::default()));
            let ends = Rc::clone(&budgets);
            spawn_local(async move { ends.run().await });
            assert!(budgets.may_be_polled(2, &mut 0, Waker::noop()));
            let polled = Rc::new(Cell::new(0));
            let connections = (0..100).map(|_| {
                let (budgets, polled) = (Rc::clone(&budgets), Rc::clone(&polled));
                let work = async move { polled.set(polled.get() + 1) };
                spawn_local(async move { budgets.take(1, pin!(work)).await })
            });
            let connections: Vec<_> = connections.collect();
            // All connections run once, in their order, before this task runs again.
            yield_now().await;
            let first = usize::from(POLLS_MAX);
            assert_eq!(polled.get(), first);
            connections[first..99].iter().for_each(|task| task.abort());
            for _ in 0..50 {
                yield_now().await;
            }
            assert_eq!(polled.get(), first + 1, "the last connection is polled");
        });
    }

    #[test]
    fn one_client_alone_has_no_limit() {
        let budgets = PollBudgets::new(&Rc::default());
        assert!((0..1000).all(|_| !budgets.has_had_its_polls(7) && !budgets.has_had_its_polls(0)));
        assert!(!budgets.has_had_its_polls(8), "a second client");
        assert!(budgets.has_had_its_polls(7) && !budgets.has_had_its_polls(0));
        budgets.next();
        assert!(
            (0..POLLS_MAX).all(|_| !budgets.has_had_its_polls(7)) && budgets.has_had_its_polls(7)
        );
        (0..ALONE).for_each(|_| budgets.next());
        assert!(
            (0..1000).all(|_| !budgets.has_had_its_polls(7)),
            "alone again"
        );
    }
}
