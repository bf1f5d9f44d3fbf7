//! Tests of batches of reads: their due times, their order, and the merging of reads.

use std::time::Duration;

use foxy_base::{MonoTime, Rng};

use crate::*;

fn at(ms: u64) -> MonoTime {
    MonoTime(ms * 1_000_000)
}

fn read(at: u64, len: u32) -> PendingRead<u64> {
    PendingRead { at, len, tag: at }
}

fn queue(order: ReadOrder, batch: usize, timeout_ms: u64) -> ReadQueue<u64> {
    ReadQueue::new(ReadOrderConfig {
        batch,
        timeout: Duration::from_millis(timeout_ms),
        order,
        merge_gap_bytes: 0,
        merge_max_bytes: 1 << 20,
    })
}

fn take(queue: &mut ReadQueue<u64>, positions: &[u64]) -> Vec<u64> {
    for position in positions {
        queue.push(read(*position, 1), at(0));
    }
    let mut batch = vec![read(777, 1)];
    queue.take(&mut batch);
    batch.iter().map(|r| r.tag).collect()
}

#[test]
fn a_batch_is_due_by_number_or_by_age() {
    let mut queue = queue(ReadOrder::Ascending, 3, 20);
    assert!(!queue.is_due(at(1000)) && queue.due_at().is_none());
    queue.push(read(1, 1), at(10));
    queue.push(read(2, 1), at(25));
    assert_eq!(queue.due_at(), Some(at(30)), "the oldest decides");
    assert!(!queue.is_due(at(29)) && queue.is_due(at(30)));
    queue.push(read(3, 1), at(26));
    assert!(queue.is_due(at(26)) && queue.len() == 3);
    queue.take(&mut Vec::new());
    assert!(queue.is_empty() && queue.due_at().is_none());
}

#[test]
fn without_patience_every_read_is_due_at_once() {
    let mut queue = queue(ReadOrder::Arrival, 100, 0);
    queue.push(read(1, 1), at(5));
    assert!(queue.is_due(at(5)));
}

#[test]
fn orders() {
    let positions = [5, 1, 9, 3];
    let mut arrival = queue(ReadOrder::Arrival, 4, 0);
    assert_eq!(take(&mut arrival, &positions), positions);
    let mut ascending = queue(ReadOrder::Ascending, 4, 0);
    assert_eq!(take(&mut ascending, &positions), [1, 3, 5, 9]);
    assert_eq!(take(&mut ascending, &positions), [1, 3, 5, 9]);
    let mut elevator = queue(ReadOrder::Elevator, 4, 0);
    assert_eq!(take(&mut elevator, &positions), [1, 3, 5, 9]);
    assert_eq!(take(&mut elevator, &positions), [9, 5, 3, 1]);
}

fn merged(batch: &[PendingRead<u64>], gap: u64, max: u64) -> Vec<(u64, u64, usize)> {
    merge(batch, gap, max)
        .map(|m| (m.at, m.len, m.count))
        .collect()
}

#[test]
fn neighbours_become_one_read_in_both_directions() {
    let up = [read(0, 10), read(10, 10), read(21, 9), read(100, 5)];
    assert_eq!(merged(&up, 0, 100), [(0, 20, 2), (21, 9, 1), (100, 5, 1)]);
    assert_eq!(merged(&up, 1, 100), [(0, 30, 3), (100, 5, 1)]);
    assert_eq!(merged(&up, 1, 20), [(0, 20, 2), (21, 9, 1), (100, 5, 1)]);
    let down = [read(100, 5), read(20, 10), read(10, 10), read(10, 4)];
    assert_eq!(merged(&down, 0, 100), [(100, 5, 1), (10, 20, 3)]);
    assert_eq!(merged(&[], 0, 100), []);
    let at_the_end = [read(u64::MAX - 4, 100), read(u64::MAX - 2, 100)];
    assert_eq!(merged(&at_the_end, 0, 100).len(), 1);
}

#[test]
fn every_read_is_covered_once() {
    let mut rng = Rng::new(8);
    for _ in 0..200 {
        let mut queue = queue(ReadOrder::Elevator, 1, 0);
        for _ in 0..rng.below(40) {
            queue.push(read(rng.below(2_000), 1 + rng.below(60) as u32), at(0));
        }
        let mut batch = Vec::new();
        queue.take(&mut batch);
        let (mut next, max) = (0, 80);
        for one in merge(&batch, 5, max) {
            assert_eq!(one.first, next);
            next += one.count;
            for read in &batch[one.first..next] {
                assert!(read.at >= one.at);
                assert!(read.at + u64::from(read.len) <= one.at + one.len);
            }
            assert!(one.len <= max || one.count == 1);
        }
        assert_eq!(next, batch.len());
        assert!(queue.merge(&batch).count() <= batch.len());
    }
}
