//! Tests of the ledger: limits, shares and pressure.

use super::*;
use crate::access::client_connections::Counts;

#[test]
fn reservations_stay_within_the_limit_and_come_back() {
    let ledger = Ledger::new(100, 80);
    let mut a = ledger.reserve(Use::Fills, 60).unwrap();
    assert!(ledger.reserve(Use::Fills, 1).is_none(), "the fills' share");
    let b = ledger.reserve(Use::Buffers, 40).unwrap();
    assert!(ledger.reserve(Use::Buffers, 1).is_none(), "the whole");
    assert!(
        ledger.reserve(Use::Queues, 27).is_some(),
        "answers get out, whatever fills the rest"
    );
    drop(b);
    assert_eq!((a.bytes(), ledger.used(Use::Fills)), (60, 60));
    a.shrink_to(10);
    assert!(a.grow(50) && !a.grow(1));
    drop(a);
    assert_eq!(ledger.total.load(Ordering::Relaxed), 0);
}

#[test]
fn a_quarter_of_the_memory_of_fills_is_for_shared_ones() {
    let ledger = Ledger::new(200, 100);
    let one = ledger.reserve(Use::Fills, 75).unwrap();
    assert!(ledger.reserve(Use::Fills, 1).is_none());
    let shared = ledger.reserve(Use::SharedFills, 25).unwrap();
    assert!(ledger.reserve(Use::SharedFills, 1).is_none());
    drop((one, shared));
    assert!(ledger.reserve(Use::SharedFills, 26).is_none());
}

#[test]
fn other_limits_hold_for_what_comes_next() {
    let ledger = Ledger::new(100, 80);
    let mut entry = ledger.reserve(Use::Fills, 60).unwrap();
    ledger.set_limits(40, 20);
    assert_eq!(ledger.pressure(), Pressure::Spent);
    assert!(!entry.grow(1) && ledger.reserve(Use::Buffers, 1).is_none());
    entry.shrink_to(10);
    assert!(entry.grow(5) && !entry.grow(1));
    ledger.set_limits(180, 120);
    assert!(entry.grow(75) && !entry.grow(1));
    assert_eq!(ledger.pressure(), Pressure::High);
}

#[test]
fn what_was_observed_counts_until_the_next_observation() {
    let ledger = Ledger::new(100, 100);
    let entry = ledger.take(Use::Connections, 40);
    ledger.observe(30, false);
    assert_eq!((ledger.pressure(), ledger.excess()), (Pressure::Low, 0));
    ledger.observe(90, false);
    assert_eq!((ledger.pressure(), ledger.excess()), (Pressure::Spent, 50));
    assert!(ledger.reserve(Use::Buffers, 11).is_none());
    assert!(ledger.reserve(Use::Buffers, 10).is_some());
    drop(entry);
    ledger.observe(0, false);
    assert!(ledger.reserve(Use::Buffers, 100).is_some());
}

#[test]
fn sockets_have_what_is_sent_and_half_of_what_is_received() {
    let of_64 = Use::ALL.map(|of| (of.name(), of.in_sockets(64)));
    let expected = [
        ("connections", 32),
        ("buffers", 0),
        ("queues", 64),
        ("fragments", 0),
        ("fills", 32),
        ("shared-fills", 32),
    ];
    assert_eq!(of_64, expected);
}

#[test]
fn rights_that_nobody_uses_refuse_no_work() {
    let ledger = Ledger::new(100, 100);
    let _windows = ledger.take(Use::Fills, 200);
    let connections = ledger.take(Use::Connections, 100);
    let seen = || (ledger.pressure(), ledger.is_over(), ledger.is_full());
    assert_eq!(seen(), (Pressure::Spent, true, true));
    ledger.observe(10, true);
    // The process uses little memory now. But the connections may still use all memory that was entered for
    // them. So the pressure stays high, and buffers stay small.
    assert_eq!(seen(), (Pressure::High, true, false));
    drop(connections);
    assert_eq!(seen(), (Pressure::High, false, false));
    let _buffers = ledger.take(Use::Buffers, 30);
    assert!(ledger.reserve(Use::Queues, 27).is_some());
    assert!(ledger.reserve(Use::Queues, 28).is_none());
}

#[test]
fn much_room_is_for_answers_where_the_ledger_is_not_small() {
    let limit = |max: usize, roomy| {
        let ledger = Ledger::new(max, 0);
        ledger.observe(0, roomy);
        ledger.limit(Use::Queues)
    };
    let large = SMALL_LEDGER;
    assert_eq!(limit(large, true), 2 * limit(large, false));
    assert_eq!(limit(large / 2, true), limit(large / 2, false));
}

#[test]
fn windows_and_reservations_keep_no_connection_out() {
    let ledger = Ledger::new(100, 100);
    let _windows = ledger.take(Use::Fills, 100);
    let _reservations = ledger.take(Use::Queues, 100);
    let seen = || (ledger.is_over(), ledger.is_full());
    assert_eq!(seen(), (false, false));
    let _connections = ledger.take(Use::Connections, 50);
    let _buffers = ledger.take(Use::Buffers, 25);
    assert_eq!(seen(), (false, false), "they have their three quarters");
    let _one = ledger.take(Use::Buffers, 1);
    assert_eq!(seen(), (true, false));
    assert_eq!(ledger.overfull(), 0);
    let _more = ledger.take(Use::Buffers, 24);
    assert_eq!((seen(), ledger.overfull()), ((true, true), 1));
    let _many = ledger.take(Use::Connections, 10 << 10);
    assert_eq!(ledger.overfull(), 3, "down to seven eighths");
}

#[test]
fn connections_have_half_or_what_few_of_them_need() {
    let most = |max: usize, roomy| {
        let ledger = Ledger::new(max << 20, 0);
        ledger.observe(0, roomy);
        let mut connections = ledger.empty(Use::Connections);
        (0..)
            .take_while(|mib| {
                connections.set(mib << 20);
                !ledger.is_over()
            })
            .last()
    };
    assert_eq!(most(8, false), Some(6), "three quarters");
    assert_eq!(most(16, false), Some(10), "a few");
    assert_eq!(most(32, false), Some(16), "half");
    assert_eq!(most(32, true), Some(24));
}

#[test]
fn fewer_connections_wait_where_memory_is_small() {
    let bounds = |max: usize| {
        let ledger = Ledger::new(max, 0);
        (ledger.waiting_max(2), ledger.backlog(2).0)
    };
    assert_eq!(bounds(1 << 20), (16, 128));
    assert_eq!(bounds(8 << 20), (128, 256), "most wait in the kernel");
    assert_eq!(bounds(14 << 20), (224, 448));
    assert_eq!(bounds(32 << 20), (1024, 512));
    assert_eq!(bounds(1 << 30), (32_768, 16_384));
    let ledger = Ledger::new(1 << 20, 0);
    assert!(ledger.waiting_max(256) > 0, "each of many workers accepts");
}

#[test]
fn newcomers_need_a_large_ledger() {
    let newcomers = |max: usize, workers| Ledger::new(max, 0).backlog(workers).1;
    assert_eq!(newcomers(32 << 20, 1), 0);
    assert_eq!(newcomers(64 << 20, 2), 512, "half of the backlog");
    assert_eq!(newcomers(64 << 20, 32), 64);
}

#[test]
fn connections_are_admitted_until_memory_is_short() {
    let ledger = Ledger::new(64 << 20, 0);
    let mut connections = ledger.take(Use::Connections, 31 << 20);
    assert_eq!(ledger.entrance_room(1), Some(32));
    assert_eq!(ledger.entrance_room(2), Some(16), "for each of two workers");
    connections.set(32 << 20);
    assert_eq!(
        (ledger.entrance_room(2), ledger.is_over()),
        (Some(0), false)
    );
    connections.set((32 << 20) + 1);
    assert_eq!((ledger.entrance_room(2), ledger.is_over()), (None, true));
}

#[test]
fn queues_of_the_kernel_are_short_where_memory_is() {
    let bytes = |max: usize, used: usize| {
        let ledger = Ledger::new(max, 0);
        let _entry = ledger.take(Use::Connections, used);
        (
            ledger.send_bytes() >> 10,
            ledger.receive_bytes().map(|bytes| bytes >> 10),
        )
    };
    assert_eq!(bytes(96 << 20, 0), (128, None));
    assert_eq!(bytes(10 << 20, 0), (40, Some(64)));
    assert_eq!(bytes(1 << 20, 0), (16, Some(64)));
    assert_eq!(bytes(96 << 20, 50 << 20), (32, Some(32)));
    assert_eq!(bytes(96 << 20, 90 << 20), (16, Some(16)));
}

#[test]
fn queues_give_way_to_connections_down_to_an_eighth() {
    let ledger = Ledger::new(128, 0);
    assert_eq!(ledger.limit(Use::Queues), 36);
    let mut connections = ledger.take(Use::Connections, 96);
    assert_eq!(ledger.limit(Use::Queues), 24);
    let reservation = ledger.reserve(Use::Queues, 24).unwrap();
    connections.set(200);
    assert_eq!(ledger.limit(Use::Queues), 12);
    assert!(ledger.reserve(Use::Queues, 1).is_none());
    drop(reservation);
    assert!(ledger.reserve(Use::Queues, 12).is_some());
}

#[test]
fn queues_and_fragments_have_at_least_a_quarter_each() {
    let ledger = Ledger::new(128, 0);
    let limits = || (ledger.limit(Use::Queues), ledger.limit(Use::Fragments));
    assert_eq!(limits(), (36, 48));
    let queues = ledger.reserve(Use::Queues, 36).unwrap();
    assert_eq!(limits(), (36, 12));
    drop(queues);
    let _fragments = ledger.reserve(Use::Fragments, 30).unwrap();
    assert_eq!(limits(), (18, 48));
    let _stale = ledger.take(Use::Queues, 100);
    assert_eq!(
        limits(),
        (18, 12),
        "one with a reservation gets its fragment"
    );
    let _more = ledger.take(Use::Fragments, 100);
    assert_eq!(limits(), (12, 12), "a limit of nothing would let all in");
}

#[test]
fn one_client_has_a_part_of_the_connections_where_memory_is_short() {
    let most = |max: usize, counts: fn(usize) -> Counts| {
        let ledger = Ledger::new(max, 0);
        assert!(ledger.has_share(counts(1 << 20), 2), "memory is not short");
        let _others = ledger.take(Use::Connections, max / 2);
        (0..).take_while(|n| ledger.has_share(counts(*n), 2)).last()
    };
    let served = |served| Counts { served, waiting: 0 };
    let waiting = |waiting| Counts { served: 0, waiting };
    assert_eq!(most(64 << 20, served), Some(512));
    assert_eq!(
        most(64 << 20, waiting),
        Some(2048),
        "half of those that may wait"
    );
    // With 8 MiB, one client may have 2 MiB, which is enough for 64 served connections. Both workers together
    // let 256 connections wait, and one client may have half of these waiting connections.
    assert_eq!(most(8 << 20, served), Some(64));
    assert_eq!(most(8 << 20, waiting), Some(128));
    assert_eq!(most(1 << 20, served), Some(32));
    assert_eq!(most(1 << 20, waiting), Some(32));
    let both = |waiting| Counts {
        served: 16,
        waiting,
    };
    assert_eq!(most(8 << 20, both), Some(128));
    assert_eq!(most(4 << 20, both), Some(64));
}

#[test]
fn what_is_taken_counts_also_beyond_the_limit() {
    let ledger = Ledger::new(100, 100);
    assert_eq!(ledger.pressure(), Pressure::Low);
    let mut a = ledger.take(Use::Connections, 50);
    assert_eq!(ledger.pressure(), Pressure::High);
    a.set(200);
    assert_eq!(ledger.pressure(), Pressure::Spent);
    assert!(ledger.reserve(Use::Buffers, 1).is_none());
    assert!(ledger.reserve(Use::Buffers, 0).is_some());
    a.set(20);
    assert_eq!(ledger.used(Use::Connections), 20);
    assert_eq!(ledger.pressure(), Pressure::Low);
}
