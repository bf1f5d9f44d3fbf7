//! Tests of the line of waiting connections. They call `look` in place of the worker's task.

use std::sync::Arc;

use foxy_base::{ManualClock, WallTime};

use super::*;
use crate::http::net::Activity;
use crate::state::ledger::Entry;
use crate::testing::{with_worker, with_worker_at};
use crate::{Event, Use};

const MEMORY: usize = 64 << 20;

/// Runs a test with a worker, and with an entry of the ledger that makes memory short.
fn while_memory_is_short(test: impl FnOnce(&Local, Entry)) {
    with_worker(MEMORY, |local| async move {
        let connections = local.proxy.ledger.take(Use::Connections, MEMORY);
        test(&local, connections);
    });
}

fn line(entrance: &Entrance, connections: usize) -> Vec<Place<'_>> {
    (0..connections).map(|_| entrance.join(true)).collect()
}

#[test]
fn ended_connections_are_counted_while_connections_wait() {
    let entrance = Entrance::default();
    entrance.leave();
    assert_eq!(entrance.free.get(), 0, "no connection waits");
    let first = entrance.join(true);
    let second = entrance.join(false);
    entrance.leave();
    entrance.leave();
    assert_eq!(entrance.free.get(), 2);
    drop(first);
    entrance.withhold(3);
    assert_eq!(entrance.free.get(), -1);
    entrance.leave();
    entrance.leave();
    assert_eq!(entrance.free.get(), 1, "two ends, one of them withheld");
    drop(second);
    assert_eq!(
        entrance.free.get(),
        0,
        "connections of the past are not kept"
    );
    entrance.withhold(1);
    assert_eq!(entrance.free.get(), 0);
}

#[test]
fn all_connections_for_which_there_is_memory_are_admitted_at_once() {
    while_memory_is_short(|local, mut connections| {
        let entrance = &local.entrance;
        let line = line(entrance, 100);
        entrance.look(local);
        assert_eq!(entrance.waiting(), 100, "memory is short");
        connections.set(MEMORY / 2 - 60 * (32 << 10));
        entrance.look(local);
        assert_eq!(entrance.waiting(), 40, "60 connections fit");
        connections.set(MEMORY / 2);
        entrance.look(local);
        assert_eq!(entrance.waiting(), 39, "memory is not over its limit");
        drop(line);
    });
}

#[test]
fn new_connections_do_not_overtake_those_that_wait() {
    while_memory_is_short(|local, connections| {
        let entrance = &local.entrance;
        let line = line(entrance, 1);
        drop(connections);
        assert!(entrance.must_wait(local), "another connection waits");
        entrance.look(local);
        assert!(!entrance.must_wait(local));
        drop(line);
    });
}

#[test]
fn connections_replace_those_that_have_ended() {
    while_memory_is_short(|local, _connections| {
        let entrance = &local.entrance;
        let line = line(entrance, 10);
        (0..3).for_each(|_| entrance.leave());
        entrance.look(local);
        assert_eq!(entrance.waiting(), 7);
        entrance.look(local);
        assert_eq!(entrance.waiting(), 7, "each ended connection counts once");
        drop(line);
    });
}

#[test]
fn after_a_second_a_few_connections_are_admitted_although_memory_is_short() {
    let clock = Arc::new(ManualClock::new(WallTime(0)));
    with_worker_at(Arc::clone(&clock) as _, MEMORY, |local| async move {
        let mut connections = local.proxy.ledger.take(Use::Connections, MEMORY);
        let entrance = &local.entrance;
        let line = line(entrance, 10);
        entrance.look(&local);
        clock.advance(OVER - LOOK);
        entrance.look(&local);
        assert_eq!(entrance.waiting(), 10);
        clock.advance(LOOK);
        entrance.look(&local);
        assert_eq!(entrance.waiting(), 10 - LATE);
        entrance.leave();
        entrance.look(&local);
        assert_eq!(entrance.waiting(), 10 - 2 * LATE, "one has ended");
        drop(line);
        // The line was empty for a moment, but memory is still short.
        let late = entrance.join(true);
        entrance.look(&local);
        assert_eq!(entrance.waiting(), 0);
        drop(late);
        // For a moment, memory is not short. So the next connection must wait for `OVER` again.
        connections.set(0);
        assert!(!entrance.must_wait(&local));
        connections.set(MEMORY);
        let late = entrance.join(true);
        entrance.look(&local);
        assert_eq!(entrance.waiting(), 1);
        drop(late);
    });
}

#[test]
fn clients_with_few_and_with_many_connections_take_turns() {
    let mut line = Line::default();
    for number in 1..=3 {
        line.few.insert(number, Waker::noop().clone());
    }
    line.many.insert(9, Waker::noop().clone());
    let mut order = Vec::new();
    loop {
        let before = line.few.len();
        if line.next().is_none() {
            break;
        }
        order.push(line.few.len() < before);
    }
    assert_eq!(
        order,
        [true, false, true, true],
        "true: from a client with few"
    );
}

#[test]
fn a_shutdown_ends_all_waits() {
    while_memory_is_short(|local, _connections| {
        let line = line(&local.entrance, 10);
        local.proxy.shutdown();
        local.entrance.look(local);
        assert_eq!(local.entrance.waiting(), 0);
        drop(line);
    });
}

#[test]
fn a_worker_admits_connections_when_memory_becomes_free() {
    with_worker(MEMORY, |local| async move {
        let connections = local.proxy.ledger.take(Use::Connections, MEMORY);
        let entering = async {
            let enter = || local.entrance.enter(&local, 1);
            tokio::join!(enter(), enter());
        };
        let release = async {
            while local.entrance.waiting() < 2 {
                tokio::task::yield_now().await;
            }
            drop(connections);
        };
        tokio::join!(entering, release);
        assert!(!local.entrance.must_wait(&local));
    });
}

#[test]
fn a_connection_that_ends_leaves_the_line() {
    while_memory_is_short(|local, _connections| {
        let line = line(&local.entrance, 2);
        assert_eq!(local.entrance.waiting(), 2);
        drop(line);
        assert_eq!(local.entrance.waiting(), 0);
    });
}

#[test]
fn idle_connections_are_closed_for_those_that_wait_also_while_others_end() {
    while_memory_is_short(|local, _connections| {
        let idle = local.sweep.watch();
        idle.set_activity(Activity::Idle);
        (0..200).for_each(|_| local.sweep.tick());
        let line = line(&local.entrance, 10);
        local.entrance.leave();
        local.entrance.look(local);
        assert_eq!(local.entrance.waiting(), 9);
        let closed = local.proxy.totals().event(Event::ConnectionsShed);
        assert_eq!(closed, 1);
        drop(line);
    });
}
