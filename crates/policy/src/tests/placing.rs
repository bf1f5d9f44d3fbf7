//! Tests of locality buffers: the published rule and the maximum age.

use std::collections::HashMap;
use std::time::Duration;

use foxy_base::{MonoTime, Rng};

use crate::*;

fn at(ms: u64) -> MonoTime {
    MonoTime(ms * 1_000_000)
}

fn buffers(buffers: u32) -> LocalityBuffers {
    LocalityBuffers::new(LocalityConfig {
        buffers,
        buffer_bytes: 100,
        age_max: Duration::from_secs(2),
    })
}

#[test]
fn a_group_keeps_its_buffer_until_it_is_the_victim() {
    let mut all = buffers(2);
    let a = all.place(GroupId(1), 10, at(0));
    let b = all.place(GroupId(2), 10, at(1));
    assert!(a.buffer != b.buffer && a.flush_before.is_none() && !a.flush_after);
    assert_eq!(all.place(GroupId(1), 10, at(2)).buffer, a.buffer);
    // Group 2 is the least recently used group: its buffer is written and bound to group 3.
    let c = all.place(GroupId(3), 10, at(3));
    assert_eq!((c.buffer, c.flush_before), (b.buffer, Some(b.buffer)));
    assert_eq!((all.used(a.buffer), all.used(b.buffer)), (20, 10));
    assert_eq!(all.place(GroupId(1), 5, at(4)).flush_before, None);
}

#[test]
fn full_buffers_are_written_and_stay_bound() {
    let mut all = buffers(2);
    let first = all.place(GroupId(1), 60, at(0));
    let second = all.place(GroupId(1), 60, at(1));
    assert_eq!(second.flush_before, Some(first.buffer));
    assert!(!second.flush_after);
    let third = all.place(GroupId(1), 40, at(2));
    assert!(third.flush_after && third.flush_before.is_none());
    let large = all.place(GroupId(1), 1_000, at(3));
    assert!(large.flush_after && large.flush_before.is_none());
    assert_eq!(large.buffer, first.buffer);
    assert_eq!(all.used_total(), 0);
}

#[test]
fn old_buffers_expire_oldest_first() {
    let mut all = buffers(3);
    let a = all.place(GroupId(1), 10, at(0)).buffer;
    let b = all.place(GroupId(2), 10, at(500)).buffer;
    let _ = all.place(GroupId(1), 10, at(1900));
    assert_eq!(all.next_expiry(), Some(at(2000)));
    assert_eq!(all.expire(at(1999)), None);
    assert_eq!(all.expire(at(2600)), Some(a));
    assert_eq!(all.expire(at(2600)), Some(b));
    assert_eq!((all.expire(at(9000)), all.next_expiry()), (None, None));
}

#[test]
fn no_byte_is_lost_and_no_buffer_overflows() {
    let (mut all, mut rng) = (buffers(4), Rng::new(11));
    let mut held: HashMap<BufferId, (GroupId, u64)> = HashMap::new();
    for now in 0..20_000 {
        let (group, bytes) = (GroupId(rng.below(12)), 1 + rng.below(150));
        let place = all.place(group, bytes, at(now));
        if let Some(flushed) = place.flush_before {
            assert!(held.remove(&flushed).is_some_and(|(_, bytes)| bytes > 0));
        }
        let (owner, sum) = held.entry(place.buffer).or_insert((group, 0));
        *sum += bytes;
        assert_eq!(*owner, group, "one group in a buffer");
        assert!(*sum <= 100 || *sum == bytes, "{sum}");
        if place.flush_after {
            held.remove(&place.buffer);
        }
        while let Some(old) = all.expire(at(now)) {
            assert!(held.remove(&old).is_some());
        }
        assert_eq!(all.used_total(), held.values().map(|(_, b)| b).sum::<u64>());
    }
    while let Some(rest) = all.flush_any() {
        assert!(held.remove(&rest).is_some());
    }
    assert!(held.is_empty());
}
