//! Tests of the order of versions: late, overlapping and outdated answers under one key.

use bytes::Bytes;
use foxy_base::key_hash;

use crate::fill::{Claim, FillMap, FillWriter, Follower, Joined, Order, Selection, Version};

/// Returns the facts about an answer without Vary. `second` is the time of its `Date` field, in seconds.
fn claim(storable: bool, second: i64) -> Claim<impl Fn(&Selection) -> bool, impl Fn(&u16) -> bool> {
    Claim {
        storable,
        selection: None,
        version: Version {
            date: Some(foxy_base::WallTime::from_secs(second)),
            ..Version::default()
        },
        same: |_: &Selection| true,
        replaces: |status: &u16| *status != 206,
    }
}

/// Starts a fill and draws its number as if the fill asked the origin. If `status` is given, followers get a
/// head with this status.
fn asked(map: &FillMap<u16>, status: Option<u16>) -> (FillWriter<u16>, Follower<u16>) {
    let hash = key_hash(b"k");
    let (writer, follower) = map.uncollapsed(hash, b"k", hash);
    map.asked(writer.fill());
    if let Some(status) = status {
        writer.head(status, usize::MAX);
    }
    (writer, follower)
}

#[test]
fn an_older_answer_does_not_replace_a_newer_one_in_any_request_order() {
    let map = FillMap::<u16>::new();
    let (streaming, _a) = asked(&map, Some(200));
    let (part, _b) = asked(&map, Some(206));
    let (late, _c) = asked(&map, None);
    let (quick, _d) = asked(&map, None);
    let (later, _e) = asked(&map, None);
    assert_eq!(map.publish(quick.fill(), claim(true, 10)), Order::Newest);
    assert!(
        !streaming.fill().is_storable(),
        "it was on its way into the store"
    );
    assert!(part.fill().is_storable() && quick.fill().is_storable());
    assert!(late.fill().is_storable(), "its head has not come yet");
    map.leave(quick.fill());
    assert_eq!(map.publish(late.fill(), claim(true, 9)), Order::Late);
    assert!(!late.fill().is_storable());
    // `later` asked the origin after `quick`. But the `Date` of its answer shows that the origin made this
    // answer before the answer of `quick`.
    assert_eq!(map.publish(later.fill(), claim(true, 9)), Order::Late);
    assert!(!later.fill().is_storable());
}

#[test]
fn answers_of_unclear_order_are_both_dropped() {
    let map = FillMap::<u16>::new();
    for late_is_asked_first in [true, false] {
        let (one, _a) = asked(&map, None);
        let (two, _b) = asked(&map, None);
        let (first, late) = match late_is_asked_first {
            true => (two, one),
            false => (one, two),
        };
        assert_eq!(map.publish(first.fill(), claim(true, 10)), Order::Newest);
        first.head(200, usize::MAX);
        assert_eq!(map.publish(late.fill(), claim(true, 10)), Order::Unclear);
        assert!(!first.fill().is_storable() && !late.fill().is_storable());
        let (after, _c) = asked(&map, None);
        assert_eq!(map.publish(after.fill(), claim(true, 10)), Order::Newest);
        for fill in [&first, &late, &after] {
            map.leave(fill.fill());
        }
    }
}

#[test]
fn a_fetch_that_was_judged_and_has_not_shown_its_head_is_ended_too() {
    let map = FillMap::<u16>::new();
    let (judged, _a) = asked(&map, None);
    let (newer, _b) = asked(&map, None);
    assert_eq!(map.publish(judged.fill(), claim(true, 10)), Order::Newest);
    assert_eq!(map.publish(newer.fill(), claim(true, 11)), Order::Newest);
    assert!(!judged.fill().is_storable());
}

#[test]
fn a_304_says_less_than_the_answer_of_another_version() {
    let validates = || Claim {
        version: Version {
            validator: Some(Bytes::from_static(b"\"old\"")),
            known_before: true,
            ..Version::default()
        },
        ..claim(true, 0)
    };
    let map = FillMap::<u16>::new();
    let (check, _a) = asked(&map, None);
    let (whole, _b) = asked(&map, None);
    assert_eq!(map.publish(whole.fill(), claim(true, 10)), Order::Newest);
    assert_eq!(map.publish(check.fill(), validates()), Order::Late);
    map.leave(whole.fill());
    map.leave(check.fill());
    let (whole, _c) = asked(&map, None);
    let (check, _d) = asked(&map, None);
    assert_eq!(map.publish(check.fill(), validates()), Order::Newest);
    assert_eq!(map.publish(whole.fill(), claim(true, 10)), Order::Newest);
}

#[test]
fn a_304_about_a_version_that_came_meanwhile_says_as_much_as_that_version() {
    let map = FillMap::<u16>::new();
    let (slow, _a) = asked(&map, None);
    let (whole, _b) = asked(&map, None);
    assert_eq!(map.publish(whole.fill(), claim(true, 11)), Order::Newest);
    for _ in 0..2 {
        let (check, _c) = asked(&map, None);
        let mut validates = claim(true, 12);
        validates.version.known_before = true;
        assert_eq!(map.publish(check.fill(), validates), Order::Newest);
        map.leave(check.fill());
    }
    assert_eq!(map.publish(slow.fill(), claim(true, 10)), Order::Late);
}

#[test]
fn an_unstorable_late_answer_ends_nothing() {
    let map = FillMap::<u16>::new();
    let (late, _a) = asked(&map, None);
    let (newer, _b) = asked(&map, None);
    assert_eq!(map.publish(newer.fill(), claim(true, 10)), Order::Newest);
    assert_ne!(map.publish(late.fill(), claim(false, 10)), Order::Newest);
    assert!(newer.fill().is_storable() && !late.fill().is_storable());
}

#[test]
fn a_later_request_does_not_wait_for_an_answer_that_is_outdated() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let Joined::Starts(slow, _a) = map.join(hash, b"k", hash) else {
        panic!("nothing was running");
    };
    map.asked(slow.fill());
    let (quick, _b) = map.uncollapsed(hash, b"k", hash);
    map.asked(quick.fill());
    assert_eq!(map.publish(quick.fill(), claim(true, 10)), Order::Newest);
    assert!(matches!(map.join(hash, b"k", hash), Joined::Starts(..)));
}

#[test]
fn a_purged_answer_is_not_offered_to_later_requests() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let Joined::Starts(first, _a) = map.join(hash, b"k", hash) else {
        panic!("nothing was running");
    };
    let Joined::Follows(waits) = map.join(hash, b"k", hash) else {
        panic!("one is running");
    };
    let (second, _b) = map.second(&waits);
    let (offered, _c) = map.uncollapsed(hash, b"k", hash);
    map.close_where(|_| true);
    map.prefer(second.fill(), true);
    map.offer(offered.fill());
    assert!(matches!(map.join(hash, b"k", hash), Joined::Starts(..)));
    first.head(200, usize::MAX);
}

#[test]
fn answers_of_other_variants_do_not_outdate_each_other() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let fills = [0, 1].map(|_| {
        let (writer, follower) = map.uncollapsed(hash, b"k", hash);
        map.asked(writer.fill());
        (writer, follower)
    });
    let variant = |values: &'static [u8]| Claim {
        storable: true,
        selection: Some((Bytes::from_static(b"l"), Bytes::from_static(values))),
        version: Version::default(),
        same: move |selection: &Selection| selection.as_ref().is_none_or(|(_, v)| v == values),
        replaces: |_: &u16| false,
    };
    assert_eq!(
        map.publish(fills[1].0.fill(), variant(b"gzip")),
        Order::Newest
    );
    assert_eq!(
        map.publish(fills[0].0.fill(), variant(b"br")),
        Order::Newest
    );
    let same = map.publish(fills[0].0.fill(), variant(b"gzip"));
    assert_eq!(same, Order::Unclear, "nothing shows which is newer");
    assert!(!fills[0].0.fill().is_storable());
}

#[test]
fn of_two_answers_of_one_version_the_fields_of_the_one_asked_for_later_stay() {
    let map = FillMap::<u16>::new();
    let same = || {
        let mut claim = claim(true, 10);
        claim.version.validator = Some(Bytes::from_static(b"\"v1\""));
        claim
    };
    let (one, _a) = asked(&map, None);
    let (two, _b) = asked(&map, None);
    assert_eq!(map.publish(two.fill(), same()), Order::Newest);
    assert_eq!(map.publish(one.fill(), same()), Order::Late);
    let (three, _c) = asked(&map, None);
    assert_eq!(map.publish(three.fill(), same()), Order::Newest);
}

#[test]
fn an_answer_among_too_many_to_remember_has_no_order() {
    let map = FillMap::<u16>::new();
    let (first, _a) = asked(&map, None);
    let mut running = Vec::new();
    let mut publish = |number: u32| {
        let (writer, follower) = asked(&map, None);
        let list = Bytes::from_static(b"accept");
        let values = Bytes::from(format!("accept={number}\n"));
        let other = Claim {
            storable: true,
            selection: Some((list, values)),
            version: Version::default(),
            same: |known: &Selection| known.is_none(),
            replaces: |_: &u16| true,
        };
        assert_eq!(map.publish(writer.fill(), other), Order::Newest);
        running.push((writer, follower));
    };
    publish(0);
    let (late, _b) = asked(&map, None);
    (1..40).for_each(&mut publish);
    // One entry now represents the answers that are no longer remembered separately. One of these answers may
    // have had the same request values as the answer of `late`.
    let stands_for_all = Claim {
        storable: true,
        selection: None,
        version: Version::default(),
        same: |known: &Selection| known.is_none(),
        replaces: |_: &u16| true,
    };
    let order = map.publish(late.fill(), stands_for_all);
    assert_eq!(order, Order::Unclear);
    assert!(first.fill().is_storable() && !late.fill().is_storable());
}
