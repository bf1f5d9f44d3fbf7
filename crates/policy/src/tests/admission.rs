//! Tests of admission and of the byte budget.

use std::time::Duration;

use foxy_base::{MonoTime, Rng};

use crate::*;

fn at(ms: u64) -> MonoTime {
    MonoTime(ms * 1_000_000)
}

#[test]
fn simple_rules() {
    assert!(AdmitAll.admit(1u64, u64::MAX, at(0)).is_yes());
    let mut limit = SizeLimit { max_bytes: 100 };
    assert_eq!(limit.admit(1u64, 100, at(0)), Admit::Yes);
    assert_eq!(limit.admit(1u64, 101, at(0)), Admit::TooLarge);
    let mut second = SecondUse::new(2);
    assert_eq!(second.admit(1u64, 1, at(0)), Admit::FirstUse);
    assert_eq!(second.admit(1u64, 1, at(0)), Admit::Yes);
    for key in [1, 2, 3] {
        assert_eq!(
            second.admit(key, 1, at(0)),
            Admit::FirstUse,
            "forgotten: {key}"
        );
    }
    assert_eq!(second.admit(2, 1, at(0)), Admit::Yes);
}

#[test]
fn a_bucket_gives_its_rate_and_no_more() {
    let mut bucket = TokenBucket::new(1000, 500, at(0));
    assert!(bucket.try_take(500, at(0)) && !bucket.try_take(1, at(0)));
    assert_eq!(bucket.wait_for(1, at(0)), Some(Duration::from_millis(1)));
    assert_eq!(bucket.wait_for(501, at(0)), None, "more than it holds");
    assert!(bucket.try_take(1, at(1)) && !bucket.try_take(1, at(1)));
    assert_eq!(bucket.available(at(10_000)), 500, "the burst is the most");
    // Whatever the pattern of requests, the bucket allows at most rate x time + burst.
    let mut rng = Rng::new(3);
    let mut bucket = TokenBucket::new(777, 100, at(0));
    let (mut now, mut taken) = (0, 0);
    while now < 10_000_000_000 {
        now += rng.below(3_000_000);
        let ask = rng.below(8);
        taken += if bucket.try_take(ask, MonoTime(now)) {
            ask
        } else {
            0
        };
    }
    let most = 777 * now / 1_000_000_000 + 100;
    assert!(taken <= most && taken + 100 >= most, "{taken} of {most}");
}

#[test]
fn time_that_stands_or_steps_back_earns_nothing() {
    let mut bucket = TokenBucket::new(1000, 500, at(100));
    assert!(bucket.try_take(500, at(100)));
    assert_eq!(bucket.available(at(0)), 0);
    assert_eq!(bucket.available(at(100)), 0);
    bucket.set_rate(0, at(100));
    assert_eq!(bucket.wait_for(1, at(100)), None);
}

#[test]
fn the_filter_works_only_at_the_end_of_the_budget() {
    let (budget, credit) = (
        TokenBucket::new(0, 100, at(0)),
        TokenBucket::new(0, 30, at(0)),
    );
    let mut rule = Budgeted::new(budget, credit, SecondUse::new(100));
    assert_eq!(rule.admit(1u64, 60, at(0)), Admit::Yes);
    assert_eq!(rule.admit(2, 40, at(0)), Admit::Yes);
    assert_eq!(rule.admit(3, 20, at(0)), Admit::FirstUse);
    assert_eq!(rule.admit(3, 20, at(0)), Admit::Yes);
    assert_eq!(rule.admit(4, 20, at(0)), Admit::FirstUse);
    assert_eq!(rule.admit(4, 20, at(0)), Admit::OverBudget);
}

#[test]
fn a_ghost_is_bounded_and_forgets_the_oldest() {
    let mut ghost = Ghost::new(10);
    for key in 0..5u64 {
        ghost.insert(key, 3);
    }
    let known: Vec<u64> = (0..5).filter(|key| ghost.contains(key)).collect();
    assert_eq!(known, [2, 3, 4]);
    // After its second insertion, key 2 is the newest key. The stale entry of its first insertion does not
    // remove it.
    ghost.insert(2, 3);
    ghost.insert(9, 3);
    let known: Vec<u64> = (0..10).filter(|key| ghost.contains(key)).collect();
    assert_eq!(known, [2, 4, 9]);
    assert!(ghost.remove(&4) && !ghost.remove(&4));
    ghost.insert(7, 11);
    assert!(!ghost.contains(&7) && ghost.len() == 2);
    ghost.set_capacity(0);
    assert!(ghost.is_empty());
}

#[test]
fn frequency_counts_uses_with_and_without_asking() {
    let mut rule = Frequency::new(1000, 3);
    assert_eq!(rule.admit(1u64, 1, at(0)), Admit::FirstUse);
    assert_eq!(rule.admit(1u64, 1, at(0)), Admit::FirstUse);
    assert_eq!(rule.admit(1u64, 1, at(0)), Admit::Yes);
    rule.used(2u64);
    rule.used(2u64);
    assert_eq!(rule.admit(2u64, 1, at(0)), Admit::Yes);
    let mut second = SecondUse::new(10);
    second.used(7u64);
    assert_eq!(second.admit(7, 1, at(0)), Admit::Yes);
    assert_eq!(second.admit(8, 1, at(0)), Admit::FirstUse);
}
