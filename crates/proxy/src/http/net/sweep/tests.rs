//! Tests of deadlines, and of the connections that are closed when memory or the permitted number of
//! connections is used up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use super::*;

/// A waker that remembers whether it was woken.
#[derive(Default)]
struct Wakes(AtomicBool);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn sweep() -> Sweep {
    Sweep::new(&Ledger::new(1 << 20, 1 << 20))
}

#[test]
fn a_deadline_passes_not_before_its_time_and_at_most_two_ticks_late() {
    let sweep = sweep();
    let watch = sweep.watch();
    watch.arm(Side::Read, watch.deadline(Ticks::of(TICK * 4)));
    for _ in 0..4 {
        sweep.tick();
        assert!(!watch.expired(Side::Read));
    }
    sweep.tick();
    assert!(watch.expired(Side::Read));
    assert!(!watch.expired(Side::Write));
    watch.disarm(Side::Read);
    assert!(!watch.expired(Side::Read));
}

#[test]
fn closed_connections_are_forgotten() {
    let sweep = sweep();
    let watch = sweep.watch();
    drop(sweep.watch());
    sweep.tick();
    assert_eq!(sweep.watches.borrow().len(), 1);
    drop(watch);
}

#[test]
fn draining_ends_idle_waits_alone() {
    let sweep = sweep();
    let (idle, busy) = (sweep.watch(), sweep.watch());
    idle.set_activity(Activity::Idle);
    assert!(!idle.expired(Side::Read));
    sweep.drain();
    assert!(idle.expired(Side::Read) && !busy.expired(Side::Read));
}

#[test]
fn silence_is_shorter_where_many_wait_for_it() {
    let longest = |waiting: usize, outside: usize| {
        let sweep = sweep();
        let stalled = sweep.watch();
        stalled.set_activity(Activity::Stalled);
        let queue: Vec<_> = (0..waiting).map(|_| sweep.watch()).collect();
        queue
            .iter()
            .for_each(|watch| watch.set_activity(Activity::Queued));
        (1..=30).find(|_| {
            sweep.tick();
            sweep.shed_stalled(1, outside) == 1
        })
    };
    // The results are in ticks of a quarter of a second. Each result contains one additional tick, because a
    // deadline must not be too early.
    let inside = [0, 1, 3, 4].map(|waiting| longest(waiting, 0));
    assert_eq!(inside, [21, 9, 9, 5].map(Some));
    assert_eq!([longest(0, 1), longest(2, 2)], [9, 5].map(Some));
}

#[test]
fn clients_that_do_not_read_have_less_time_where_connections_wait_to_be_let_in() {
    let longest = |outside: usize| {
        let sweep = sweep();
        let unread = [(); 9].map(|()| sweep.watch());
        unread.iter().for_each(|w| w.set_activity(Activity::Unread));
        (1..=30).find(|_| {
            sweep.tick();
            sweep.shed(9, outside) == 9
        })
    };
    assert_eq!([0, 1, 9].map(longest), [21, 5, 5].map(Some));
    let sweep = sweep();
    let unread = sweep.watch();
    unread.set_activity(Activity::Unread);
    (0..30).for_each(|_| sweep.tick());
    assert_eq!(sweep.shed_stalled(1, 9), 0, "it holds no reservation");
}

#[test]
fn a_silent_peer_wakes_its_connection_once() {
    let sweep = sweep();
    let watch = sweep.watch();
    let wakes = Arc::new(Wakes::default());
    let is_woken = || {
        watch.register(&Waker::from(Arc::clone(&wakes)));
        sweep.tick();
        wakes.0.swap(false, Ordering::Relaxed)
    };
    assert!(!is_woken());
    watch.set_activity(Activity::Stalled);
    assert!(!is_woken() && !watch.is_silent());
    assert!(is_woken() && watch.is_silent());
    assert!(!is_woken() && watch.is_silent());
    watch.set_activity(Activity::Work);
    watch.set_activity(Activity::Stalled);
    assert!(!watch.is_silent(), "the peer has read meanwhile");
    watch.set_activity(Activity::Queued);
    assert!(!is_woken() && !is_woken() && !watch.is_silent());
}

#[test]
fn slow_heads_have_less_time_where_others_wait_to_be_let_in() {
    let longest = |activity, outside: usize| {
        let sweep = sweep();
        let slow = [sweep.watch(), sweep.watch()];
        slow.iter().for_each(|watch| watch.set_activity(activity));
        (1..=30).find(|_| {
            sweep.tick();
            sweep.shed(2, outside) == 2
        })
    };
    let heads = [0, 1, 2, 9].map(|outside| longest(Activity::Head, outside));
    assert_eq!(heads, [5, 5, 2, 2].map(Some));
    // A handshake has the same time limit while other connections wait, because a client that is far away
    // needs a round trip for it.
    assert_eq!(longest(Activity::Handshake, 9), Some(5));
}

#[test]
fn requests_that_wait_for_readers_do_not_keep_all_memory() {
    let sweep = sweep();
    let watches = [sweep.watch(), sweep.watch(), sweep.watch()];
    watches
        .iter()
        .for_each(|w| w.set_activity(Activity::Queued));
    sweep.tick();
    watches[0].set_activity(Activity::Stalled);
    watches[2].set_activity(Activity::Work);
    watches[2].set_activity(Activity::Queued);
    let first = (2..=200).find(|_| {
        sweep.tick();
        sweep.shed_queued(1) == 1
    });
    assert_eq!(first, Some(17));
    let doomed = || [0, 1, 2].map(|number: usize| watches[number].is_doomed());
    assert_eq!(
        doomed(),
        [false, true, false],
        "the oldest, of those that wait"
    );
    assert_eq!(sweep.shed_queued(9), 0);
    sweep.tick();
    assert_eq!(sweep.shed_queued(9), 1);
}

#[test]
fn the_oldest_idle_connection_makes_place_however_short_it_has_been_idle() {
    let sweep = sweep();
    let (old, new) = (sweep.watch(), sweep.watch());
    assert_eq!(sweep.shed_idle(1), 0, "both are at work");
    old.set_activity(Activity::Idle);
    assert_eq!(sweep.shed(1, 0), 0, "it may be about to send a request");
    sweep.tick();
    assert_eq!(sweep.shed_idle(0), 0);
    new.set_activity(Activity::Idle);
    assert_eq!(sweep.shed_idle(1), 1);
    assert!(old.is_doomed() && !new.is_doomed());
    assert_eq!((sweep.shed_idle(1), sweep.shed_idle(1)), (1, 0));
    // `shed_idle` also closes a connection that has become idle within the present tick.
    let next = sweep.watch();
    next.set_activity(Activity::Idle);
    assert_eq!(sweep.shed_idle(1), 1);
}

#[test]
fn the_least_needed_connections_are_closed_first() {
    let sweep = sweep();
    let watches: Vec<_> = (0..6).map(|_| sweep.watch()).collect();
    let [work, stalled, unread, head, young, old] = &watches[..] else {
        panic!("six");
    };
    stalled.set_activity(Activity::Stalled);
    unread.set_activity(Activity::Unread);
    head.set_activity(Activity::Head);
    old.set_activity(Activity::Idle);
    for _ in 0..100 {
        sweep.tick();
    }
    young.set_activity(Activity::Idle);
    (0..4).for_each(|_| sweep.tick());
    for next in [old, young, head, unread, stalled] {
        assert!(!next.expired(Side::Read));
        assert_eq!(sweep.shed(1, 0), 1);
        assert!(next.expired(Side::Read), "{next:?}");
    }
    assert_eq!(sweep.shed(1, 0), 0);
    let of_one = sweep.watch();
    of_one.set_client(7);
    of_one.set_activity(Activity::Idle);
    (0..4).for_each(|_| sweep.tick());
    assert_eq!((sweep.shed_client(8, 9), sweep.shed_client(7, 9)), (0, 1));
    assert!(!work.expired(Side::Read));
    old.set_activity(Activity::Work);
    assert!(!old.expired(Side::Read), "its request came first");
}

#[test]
fn a_search_of_a_client_that_found_no_connection_is_not_repeated_in_its_tick() {
    let sweep = sweep();
    let idle = sweep.watch();
    idle.set_activity(Activity::Idle);
    (0..4).for_each(|_| sweep.tick());
    assert_eq!(sweep.shed_client(7, 1), 0);
    idle.set_client(7);
    assert_eq!(sweep.shed_client(7, 1), 0, "the tick is not over");
    idle.set_client(8);
    assert_eq!(sweep.shed_client(8, 1), 1, "another client");
    idle.set_client(7);
    idle.set_activity(Activity::Work);
    idle.set_activity(Activity::Idle);
    (0..4).for_each(|_| sweep.tick());
    assert_eq!(sweep.shed_client(7, 1), 1);
}
