//! The turns of long answers: answers with a body of more than 64 KiB, which have a reservation in the
//! kernel's send buffers. Without turns, a worker would send a piece to each of a thousand clients of a large
//! object before it polls the task of another request.
//!
//! A long answer needs a grant for each [`GRANT`] bytes. In each round (see `poll_budgets`), a worker gives
//! only a few grants. The other long answers wait for later rounds. Short answers need no grant.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::round_queue::RoundQueue;

/// Number of bytes that an answer may send with one grant.
pub(crate) const GRANT: usize = 128 << 10;
/// Number of grants in one turn. During its turn, an answer gets its grants before the answers whose turn has
/// not begun. So only a few answers are under way. Otherwise the bytes of all clients would be in the kernel
/// at the same time, and no longer in the processor's cache when the clients read them.
const TURN: u8 = 8;
/// Smallest and largest number of grants in a round. With a larger smallest number, long answers would get
/// more of the time than connections whose polls have a limit (see `POLLS_MAX` in `poll_budgets`).
const GRANTS: (usize, usize) = (2, 128);
/// Number of polls of connections in a round for which the next round has one grant, within the limits of
/// [`GRANTS`]. Sending the bytes of a grant takes several times as long as a poll. So long answers get about
/// half of the time.
const POLLS: usize = 6;

/// The long answers of one worker.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Number of grants that are left in this round.
    left: Cell<usize>,
    /// Answers that wait for a grant, and whose turn has begun.
    begun: RefCell<RoundQueue>,
    /// Answers that wait for a grant, and whose turn has not begun.
    others: RefCell<RoundQueue>,
    /// Wakes the task that ends rounds.
    ends: RefCell<Option<Waker>>,
}

/// The turn of one answer.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Number of bytes that the answer may still send with its grant.
    bytes: Cell<usize>,
    /// Number of grants that are left of the turn.
    grants: Cell<u8>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            left: Cell::new(GRANTS.0),
            begun: RefCell::default(),
            others: RefCell::default(),
            ends: RefCell::default(),
        }
    }
}

impl Turns {
    /// Takes a grant that is left in this round. Returns false if none is left, or if other answers wait.
    pub(crate) fn take(&self, turn: &Turn) -> bool {
        let left = self.left.get();
        let takes = left > 0 && !self.has_waiting();
        if takes {
            self.left.set(left - 1);
            turn.begin_grant();
        }
        takes
    }

    /// Waits for a grant. If the future is dropped, its place in the queue uses up one grant of a later
    /// round.
    pub(crate) async fn wait(&self, turn: &Turn) {
        let queue = match turn.grants.get() {
            0 => &self.others,
            _ => &self.begun,
        };
        let mut number = 0;
        poll_fn(|cx| {
            let mut queue = queue.borrow_mut();
            if number > 0 && queue.has_left(number) {
                return Poll::Ready(());
            }
            queue.enter(&mut number, cx.waker());
            self.ends.take().into_iter().for_each(Waker::wake);
            Poll::Pending
        })
        .await;
        turn.begin_grant();
    }

    /// Returns true if answers wait for the next round. Otherwise `waker` is woken when one begins to wait.
    pub(crate) fn poll_waiting(&self, waker: &Waker) -> bool {
        let waits = self.has_waiting();
        if !waits {
            self.ends.replace(Some(waker.clone()));
        }
        waits
    }

    fn has_waiting(&self) -> bool {
        let queues = [&self.begun, &self.others];
        queues.iter().any(|queue| !queue.borrow().is_empty())
    }

    /// Begins a round. `polls` is the number of polls of connections in the round before it.
    pub(crate) fn next(&self, polls: usize) {
        let (least, most) = GRANTS;
        let grants = (polls / POLLS).clamp(least, most);
        let begun = self.begun.borrow_mut().wake(grants);
        let others = self.others.borrow_mut().wake(grants - begun);
        self.left.set(grants - begun - others);
    }
}

impl Turn {
    fn begin_grant(&self) {
        self.bytes.set(GRANT);
        let left = self.grants.get().checked_sub(1);
        self.grants.set(left.unwrap_or(TURN - 1));
    }

    /// Returns the number of bytes that the answer may send. It needs a grant if this is 0.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Notes that the answer has sent bytes.
    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local, yield_now};

    use super::*;

    /// Runs answers that always want to send, for this number of rounds. Returns, for each round, the numbers
    /// of the answers in the order of their grants.
    fn grants(answers: usize, rounds: usize, polls: usize) -> Vec<Vec<usize>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        LocalSet::new().block_on(&runtime.unwrap(), async move {
            let turns = Rc::new(Turns::default());
            let granted = Rc::new(RefCell::new(Vec::new()));
            for number in 0..answers {
                let (turns, granted) = (Rc::clone(&turns), Rc::clone(&granted));
                spawn_local(async move {
                    let turn = Turn::default();
                    loop {
                        if !turns.take(&turn) {
                            turns.wait(&turn).await;
                        }
                        granted.borrow_mut().push(number);
                        turn.sent(GRANT);
                        assert_eq!(turn.bytes(), 0);
                    }
                });
            }
            let mut all = Vec::new();
            for _ in 0..rounds {
                yield_now().await;
                all.push(granted.take());
                turns.next(polls);
            }
            all
        })
    }

    #[test]
    fn a_round_has_a_few_grants_for_a_thousand_answers() {
        for (polls, wanted) in [(0, GRANTS.0), (20 * POLLS, 20), (10_000 * POLLS, GRANTS.1)] {
            let all = grants(1000, 300, polls);
            // During the first rounds, the runtime polls each answer for the first time.
            assert!(all[100..].iter().all(|round| round.len() == wanted));
        }
    }

    #[test]
    fn few_answers_are_under_way_and_each_gets_its_turn() {
        let all = grants(100, 400, 0);
        for rounds in all.chunks(usize::from(TURN)) {
            let mut under_way: Vec<_> = rounds.concat();
            under_way.sort_unstable();
            under_way.dedup();
            assert!(under_way.len() <= 2 * GRANTS.0, "{rounds:?}");
        }
        let all = all.concat();
        let count = |number| all.iter().filter(|n| **n == number).count();
        let counts = (0..100).map(count);
        let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
        assert!(
            least > 0 && most - least <= 2 * usize::from(TURN),
            "{least} to {most}"
        );
    }

    #[test]
    fn an_answer_alone_takes_grants_without_a_wait() {
        let turns = Turns::default();
        let turn = Turn::default();
        assert!((0..GRANTS.0).all(|_| turns.take(&turn)));
        assert!(!turns.take(&turn), "the grants of the round are used up");
        assert!(
            !turns.poll_waiting(Waker::noop()),
            "but it does not wait yet"
        );
        turns.next(0);
        assert!(turns.take(&turn));
        assert_eq!(turn.bytes(), GRANT);
    }

    #[test]
    fn an_answer_does_not_pass_others_that_wait() {
        let turns = Turns::default();
        let (first, second) = (Turn::default(), Turn::default());
        while turns.take(&first) {}
        let mut waits = std::pin::pin!(turns.wait(&first));
        let mut cx = std::task::Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        turns.left.set(1);
        assert!(!turns.take(&second));
        assert!(turns.poll_waiting(Waker::noop()));
        turns.next(0);
        assert!(waits.poll(&mut cx).is_ready() && turns.take(&second));
    }
}
