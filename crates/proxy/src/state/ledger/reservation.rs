//! Reservations of memory in the kernel's send buffers. An answer with a reservation may have bytes in these
//! buffers: bytes that are not sent yet, and bytes that the client has not acknowledged yet.
//!
//! All reservations have the same share of the limit for queues, and their sockets are limited to this share.
//! A client that is far away needs many bytes in flight to be fast, and a small memory is enough for only a
//! few such clients. So the share falls when reservations are added, and rises when reservations are
//! released.
//!
//! If there is no memory for a reservation, the answer waits. The answers of all workers wait in one line
//! (queue).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use foxy_base::MonoTime;
use parking_lot::Mutex;

use super::{Entry, Ledger, Pressure, Use};

/// Smallest size of a reservation, in bytes: two packets of a loopback interface. If only one packet were in
/// flight, each packet would wait for an acknowledgement that the client's kernel delays.
const RESERVATION_MIN: usize = 128 << 10;
/// Largest size of a reservation, in bytes. As long as each reservation of a connection had at least three
/// quarters of this size, Foxy does not limit the connection's send queue. The kernel then chooses the length
/// of the queue.
pub(crate) const RESERVATION_MAX: usize = 2 << 20;
/// Memory that the kernel needs for a packet, in addition to the bytes in the packet.
const PACKET_BYTES: usize = 4 << 10;
/// Number of shares that stay free. So a new reservation need not wait until the other reservations have
/// become smaller.
const FREE_SHARES: usize = 3;

/// The reservation of one answer in the send buffers. It is released when dropped.
#[derive(Debug)]
pub(crate) struct SendReservation {
    bytes: RefCell<Entry>,
    ledger: Arc<Ledger>,
}

/// The reservations of all workers, and the line of answers that wait for a reservation.
#[derive(Debug, Default)]
pub(super) struct SendReservations {
    held: AtomicUsize,
    line: Mutex<Line>,
}

/// The answers that wait, by their numbers. The answer with the longest wait is first.
#[derive(Debug, Default)]
struct Line {
    waiting: BTreeMap<u64, Waits>,
    /// Reservations for answers that have left the line, and whose tasks have not run since then.
    granted: BTreeMap<u64, SendReservation>,
    last: u64,
}

#[derive(Debug)]
struct Waits {
    since: MonoTime,
    waker: Option<Waker>,
}

impl Line {
    fn is_first(&self, number: u64) -> bool {
        let first = self.waiting.first_key_value();
        first.is_some_and(|(first, _)| *first == number)
    }
}

impl Ledger {
    /// Makes a reservation of the smallest size, and enters its bytes in the ledger. Returns `None` if there
    /// is too little memory, or if other answers wait already.
    pub(crate) fn send_reservation(self: &Arc<Self>) -> Option<Rc<SendReservation>> {
        let line = self.reservations.line.lock();
        let reservation = line.waiting.is_empty().then(|| self.enter_reservation())?;
        reservation.map(Rc::new)
    }

    /// Gives reservations to the first answers in the line, as long as there is memory. All these answers get
    /// their reservations in this call, before their tasks run. If each task woke the next one instead, a
    /// busy worker would need seconds for a long line, and memory would stay free meanwhile.
    fn grant(self: &Arc<Self>) {
        let mut line = self.reservations.line.lock();
        while let Some(first) = line.waiting.first_entry() {
            let Some(reservation) = self.enter_reservation() else {
                return;
            };
            let (number, waits) = first.remove_entry();
            line.granted.insert(number, reservation);
            if let Some(waker) = waits.waker {
                waker.wake();
            }
        }
    }

    /// True if answers wait for a reservation.
    pub(crate) fn has_line(&self) -> bool {
        !self.reservations.line.lock().waiting.is_empty()
    }

    /// Returns the time that the first answer in the line has waited. Returns zero if the line is empty.
    pub(crate) fn longest_wait(&self, now: MonoTime) -> Duration {
        let line = self.reservations.line.lock();
        let first = line.waiting.first_key_value();
        first.map_or(Duration::ZERO, |(_, waits)| now.since(waits.since))
    }

    /// Adds an answer to the line, behind all answers that wait already. Its wait begins at `now`.
    pub(crate) fn wait_for_reservation(self: &Arc<Self>, now: MonoTime) -> Waiting {
        let mut line = self.reservations.line.lock();
        line.last += 1;
        let number = line.last;
        let waits = Waits {
            since: now,
            waker: None,
        };
        line.waiting.insert(number, waits);
        Waiting {
            ledger: Arc::clone(self),
            number,
        }
    }

    fn enter_reservation(self: &Arc<Self>) -> Option<SendReservation> {
        let least = RESERVATION_MIN.min(self.limit(Use::Queues));
        let bytes = self.reserve(Use::Queues, least)?;
        self.reservations.held.fetch_add(1, Ordering::Relaxed);
        Some(SendReservation {
            bytes: RefCell::new(bytes),
            ledger: Arc::clone(self),
        })
    }

    /// Returns the bytes that each reservation may have now.
    fn reservation_share(&self) -> usize {
        match self.pressure() {
            Pressure::Low => {
                let shares = self.reservations.held.load(Ordering::Relaxed) + FREE_SHARES;
                (self.limit(Use::Queues) / shares).clamp(RESERVATION_MIN, RESERVATION_MAX)
            }
            _ => RESERVATION_MIN,
        }
    }
}

impl SendReservation {
    /// Grows or shrinks the reservation to its present share. Returns its new size in bytes.
    pub(crate) fn fit(&self) -> usize {
        let mut bytes = self.bytes.borrow_mut();
        let share = self.ledger.reservation_share();
        match share.checked_sub(bytes.bytes()) {
            Some(more) => _ = bytes.grow(more),
            None => {
                bytes.shrink_to(share);
                self.ledger.grant();
            }
        }
        bytes.bytes()
    }

    /// Reduces the reservation to the memory that a queue of `kept` bytes needs. So clients that do not read
    /// leave memory for clients that read. [`fit`](Self::fit) makes the reservation larger again.
    pub(crate) fn keep(&self, kept: usize) {
        let needed = kept + kept / 4 + PACKET_BYTES;
        self.bytes.borrow_mut().shrink_to(needed);
        self.ledger.grant();
    }
}

impl Drop for SendReservation {
    fn drop(&mut self) {
        self.bytes.get_mut().shrink_to(0);
        self.ledger
            .reservations
            .held
            .fetch_sub(1, Ordering::Relaxed);
        self.ledger.grant();
    }
}

/// An answer that waits for a reservation. When it is dropped, the answer leaves the line.
#[derive(Debug)]
pub(crate) struct Waiting {
    ledger: Arc<Ledger>,
    number: u64,
}

impl Waiting {
    /// True if no other answer has waited longer.
    pub(crate) fn is_first(&self) -> bool {
        let line = self.ledger.reservations.line.lock();
        line.is_first(self.number)
    }

    /// Returns the reservation if this answer has got it. The release of a reservation gives its memory to
    /// the first answers in the line, but the release of other memory does not. So the first answer in the line
    /// must call this function again when other memory may have been released.
    pub(crate) fn poll_reservation(&self, cx: &Context<'_>) -> Poll<Rc<SendReservation>> {
        let mut line = self.ledger.reservations.line.lock();
        if line.is_first(self.number) {
            drop(line);
            self.ledger.grant();
            line = self.ledger.reservations.line.lock();
        }
        if let Some(reservation) = line.granted.remove(&self.number) {
            return Poll::Ready(Rc::new(reservation));
        }
        // The waker is stored under the lock, so that a reservation that is granted meanwhile wakes this task.
        if let Some(waits) = line.waiting.get_mut(&self.number) {
            waits.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut line = self.ledger.reservations.line.lock();
        line.waiting.remove(&self.number);
        let unused = line.granted.remove(&self.number);
        drop(line);
        // The lock is released first, because the drop of a reservation takes the lock to give the memory to
        // the next answers.
        drop(unused);
        // There may also be memory for a reservation of the next answer in the line.
        self.ledger.grant();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns a ledger that is large enough for two reservations of the smallest size, but not for three.
    fn for_two() -> Arc<Ledger> {
        Ledger::new(1 << 20, 0)
    }

    #[test]
    fn reservations_have_equal_shares_of_the_limit() {
        let ledger = Ledger::new(64 << 20, 0);
        let limit = ledger.limit(Use::Queues);
        let first = ledger.send_reservation().unwrap();
        assert_eq!(first.fit(), RESERVATION_MAX, "alone");
        let others: Vec<_> = (0..37)
            .map(|_| ledger.send_reservation().unwrap())
            .collect();
        let share = limit / (38 + FREE_SHARES);
        assert_eq!(first.fit(), share);
        assert!(others.iter().all(|reservation| reservation.fit() == share));
        assert_eq!(ledger.used(Use::Queues), 38 * share);
        drop(others);
        assert_eq!(first.fit(), RESERVATION_MAX);
        let _others = ledger.take(Use::Connections, 40 << 20);
        assert_eq!(first.fit(), RESERVATION_MIN, "memory is short");
        drop(first);
        assert_eq!(ledger.used(Use::Queues), 0);
    }

    #[test]
    fn a_reservation_is_never_less_than_a_packet_needs() {
        let ledger = for_two();
        let reservations = [
            ledger.send_reservation().unwrap(),
            ledger.send_reservation().unwrap(),
        ];
        assert!(ledger.send_reservation().is_none());
        assert_eq!(
            reservations.map(|reservation| reservation.fit()),
            [RESERVATION_MIN; 2]
        );
    }

    #[test]
    fn a_reservation_can_be_reduced_to_the_memory_of_its_queue() {
        let ledger = for_two();
        let (one, two) = (
            ledger.send_reservation().unwrap(),
            ledger.send_reservation().unwrap(),
        );
        let wakes = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let third = ledger.wait_for_reservation(MonoTime(0));
        assert!(third.poll_reservation(&cx).is_pending());
        one.keep(RESERVATION_MIN);
        assert_eq!(
            ledger.used(Use::Queues),
            2 * RESERVATION_MIN,
            "all is needed"
        );
        one.keep(1000);
        let kept = 1250 + PACKET_BYTES;
        let of_third = RESERVATION_MIN;
        assert_eq!(ledger.used(Use::Queues), RESERVATION_MIN + kept + of_third);
        assert!(wakes.0.load(Ordering::Relaxed) > 0);
        let Poll::Ready(other) = third.poll_reservation(&cx) else {
            panic!("there is room now");
        };
        assert_eq!(one.fit(), kept, "the others need their reservations");
        drop((other, two));
        assert_eq!(one.fit(), RESERVATION_MIN);
    }

    #[test]
    fn those_that_wait_get_reservations_in_their_order() {
        let ledger = for_two();
        let (one, two) = (
            ledger.send_reservation().unwrap(),
            ledger.send_reservation().unwrap(),
        );
        let wakes = [(); 3].map(|()| Arc::new(Counting::default()));
        let wakers = wakes.each_ref().map(|of| Waker::from(Arc::clone(of)));
        let cx = |n: usize| Context::from_waker(&wakers[n]);
        let woken = || wakes.each_ref().map(|of| of.0.load(Ordering::Relaxed));
        let at = |nanos| ledger.wait_for_reservation(MonoTime(nanos));
        let (first, second, third) = (at(10), at(20), at(30));
        let all = [&first, &second, &third].into_iter().enumerate();
        for (n, waiting) in all {
            assert!(waiting.poll_reservation(&cx(n)).is_pending());
        }
        assert_eq!(ledger.longest_wait(MonoTime(50)).as_nanos(), 40);
        drop(one);
        assert_eq!(woken(), [1, 0, 0]);
        assert!(
            second.poll_reservation(&cx(1)).is_pending(),
            "it came later"
        );
        assert!(ledger.send_reservation().is_none(), "others wait already");
        let Poll::Ready(reservation) = first.poll_reservation(&cx(0)) else {
            panic!("it is its turn");
        };
        drop(first);
        assert!(second.poll_reservation(&cx(1)).is_pending());
        drop(second);
        assert_eq!(woken(), [1, 0, 0], "there is no memory for others");
        drop((reservation, two));
        assert!(third.poll_reservation(&cx(2)).is_ready());
        drop(third);
        assert_eq!(ledger.longest_wait(MonoTime(50)), Duration::ZERO);
        assert!(ledger.send_reservation().is_some());
    }

    #[test]
    fn memory_for_several_reservations_goes_to_several_answers_at_once() {
        let ledger = for_two();
        let held = ledger.take(Use::Queues, 2 * RESERVATION_MIN);
        let wakes = [(); 4].map(|()| Arc::new(Counting::default()));
        let waiting = [10, 20, 30, 40].map(|at| ledger.wait_for_reservation(MonoTime(at)));
        let poll = |n: usize| {
            let waker = Waker::from(Arc::clone(&wakes[n]));
            waiting[n].poll_reservation(&Context::from_waker(&waker))
        };
        assert!((0..4).all(|n| poll(n).is_pending()));
        drop(held);
        let Poll::Ready(first) = poll(0) else {
            panic!("it is the first, and there is memory");
        };
        // The second answer has got a reservation too, although it was not polled again.
        let woken = || wakes.each_ref().map(|of| of.0.load(Ordering::Relaxed));
        assert_eq!(woken()[1..], [1, 0, 0]);
        assert_eq!(
            ledger.longest_wait(MonoTime(50)).as_nanos(),
            20,
            "the third waits"
        );
        assert_eq!(ledger.used(Use::Queues), 2 * RESERVATION_MIN);
        drop(first);
        assert_eq!(woken()[1..], [1, 1, 0]);
        assert!(waiting[3].is_first() && !waiting[1].is_first());
    }

    #[test]
    fn an_answer_that_leaves_the_line_leaves_memory_to_the_next() {
        let ledger = for_two();
        let held = ledger.take(Use::Queues, 2 * RESERVATION_MIN);
        let first = ledger.wait_for_reservation(MonoTime(10));
        let second = ledger.wait_for_reservation(MonoTime(20));
        let wakes = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&wakes));
        assert!(
            second
                .poll_reservation(&Context::from_waker(&waker))
                .is_pending()
        );
        drop(held);
        drop(first);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_reservation_of_an_answer_that_ends_before_it_runs_goes_to_the_next() {
        let ledger = for_two();
        let held = [(); 2].map(|()| ledger.send_reservation().unwrap());
        let [first, second, third] =
            [10, 20, 30].map(|at| ledger.wait_for_reservation(MonoTime(at)));
        let [one, _two] = held;
        drop(one);
        drop(first);
        let cx = Context::from_waker(Waker::noop());
        assert!(third.poll_reservation(&cx).is_pending());
        assert!(second.poll_reservation(&cx).is_ready());
    }
}
