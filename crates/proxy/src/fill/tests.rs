//! Tests that drive fills (shared fetches) and their followers (requests) step by step: windows, speed
//! limits, followers that lag behind, and the ends of fills.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use foxy_base::key_hash;

use super::{
    Fill, FillMap, FillWriter, Follower, Gap, GapWanted, HeadEvent, Joined, Next, Released,
};
use crate::origin::UpstreamError;

mod aside;
mod order;

#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn start() -> (FillWriter<u16>, Follower<u16>) {
    Fill::start(key_hash(b"k"), Bytes::from_static(b"k"), key_hash(b"k"))
}

/// Starts a fill with two followers, and fills its window of 100 bytes. The first follower has received these
/// bytes.
fn start_with_full_window() -> (FillWriter<u16>, Follower<u16>, Follower<u16>) {
    let (writer, mut fast) = start();
    let slow = writer.fill().join().unwrap();
    writer.head(200, 100);
    writer.push(bytes(100));
    assert_eq!(fast.try_next(), Some(Ok(Next::Data(bytes(100)))));
    (writer, fast, slow)
}

/// Starts a fill with a request for the key `k`.
fn starts(map: &FillMap<u16>) -> (FillWriter<u16>, Follower<u16>) {
    let hash = key_hash(b"k");
    match map.join(hash, b"k", hash) {
        Joined::Starts(writer, follower) => (writer, follower),
        Joined::Follows(_) => panic!("it follows a running fill"),
    }
}

fn bytes(n: usize) -> Bytes {
    Bytes::from(vec![7; n])
}

#[test]
fn followers_wake_on_bytes_and_see_all_of_them() {
    let (writer, mut follower) = start();
    let woken = Arc::new(Counting::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    assert!(follower.poll_head(&mut cx).is_pending());
    writer.head(200, usize::MAX);
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(follower.poll_next(&mut cx).is_pending());
    writer.push(bytes(10));
    assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    assert_eq!(
        follower.poll_next(&mut cx),
        Poll::Ready(Ok(Next::Data(bytes(10))))
    );
    assert!(follower.poll_next(&mut cx).is_pending());
    writer.finish(Bytes::new());
    assert_eq!(woken.0.load(Ordering::Relaxed), 3);
    assert_eq!(
        follower.poll_next(&mut cx),
        Poll::Ready(Ok(Next::End(Bytes::new())))
    );
}

#[test]
fn a_writer_that_vanishes_fails_its_followers() {
    let (writer, mut follower) = start();
    writer.push(bytes(3));
    drop(writer);
    assert_eq!(follower.try_next(), Some(Ok(Next::Data(bytes(3)))));
    let failed = Released::Failed(UpstreamError::GivenUp);
    assert_eq!(follower.try_next(), Some(Err(failed)));
}

#[test]
fn a_fill_can_be_joined_while_every_byte_is_there() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let (writer, first) = starts(&map);
    writer.head(200, 100);
    writer.push(bytes(60));
    let Joined::Follows(second) = map.join(hash, b"k", hash) else {
        panic!("all bytes are there");
    };
    drop((first, second));
    writer.push(bytes(60));
    writer.push(bytes(60));
    // The first bytes have left the window, so the next request starts a new fill.
    let (next, _third) = starts(&map);
    map.leave(writer.fill());
    map.leave(next.fill());
    assert!(!map.contains(hash));
}

#[test]
fn requests_that_come_too_late_for_a_fill_share_the_next_one() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let (early, first) = starts(&map);
    early.head(200, 100);
    assert!(!early.fill().is_shared());
    drop(first);
    early.push(bytes(90));
    early.push(bytes(90));
    let (late, _own) = starts(&map);
    assert!(late.fill().is_shared(), "two requests want it");
    late.head(200, 100);
    assert!(matches!(map.join(hash, b"k", hash), Joined::Follows(_)));
    map.leave(early.fill());
    assert!(
        matches!(map.join(hash, b"k", hash), Joined::Follows(_)),
        "the first one leaves only its own slot"
    );
}

/// The fill turns requests away, although its window still has the first bytes.
#[test]
fn a_fill_that_turns_others_away_gives_its_slot_to_a_shared_one() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let (poor, mut first) = starts(&map);
    poor.head(200, 100);
    poor.push(bytes(10));
    poor.fill().turn_away();
    let (next, _own) = starts(&map);
    assert!(next.fill().is_shared());
    assert!(matches!(map.join(hash, b"k", hash), Joined::Follows(_)));
    assert_eq!(next.followers(), 1, "the one that has left leaves no trace");
    assert_eq!(first.try_next(), Some(Ok(Next::Data(bytes(10)))));
}

#[test]
fn a_fill_whose_first_bytes_are_stored_keeps_its_slot() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let (writer, first) = starts(&map);
    writer.head(200, 100);
    drop(first);
    writer.push(bytes(90));
    writer.readable(90);
    // The store is late: the bytes from 90 to 180 are neither in the window nor in the store.
    writer.push(bytes(90));
    writer.push(bytes(90));
    let (uncollapsed, _own) = starts(&map);
    assert!(!uncollapsed.fill().is_shared());
    writer.readable(270);
    assert!(matches!(map.join(hash, b"k", hash), Joined::Follows(_)));
}

#[test]
fn what_a_fill_has_stored_before_it_left_is_not_fetched_again() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let stored = Cell::new(false);
    let join = || map.join_unless_stored(hash, (hash, b"k"), hash, || stored.get());
    let Some(Joined::Starts(writer, _first)) = join() else {
        panic!("nothing was running or stored");
    };
    stored.set(true);
    assert!(
        matches!(join(), Some(Joined::Follows(_))),
        "a running fill counts first"
    );
    map.leave(writer.fill());
    assert!(join().is_none());
    assert!(!map.contains(hash), "no fill was left behind");
}

#[test]
fn a_key_with_the_hash_of_another_does_not_join_it() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let Joined::Starts(_first, _follower) = map.join(hash, b"k", hash) else {
        panic!("nothing was running");
    };
    let other = map.join(hash, b"of the same hash", hash);
    assert!(matches!(other, Joined::Starts(..)));
}

#[test]
fn what_a_retired_map_has_or_starts_is_not_stored() {
    let map = FillMap::<u16>::new();
    let [one, two, three] = [b"1", b"2", b"3"].map(|key| (key_hash(key), Bytes::from_static(key)));
    let Joined::Starts(before, _follower) = map.join(one.0, &one.1, one.0) else {
        panic!("nothing was running");
    };
    assert!(before.fill().is_storable());
    map.retire();
    assert!(!before.fill().is_storable());
    let Joined::Starts(joinable, follower) = map.join(two.0, &two.1, two.0) else {
        panic!("nothing was running");
    };
    let (second, _follower) = map.second(&follower);
    let (uncollapsed, _follower) = map.uncollapsed(two.0, &two.1, two.0);
    let gap = map.gap(
        &GapWanted {
            key: &three.1,
            hash: three.0,
            base: three.0,
            version: 1,
            at: 0,
            until: 100,
            unit: 100,
        },
        |_| true,
    );
    let Gap::Starts(gap, ..) = gap else {
        panic!("nothing was running");
    };
    for writer in [joinable, second, uncollapsed, gap] {
        assert!(!writer.fill().is_storable());
    }
}

#[test]
fn an_invalidated_fill_is_neither_joined_nor_stored() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let Joined::Starts(old, _follower) = map.join(hash, b"k", hash) else {
        panic!("nothing was running");
    };
    assert_eq!(old.fill().if_storable(|| 1), Some(1));
    map.invalidate(hash);
    assert_eq!(old.fill().if_storable(|| 1), None);
    let Joined::Starts(new, _follower) = map.join(hash, b"k", hash) else {
        panic!("joined an invalidated fill");
    };
    // When the old fill leaves, the new fill stays in the map.
    map.leave(old.fill());
    assert!(map.contains(hash));
    assert!(new.fill().is_storable());
}

#[test]
fn a_purge_reaches_variants_and_fills_that_nobody_can_join() {
    let map = FillMap::<u16>::new();
    let base = key_hash(b"k");
    let Joined::Starts(variant, _f) = map.join(key_hash(b"k+v"), b"k+v", base) else {
        panic!("nothing was running");
    };
    let (uncollapsed, _g) = map.uncollapsed(base, b"k", base);
    map.invalidate(base);
    assert!(!variant.fill().is_storable() && !uncollapsed.fill().is_storable());
    map.leave(variant.fill());
    map.leave(uncollapsed.fill());
    assert!(map.of(base).is_empty());
}

#[test]
fn interim_answers_go_to_the_leader_only() {
    let (writer, mut leader) = start();
    let mut other = writer.fill().join().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    writer.interim(Bytes::from_static(b"103"));
    assert!(matches!(
        leader.poll_head(&mut cx),
        Poll::Ready(Ok(HeadEvent::Interim(_)))
    ));
    assert!(other.poll_head(&mut cx).is_pending());
    assert!(leader.own().is_some() && other.own().is_none());
}

#[test]
fn the_first_head_of_several_fetches_serves_the_whole_crowd() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let Joined::Starts(silent, mut leader) = map.join(hash, b"k", hash) else {
        panic!("nothing was running");
    };
    let Joined::Follows(mut waits) = map.join(hash, b"k", hash) else {
        panic!("one is running");
    };
    let (second, _own) = map.second(&waits);
    assert!(second.fill().has_rivals());
    second.head(200, usize::MAX);
    map.prefer(second.fill(), true);
    let mut cx = Context::from_waker(Waker::noop());
    for follower in [&mut leader, &mut waits] {
        let moved = matches!(
            follower.poll_head(&mut cx),
            Poll::Ready(Err(Released::Elsewhere))
        );
        assert!(moved);
    }
    let Joined::Follows(other) = map.join(hash, b"k", hash) else {
        panic!("the second one has a head");
    };
    assert_eq!(other.head().as_deref(), Some(&200));
    silent.head(200, usize::MAX);
}

#[test]
fn a_first_head_that_is_for_one_request_alone_is_not_joined() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let Joined::Starts(_silent, leader) = map.join(hash, b"k", hash) else {
        panic!("nothing was running");
    };
    let (second, _own) = map.second(&leader);
    second.head(200, usize::MAX);
    map.prefer(second.fill(), false);
    assert!(matches!(map.join(hash, b"k", hash), Joined::Starts(..)));
}

#[tokio::test(start_paused = true)]
async fn the_slowest_follower_paces_until_it_lags() {
    let (writer, mut fast, mut slow) = start_with_full_window();
    let lag = Duration::from_secs(2);
    let waited = tokio::time::timeout(Duration::from_secs(1), writer.room(lag)).await;
    assert!(
        waited.is_err(),
        "no room while the slow one has read nothing"
    );
    writer.room(lag).await;
    assert_eq!(slow.try_next(), Some(Err(Released::Lagged)));
    assert_eq!(slow.position(), 0, "it knows where to go on");
    for _ in 0..3 {
        writer.push(bytes(100));
        assert_eq!(fast.try_next(), Some(Ok(Next::Data(bytes(100)))));
        let room = tokio::time::timeout(Duration::from_millis(1), writer.room(lag)).await;
        assert!(room.is_ok(), "a released follower holds nobody back");
    }
    assert_eq!(writer.followers(), 2, "it follows until it leaves");
}

#[tokio::test(start_paused = true)]
async fn a_single_slow_follower_paces_and_is_not_released() {
    let (writer, mut slow) = start();
    writer.head(200, 100);
    writer.push(bytes(100));
    let waited = tokio::time::timeout(Duration::from_secs(60), writer.room(Duration::from_secs(2)));
    assert!(waited.await.is_err());
    assert_eq!(slow.try_next(), Some(Ok(Next::Data(bytes(100)))));
    writer.room(Duration::from_secs(2)).await;
}

#[test]
fn a_late_follower_reads_back_what_is_stored_and_catches_up() {
    let map = FillMap::<u16>::new();
    let hash = key_hash(b"k");
    let Joined::Starts(writer, mut first) = map.join(hash, b"k", hash) else {
        panic!("nothing was running");
    };
    writer.head(200, 10);
    for offset in [100, 200] {
        writer.push(bytes(100));
        writer.readable(offset);
        // A follower within the window does not read from the store. So the window keeps each byte until this
        // follower has received it.
        assert_eq!(first.try_next(), Some(Ok(Next::Data(bytes(100)))));
    }
    writer.push(bytes(50));
    let Joined::Follows(mut late) = map.join(hash, b"k", hash) else {
        panic!("what has left the window can be read back");
    };
    assert_eq!(late.try_next(), Some(Err(Released::Lagged)));
    assert!(!late.resume(150) && late.resume(200));
    assert_eq!(late.try_next(), Some(Ok(Next::Data(bytes(50)))));
    assert_eq!(late.try_next(), None);
}

fn wanted(key: &Bytes, at: u64, until: u64) -> GapWanted<'_> {
    GapWanted {
        key,
        hash: key_hash(b"k"),
        base: key_hash(b"k"),
        version: 1,
        at,
        until,
        unit: 10,
    }
}

#[test]
fn bytes_of_one_version_are_not_taken_for_those_of_another() {
    let (map, key) = (FillMap::<u16>::new(), Bytes::from_static(b"k"));
    let old = wanted(&key, 0, 100);
    let new = GapWanted { version: 2, ..old };
    let Gap::Starts(_old, ..) = map.gap(&old, |_| true) else {
        panic!("nothing was running");
    };
    assert!(map.bringing(&old).is_some() && map.bringing(&new).is_none());
    assert!(matches!(map.gap(&new, |_| true), Gap::Starts(..)));
}

#[test]
fn gaps_are_whole_fragments_and_no_byte_has_two_fills() {
    let (map, key) = (FillMap::<u16>::new(), Bytes::from_static(b"k"));
    // Fragment 5 is stored.
    let absent = |n: u32| n != 5;
    let Gap::Starts(first, _a, cover) = map.gap(&wanted(&key, 33, 99), absent) else {
        panic!("nothing was running");
    };
    assert_eq!((cover.start, cover.end), (30, 50));
    let Gap::Follows(mut same) = map.gap(&wanted(&key, 47, 48), absent) else {
        panic!("the first one brings it");
    };
    first.push(bytes(20));
    assert_eq!(same.try_next(), Some(Ok(Next::Data(bytes(3)))));
    let Gap::Starts(_second, _b, cover) = map.gap(&wanted(&key, 5, 99), absent) else {
        panic!("before the first one");
    };
    assert_eq!((cover.start, cover.end), (0, 30));
    first.stop();
    let at_end = map.gap(&wanted(&key, 50, 60), absent);
    assert!(matches!(at_end, Gap::Starts(..)), "it brings no more");
}

#[test]
fn a_reader_far_ahead_takes_the_rest_over() {
    let (map, key) = (FillMap::<u16>::new(), Bytes::from_static(b"k"));
    let far = 100 << 20;
    let Gap::Starts(whole, _a, _) = map.gap(&wanted(&key, 0, 2 * far), |_| true) else {
        panic!("nothing was running");
    };
    let Gap::Starts(_rest, _b, cover) = map.gap(&wanted(&key, far, far + 5), |_| true) else {
        panic!("too far to wait for");
    };
    assert_eq!((cover.start, cover.end), (far, far + 10));
    assert!(!whole.is_overtaken());
    whole.push(bytes(far as usize));
    assert!(whole.is_overtaken());
}
