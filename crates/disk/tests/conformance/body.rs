//! The tests that every disk must pass.

use crate::{LEN, PATIENCE, finish};
use foxy_base::Rng;
use foxy_disk::{AlignedBuf, BufPool, Disk, Op, Queue};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

type Subject = Arc<dyn Disk>;

/// A buffer of `len` bytes whose contents differ for every seed and every offset.
fn pattern(seed: u64, len: usize) -> AlignedBuf {
    let mut buf = AlignedBuf::new(len);
    let mut rng = Rng::new(seed);
    for chunk in buf.chunks_mut(8) {
        chunk.copy_from_slice(&rng.next_u64().to_le_bytes()[..chunk.len()]);
    }
    buf
}

fn write(queue: &mut dyn Queue, at: u64, data: &AlignedBuf) {
    queue.submit(Op::write(1, at, data.len(), AlignedBuf::copy_of(data)));
    finish(queue, 1).remove(0).result.unwrap();
}

fn read(queue: &mut dyn Queue, at: u64, len: usize) -> AlignedBuf {
    queue.submit(Op::read(2, at, len, AlignedBuf::new(len)));
    let done = finish(queue, 1).remove(0);
    done.result.unwrap();
    done.buf.unwrap()
}

pub(crate) fn what_is_written_is_read(disk: &Subject) {
    assert_eq!(disk.len(), LEN);
    assert!(
        matches!(disk.block_bytes(), 512 | 4096),
        "{}",
        disk.describe()
    );
    let mut queue = disk.open_queue(8).unwrap();
    let block = disk.block_bytes() as usize;
    let (small, large) = (pattern(1, block), pattern(2, 1 << 20));
    write(&mut *queue, block as u64 * 3, &small);
    write(&mut *queue, 1 << 20, &large);
    assert!(read(&mut *queue, block as u64 * 3, block)[..] == small[..]);
    assert!(read(&mut *queue, 1 << 20, 1 << 20)[..] == large[..]);
    let last = pattern(3, block);
    write(&mut *queue, LEN - block as u64, &last);
    assert!(read(&mut *queue, LEN - block as u64, block)[..] == last[..]);
    // On a new disk, bytes that were never written are zeros.
    assert!(read(&mut *queue, 2 << 20, block).iter().all(|b| *b == 0));
    queue.submit(Op::flush(9));
    let done = finish(&mut *queue, 1).remove(0);
    assert!(done.token == 9 && done.result.is_ok() && done.buf.is_none());
}

pub(crate) fn blocking_calls_take_any_range(disk: &Subject) {
    let data = pattern(4, 3 << 20);
    disk.write_at(4096, &data).unwrap();
    disk.flush().unwrap();
    for (at, len) in [
        (0, 1),
        (1, 5000),
        (511, 2),
        (4095, 4098),
        (4096 + 77, (2 << 20) - 99),
    ] {
        let mut into = vec![0xEE; len];
        disk.read_at(4096 + at as u64, &mut into).unwrap();
        assert!(into == data[at..at + len], "{len} at {at}");
    }
    disk.read_at(LEN, &mut []).unwrap();
    let refused = disk.write_at(100, &data[..4096]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let refused = disk.write_at(LEN - 4096, &data[..8192]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let refused = disk.read_at(LEN - 10, &mut [0; 11]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnexpectedEof);
    let refused = disk.read_at(u64::MAX, &mut [0; 11]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnexpectedEof);
}

pub(crate) fn blocking_and_queued_agree(disk: &Subject) {
    let mut queue = disk.open_queue(1).unwrap();
    // The slice `data[1..]` is not aligned in memory.
    let data = pattern(5, 8193);
    disk.write_at(8192, &data[1..]).unwrap();
    assert!(read(&mut *queue, 8192, 8192)[..] == data[1..]);
    let other = pattern(6, 4096);
    write(&mut *queue, 8192, &other);
    let mut into = vec![0; 4096];
    disk.read_at(8192, &mut into).unwrap();
    assert!(into == other[..]);
}

pub(crate) fn many_tokens_come_back_once_each(disk: &Subject) {
    let mut queue = disk.open_queue(32).unwrap();
    let mut seen = Vec::new();
    for batch in 0..10u64 {
        for n in 0..32 {
            let at = (batch * 32 + n) * 4096;
            queue.submit(Op::write(at, at, 4096, pattern(at, 4096)));
        }
        assert_eq!(queue.in_flight(), 32);
        seen.extend(finish(&mut *queue, 32).into_iter().map(|c| c.token));
        assert_eq!(queue.in_flight(), 0);
    }
    assert_eq!(seen, (0..320u64).map(|n| n * 4096).collect::<Vec<_>>());
    for at in seen {
        queue.submit(Op::read(at, at, 4096, AlignedBuf::new(4096)));
    }
    for done in finish(&mut *queue, 320) {
        assert!(
            done.buf.unwrap()[..] == pattern(done.token, 4096)[..],
            "{}",
            done.token
        );
    }
    let stats = queue.stats();
    assert_eq!((stats.reads, stats.writes, stats.flushes), (320, 320, 0));
    assert_eq!(
        (stats.read_bytes, stats.written_bytes),
        (320 * 4096, 320 * 4096)
    );
}

pub(crate) fn more_than_the_ring_holds(disk: &Subject) {
    let mut queue = disk.open_queue(2).unwrap();
    for n in 0..500u64 {
        let at = (n % 256) * 4096;
        queue.submit(Op::read(n, at, 4096, AlignedBuf::new(4096)));
    }
    assert_eq!(queue.in_flight(), 500);
    let tokens: Vec<_> = finish(&mut *queue, 500)
        .into_iter()
        .map(|c| c.token)
        .collect();
    assert_eq!(tokens, (0..500).collect::<Vec<_>>());
    assert!(!queue.wait(Duration::ZERO).unwrap());
}

pub(crate) fn submitting_alone_does_nothing(disk: &Subject) {
    let mut queue = disk.open_queue(4).unwrap();
    queue.submit(Op::write(1, 0, 4096, pattern(1, 4096)));
    let mut out = Vec::new();
    assert_eq!(queue.reap(&mut out), 0);
    let mut now = vec![1; 4096];
    disk.read_at(0, &mut now).unwrap();
    assert!(now.iter().all(|b| *b == 0));
    assert_eq!((queue.in_flight(), queue.stats().submit_calls), (1, 0));
    drop(queue);
    disk.read_at(0, &mut now).unwrap();
    assert!(now.iter().all(|b| *b == 0));
}

pub(crate) fn one_call_for_many(disk: &Subject) {
    let mut queue = disk.open_queue(64).unwrap();
    queue.flush_submissions().unwrap();
    assert_eq!(queue.stats().submit_calls, 0);
    for n in 0..50 {
        queue.submit(Op::read(n, n * 4096, 4096, AlignedBuf::new(4096)));
    }
    queue.flush_submissions().unwrap();
    assert_eq!(queue.stats().submit_calls, 1);
    finish(&mut *queue, 50);
    assert_eq!(queue.stats().submit_calls, 1);
}

pub(crate) fn refusals_complete_with_their_buffers(disk: &Subject) {
    let mut queue = disk.open_queue(4).unwrap();
    let buf = || pattern(7, 8192);
    queue.submit(Op::read(0, 100, 4096, buf()));
    queue.submit(Op::read(1, 0, 100, buf()));
    queue.submit(Op::read(2, 0, 0, buf()));
    queue.submit(Op::read(3, 0, 16_384, buf()));
    queue.submit(Op::write(4, 0, 12_288, buf()));
    queue.submit(Op::write(5, LEN, 4096, buf()));
    queue.submit(Op::read(6, LEN - 4096, 8192, buf()));
    queue.submit(Op::read(7, u64::MAX - 4095, 4096, buf()));
    queue.submit(Op::read(8, 0, 8192, buf()));
    let done = finish(&mut *queue, 9);
    for (n, completion) in done.iter().enumerate() {
        let expected = match n {
            6 | 7 => Some(ErrorKind::UnexpectedEof),
            8 => None,
            _ => Some(ErrorKind::InvalidInput),
        };
        let got = completion.result.as_ref().err().map(std::io::Error::kind);
        assert_eq!(got, expected, "operation {n}");
        assert_eq!(completion.buf.as_ref().unwrap().capacity(), 8192);
        let len = completion.buf.as_ref().unwrap().len();
        assert_eq!(
            len,
            if n == 4 || n == 5 || n == 8 { 8192 } else { 0 },
            "operation {n}"
        );
    }
}

pub(crate) fn reading_past_the_end(disk: &Subject) {
    let mut queue = disk.open_queue(4).unwrap();
    let end = disk.len();
    queue.submit(Op::read(0, end, 4096, AlignedBuf::new(4096)));
    queue.submit(Op::read(1, end - 4096, 4096, AlignedBuf::new(4096)));
    let done = finish(&mut *queue, 2);
    let kind = done[0].result.as_ref().unwrap_err().kind();
    assert_eq!(kind, ErrorKind::UnexpectedEof);
    assert!(done[1].result.is_ok());
}

pub(crate) fn waiting_without_work_or_news(disk: &Subject) {
    let mut queue = disk.open_queue(4).unwrap();
    // Nothing is in flight, so `wait` returns immediately.
    assert!(!queue.wait(PATIENCE).unwrap());
    queue.submit(Op::read(1, 0, 4096, AlignedBuf::new(4096)));
    // `wait` flushes staged operations, and leaves their completions for `reap`.
    assert!(queue.wait(PATIENCE).unwrap());
    assert!(queue.wait(PATIENCE).unwrap());
    let mut out = Vec::new();
    assert_eq!((queue.reap(&mut out), out.len()), (1, 1));
    assert_eq!(queue.reap(&mut out), 0);
}

pub(crate) fn dropped_with_work_in_flight(disk: &Subject) {
    let pool = BufPool::new(64 << 20);
    for round in 0..20 {
        let mut queue = disk.open_queue(16).unwrap();
        for n in 0..40u64 {
            let len = 65_536;
            queue.submit(Op::read(n, (n * 65_536) % (2 << 20), len, pool.take(len)));
        }
        if round % 2 == 0 {
            queue.flush_submissions().unwrap();
        }
        drop(queue);
    }
    // All operations have completed. No buffer is lost, and no buffer has two users.
    let all: Vec<_> = (0..40).map(|_| pool.take(65_536)).collect();
    let mut places: Vec<_> = all.iter().map(|b| b.as_ptr() as usize).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 40);
    assert_eq!(pool.idle_bytes(), 0);
}

pub(crate) fn queues_move_to_their_thread(disk: &Subject) {
    let mut queue = disk.open_queue(4).unwrap();
    let owner = std::thread::spawn(move || {
        write(&mut *queue, 0, &pattern(8, 4096));
        read(&mut *queue, 0, 4096)[..] == pattern(8, 4096)[..]
    });
    assert!(owner.join().unwrap());
}

pub(crate) fn several_queues_share_a_disk(disk: &Subject) {
    let threads: Vec<_> = (0..4u64)
        .map(|n| {
            let disk = disk.clone();
            std::thread::spawn(move || {
                let mut queue = disk.open_queue(8).unwrap();
                for round in 0..20 {
                    let (at, data) = (n << 20, pattern(n * 100 + round, 16_384));
                    write(&mut *queue, at, &data);
                    assert!(read(&mut *queue, at, 16_384)[..] == data[..]);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

pub(crate) fn random_operations_match_a_model(disk: &Subject) {
    let seed = 42;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut model = vec![0u8; LEN as usize];
    let mut queue = disk.open_queue(16).unwrap();
    let block = u64::from(disk.block_bytes());
    for round in 0..30u64 {
        // Writes of one round do not overlap: each write has its own window, a 24th of the disk.
        let count = 1 + rng.below(24);
        for n in 0..count {
            let window = LEN / 24;
            let start = (window * n).next_multiple_of(block);
            let len = (1 + rng.below(window / block - 2)) * block;
            let at = start + rng.below((window - len) / block) * block;
            let data = pattern(round * 100 + n, len as usize);
            model[at as usize..(at + len) as usize].copy_from_slice(&data);
            queue.submit(Op::write(n, at, len as usize, data));
        }
        for done in finish(&mut *queue, count as usize) {
            done.result.unwrap();
        }
        let mut asked = Vec::new();
        for n in 0..count {
            let len = (1 + rng.below(64)) * block;
            let at = rng.below((LEN - len) / block) * block;
            asked.push((at, len));
            queue.submit(Op::read(n, at, len as usize, AlignedBuf::new(len as usize)));
        }
        for (done, (at, len)) in finish(&mut *queue, asked.len()).into_iter().zip(asked) {
            done.result.unwrap();
            let expected = &model[at as usize..(at + len) as usize];
            assert!(
                done.buf.unwrap()[..] == *expected,
                "round {round}, {len} at {at}"
            );
        }
    }
}

pub(crate) fn growing_keeps_contents(disk: &Subject) {
    let mut queue = disk.open_queue(4).unwrap();
    let data = pattern(9, 4096);
    write(&mut *queue, LEN - 4096, &data);
    assert_eq!(
        disk.grow(LEN / 2).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    disk.grow(LEN * 2 + 100).unwrap();
    assert_eq!(disk.len(), LEN * 2);
    assert!(read(&mut *queue, LEN - 4096, 4096)[..] == data[..]);
    assert!(
        read(&mut *queue, LEN * 2 - 4096, 4096)
            .iter()
            .all(|b| *b == 0)
    );
    write(&mut *queue, LEN * 2 - 4096, &data);
    assert!(read(&mut *queue, LEN * 2 - 4096, 4096)[..] == data[..]);
}

pub(crate) fn buffers_come_back(disk: &Subject) {
    let pool = BufPool::new(1 << 20);
    let mut queue = disk.open_queue(4).unwrap();
    let buf = pool.take(16_384);
    let place = buf.as_ptr();
    queue.submit(Op::read(1, 0, 8192, buf));
    let back = finish(&mut *queue, 1).remove(0).buf.unwrap();
    assert_eq!(
        (back.as_ptr(), back.len(), back.capacity()),
        (place, 8192, 16_384)
    );
    let body = back.into_bytes().slice(100..200);
    assert_eq!(pool.idle_bytes(), 0);
    drop(body);
    assert_eq!(pool.idle_bytes(), 16_384);
}

/// A region that is only written through the cache lies between regions that are written directly. The cached
/// writes have positions and lengths that are not aligned. Every byte of all regions stays as it was written,
/// even after a flush.
pub(crate) fn cached_writes_are_read_beside_others(disk: &Subject) {
    let (at, len) = (64 << 10, 16 << 10);
    for place in (0..128 << 10)
        .step_by(4096)
        .filter(|p| *p < at || *p >= at + len)
    {
        disk.write_at(place, &[7; 4096]).unwrap();
    }
    let mut expected = vec![0; usize::try_from(len).unwrap()];
    for n in 0..300_usize {
        let (place, piece) = (n * 53, [u8::try_from(n % 251).unwrap() + 1; 40]);
        disk.write_cached(at + place as u64, &piece).unwrap();
        expected[place..place + 40].copy_from_slice(&piece);
        if n == 100 {
            disk.write_at(at - 4096, &[8; 4096]).unwrap();
            disk.write_at(at + len, &[9; 4096]).unwrap();
            disk.flush().unwrap();
        }
    }
    let mut found = vec![1; expected.len()];
    disk.read_cached(at, &mut found).unwrap();
    assert!(found == expected);
    let mut beside = vec![0; 8192];
    disk.read_at(at - 8192, &mut beside).unwrap();
    assert!(beside[..4096] == [7; 4096] && beside[4096..] == [8; 4096]);
    disk.read_at(at + len, &mut beside).unwrap();
    assert!(beside[..4096] == [9; 4096] && beside[4096..] == [7; 4096]);
    assert!(disk.write_cached(disk.len() - 8, &[0; 16]).is_err());
    assert!(disk.read_cached(disk.len() - 8, &mut [0; 16]).is_err());
}
