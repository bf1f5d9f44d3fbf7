//! Tests of followers that stand aside. They read from the store, and the fill waits for them only if bytes
//! that are not stored fill the window.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;

use super::{Counting, bytes, start, start_with_full_window};
use crate::fill::{Next, Released};

#[tokio::test(start_paused = true)]
async fn a_follower_that_stands_aside_holds_nobody_up() {
    let (writer, _fast, mut waits) = start_with_full_window();
    let woken = Arc::new(Counting::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut room = std::pin::pin!(writer.room(Duration::from_secs(2)));
    assert!(room.as_mut().poll(&mut cx).is_pending());
    waits.stand_aside(false);
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(room.poll(&mut cx).is_ready());
    assert_eq!(waits.try_next(), Some(Err(Released::Lagged)));
}

/// The bytes that are stored leave the window, and the bytes that are not stored yet stay in it.
#[tokio::test(start_paused = true)]
async fn a_follower_that_stands_aside_from_a_stored_body_misses_no_byte() {
    let (writer, mut fast, mut waits) = start_with_full_window();
    let soon = Duration::from_millis(1);
    let long = Duration::from_secs(3600);
    assert!(!waits.can_stand_aside(), "nothing is stored");
    writer.readable(100);
    assert!(waits.can_stand_aside());
    waits.stand_aside(true);
    assert_eq!(waits.is_behind(), None, "its bytes are still in the window");
    for _ in 0..3 {
        writer.room(long).await;
        writer.push(bytes(60));
        assert_eq!(fast.try_next(), Some(Ok(Next::Data(bytes(60)))));
        writer.readable(writer.pushed());
    }
    writer.push(bytes(60));
    writer.push(bytes(60));
    assert_eq!(fast.try_next(), Some(Ok(Next::Data(bytes(60)))));
    assert_eq!(fast.try_next(), Some(Ok(Next::Data(bytes(60)))));
    assert!(waits.is_behind().is_some());
    let room = tokio::time::timeout(soon, writer.room(long)).await;
    assert!(room.is_err(), "the bytes from 280 on are not stored");
    assert!(!waits.resume(0), "the store has this byte");
    let room = tokio::time::timeout(soon, writer.room(long)).await;
    assert!(room.is_err(), "the follower reads from the store");
    assert!(waits.resume(280), "the window has this byte");
    assert_eq!(waits.try_next(), Some(Ok(Next::Data(bytes(60)))));
    writer.room(long).await;
    assert_eq!(waits.try_next(), Some(Ok(Next::Data(bytes(60)))));
    assert_eq!(waits.try_next(), None);
}

/// The store refuses a fragment while a follower that needs all bytes stands aside. The fill waits for this
/// follower. If other followers wait for too long, the fill continues without this follower. A follower that
/// returns to the window in time misses no byte, and no follower receives wrong bytes.
#[tokio::test(start_paused = true)]
async fn a_follower_that_stands_aside_can_miss_bytes_that_the_store_refuses() {
    let lag = Duration::from_secs(2);
    for comes_in_time in [true, false] {
        let (writer, mut fast, mut waits) = start_with_full_window();
        writer.readable(100);
        waits.stand_aside(true);
        writer.room(lag).await;
        // From here on the store accepts no more bytes, so `readable` is not called.
        writer.push(bytes(100));
        assert_eq!(fast.try_next(), Some(Ok(Next::Data(bytes(100)))));
        let soon = tokio::time::timeout(lag / 2, writer.room(lag)).await;
        assert!(soon.is_err(), "the fill waits for the follower");
        if !comes_in_time {
            let room = tokio::time::timeout(lag * 2, writer.room(lag)).await;
            assert!(room.is_ok(), "the fill continues without the follower");
        }
        assert_eq!(
            waits.resume(100),
            comes_in_time,
            "the byte is in the window"
        );
        if comes_in_time {
            assert_eq!(waits.try_next(), Some(Ok(Next::Data(bytes(100)))));
        }
        writer.room(lag).await;
        writer.push(bytes(100));
        writer.finish(Bytes::new());
        assert!(!waits.resume(100), "neither stored nor in the window");
    }
}

/// The store has refused the last fragment of a body. The followers that stood aside get the bytes of this
/// fragment from the window after the end of the fill.
#[tokio::test(start_paused = true)]
async fn a_follower_that_stands_aside_gets_the_unstored_end_of_a_body() {
    let (writer, mut fast) = start();
    let mut waits = writer.fill().join().unwrap();
    writer.head(200, 10);
    writer.push(bytes(100));
    writer.readable(100);
    writer.push(bytes(50));
    assert_eq!(fast.try_next(), Some(Ok(Next::Data(bytes(100)))));
    assert_eq!(fast.try_next(), Some(Ok(Next::Data(bytes(50)))));
    waits.stand_aside(true);
    let soon = tokio::time::timeout(Duration::from_secs(1), writer.room(Duration::from_secs(2)));
    assert!(
        soon.await.is_err(),
        "the window keeps the bytes that are not stored"
    );
    drop(fast);
    writer.finish(Bytes::new());
    assert!(!waits.resume(0), "the store has this byte");
    assert!(waits.resume(100), "the window has this byte");
    assert_eq!(waits.try_next(), Some(Ok(Next::Data(bytes(50)))));
    assert_eq!(waits.try_next(), Some(Ok(Next::End(Bytes::new()))));
}
