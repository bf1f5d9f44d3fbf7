//! Tests of alignment, reuse and sharing of buffers. All of them except `huge` run under miri.

use super::*;

#[test]
fn buffers_are_aligned_zeroed_and_of_the_length_asked_for() {
    for len in [0, 1, 4095, 4096, 4097, 70_000] {
        let buf = AlignedBuf::new(len);
        assert_eq!(buf.len(), len);
        assert_eq!(buf.capacity(), len.next_multiple_of(PAGE));
        assert!(buf.iter().all(|b| *b == 0));
        if len > 0 {
            assert_eq!(buf.as_ptr() as usize % PAGE, 0);
        }
    }
}

#[test]
#[cfg(not(miri))]
fn huge_buffers_are_aligned_to_two_mebibytes_and_freed() {
    for _ in 0..4 {
        let mut buf = AlignedBuf::huge(3 << 20);
        assert_eq!((buf.len(), buf.capacity()), (3 << 20, 4 << 20));
        assert_eq!(buf.as_ptr() as usize % HUGE, 0);
        buf.set_len(4 << 20);
        buf.fill(7);
        assert!(buf.iter().all(|b| *b == 7));
    }
    let short = AlignedBuf::huge(16 << 10);
    assert_eq!(short.capacity(), 16 << 10, "no huge page for a short one");
}

#[test]
#[should_panic(expected = "8193 bytes in a buffer of 8192")]
fn length_beyond_capacity_is_a_mistake() {
    AlignedBuf::new(8000).set_len(8193);
}

#[test]
fn a_dropped_buffer_is_used_again_and_the_bound_holds() {
    let pool = BufPool::new(8 * PAGE);
    let first = pool.take(5000);
    let place = first.as_ptr();
    drop(first);
    assert_eq!(pool.idle_bytes(), 2 * PAGE);
    let again = pool.take(8192);
    assert_eq!((again.as_ptr(), again.len()), (place, 8192));
    assert_eq!(pool.idle_bytes(), 0);
    let many: Vec<_> = (0..20).map(|_| pool.take(4096)).collect();
    drop(many);
    assert_eq!(pool.idle_bytes(), 8 * PAGE);
}

#[test]
fn classes_cover_their_lengths_without_gaps() {
    for len in [
        1,
        4096,
        65_536,
        65_537,
        131_072,
        131_073,
        270_000,
        1 << 20,
        64 << 20,
        (64 << 20) + 1,
    ] {
        let pool = BufPool::new(usize::MAX);
        let buf = pool.take(len);
        assert!(buf.capacity() >= len, "{len}");
        let kept = buf.capacity();
        drop(buf);
        let idle = pool.idle_bytes();
        assert_eq!(idle, if len <= 64 << 20 { kept } else { 0 }, "{len}");
        let most = (len + len / 8).next_multiple_of(PAGE);
        assert!(kept <= most, "{kept} for {len}");
    }
}

#[test]
fn the_first_unused_buffer_of_a_class_takes_the_room_of_others() {
    let pool = BufPool::new(8 * PAGE);
    let small: Vec<_> = (0..8).map(|_| pool.take(PAGE)).collect();
    drop(small);
    let large = [pool.take(3 * PAGE), pool.take(3 * PAGE)];
    let places = large.each_ref().map(|buf| buf.as_ptr());
    drop(large);
    // The limit of the pool does not permit keeping the second buffer.
    assert_eq!(pool.idle_bytes(), 8 * PAGE);
    let again = [pool.take(3 * PAGE), pool.take(3 * PAGE)];
    assert_eq!(pool.idle_bytes(), 5 * PAGE);
    assert!(again.iter().any(|buf| buf.as_ptr() == places[0]));
    drop(pool.take(9 * PAGE));
    assert_eq!(pool.idle_bytes(), 5 * PAGE, "longer than all of the pool");
}

#[test]
fn shared_bytes_hold_the_buffer_until_the_last_slice_goes() {
    let pool = BufPool::new(1 << 20);
    let mut buf = pool.take(4096);
    buf.copy_from_slice(&[9; 4096]);
    let place = buf.as_ptr();
    let bytes = buf.into_bytes();
    let slice = bytes.slice(100..200);
    assert_eq!(slice.as_ptr(), place.wrapping_add(100));
    drop(bytes);
    assert_eq!((pool.idle_bytes(), slice[99]), (0, 9));
    drop(slice);
    assert_eq!(pool.idle_bytes(), 4096);
}

#[test]
fn a_buffer_crosses_threads() {
    let pool = BufPool::new(1 << 20);
    let buf = pool.take(4096);
    let sum = std::thread::spawn(move || buf.iter().map(|b| u32::from(*b)).sum::<u32>());
    assert_eq!(sum.join().ok(), Some(0));
    assert_eq!(pool.idle_bytes(), 4096);
}
