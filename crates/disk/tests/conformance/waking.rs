//! Tests that a queue's descriptor wakes its pollers: level and edge triggered, and through tokio.

use crate::{PATIENCE, finish};
use foxy_base::{Clock, SystemClock};
use foxy_disk::{AlignedBuf, Completion, Disk, Op, Queue};
use std::sync::Arc;
use std::time::Duration;

/// Writes the whole disk, because reads of reserved but unwritten space need no device and complete
/// immediately.
fn fill(disk: &Arc<dyn Disk>) {
    disk.write_at(0, &AlignedBuf::new(disk.len() as usize))
        .unwrap();
    disk.flush().unwrap();
}

/// Blocks in epoll until the queue's descriptor is readable, then reaps. Repeats this until `count`
/// completions have arrived.
fn reap_by_polling(queue: &mut dyn Queue, poll: &mut dyn FnMut(Duration) -> bool, count: usize) {
    let mut out: Vec<Completion> = Vec::new();
    let clock = SystemClock::default();
    let start = clock.mono();
    while out.len() < count {
        assert!(poll(PATIENCE), "not woken: {} of {count}", out.len());
        queue.reap(&mut out);
        assert!(
            clock.mono().since(start) < PATIENCE,
            "{} of {count}",
            out.len()
        );
    }
    assert!(out.iter().all(|c| c.result.is_ok()));
}

#[cfg(target_os = "linux")]
fn poller(queue: &dyn Queue, edge: bool) -> impl FnMut(Duration) -> bool + use<> {
    use rustix::event::{Timespec, epoll};
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let flags = if edge {
        epoll::EventFlags::ET
    } else {
        epoll::EventFlags::empty()
    };
    let fd = queue.event_fd().unwrap();
    epoll::add(
        &set,
        fd,
        epoll::EventData::new_u64(1),
        epoll::EventFlags::IN | flags,
    )
    .unwrap();
    move |timeout| {
        let timeout = Timespec::try_from(timeout).unwrap();
        let mut events = Vec::with_capacity(4);
        loop {
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&set, spare, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                other => return other.unwrap() > 0,
            }
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn epoll_wakes(disk: &Arc<dyn Disk>) {
    fill(disk);
    for edge in [false, true] {
        let mut queue = disk.open_queue(8).unwrap();
        let mut poll = poller(&*queue, edge);
        assert!(
            !poll(Duration::ZERO),
            "readable before anything was submitted"
        );
        for round in 0..50u64 {
            // Some rounds submit more operations than the ring has entries; other rounds submit one
            // operation.
            let count = 1 + (round % 3) as usize * 11;
            for n in 0..count as u64 {
                let at = (round * 8 + n) * 4096;
                queue.submit(Op::read(n, at, 4096, AlignedBuf::new(4096)));
            }
            queue.flush_submissions().unwrap();
            reap_by_polling(&mut *queue, &mut poll, count);
        }
        queue.submit(Op::read(0, 1, 4096, AlignedBuf::new(4096)));
        queue.flush_submissions().unwrap();
        assert!(poll(PATIENCE), "a refusal wakes too");
        assert_eq!(finish(&mut *queue, 1).len(), 1);
        // All completions were reaped: at most one spurious wake-up is left, and no further wake-up
        // follows.
        let mut out = Vec::new();
        if poll(Duration::ZERO) {
            queue.reap(&mut out);
        }
        assert!(
            !poll(Duration::from_millis(1)),
            "still readable when all is reaped"
        );
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn epoll_wakes(disk: &Arc<dyn Disk>) {
    let mut queue = disk.open_queue(8).unwrap();
    queue.submit(Op::read(0, 0, 4096, AlignedBuf::new(4096)));
    assert_eq!(finish(&mut *queue, 1).len(), 1);
}

/// As in the proxy, one task owns the queue and reaps when its descriptor is readable.
#[cfg(feature = "tokio")]
pub(crate) fn tokio_wakes(disk: &Arc<dyn Disk>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut queue = disk.open_queue(8).unwrap();
        let readiness = foxy_disk::Readiness::of(&*queue).unwrap();
        fill(disk);
        let mut out = Vec::new();
        for round in 0..100u64 {
            for n in 0..=(round % 12) {
                queue.submit(Op::read(n, (round + n) * 4096, 4096, AlignedBuf::new(4096)));
            }
            queue.flush_submissions().unwrap();
            out.clear();
            while out.len() <= (round % 12) as usize {
                let ready = tokio::time::timeout(PATIENCE, readiness.ready()).await;
                ready.expect("woken in time").unwrap();
                queue.reap(&mut out);
            }
        }
        assert_eq!(queue.in_flight(), 0);
    });
}
