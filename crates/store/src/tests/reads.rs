//! The order of reads: a rotating disk is detected by its reads, which are sorted from then on.

use std::time::Duration;

use foxy_base::{Clock, Rng};
use foxy_disk::{AlignedBuf, Completion, Fault, FaultRule, MemDisk, Op, OpClass, Queue, Seek};
use foxy_policy::Device;

use super::rig::{Rig, SEGMENT, hash, options};
use crate::*;

const OBJECTS: u64 = 1_500;

/// A rotating disk with 7,200 rotations per minute.
const DISK: Seek = Seek {
    way: Duration::from_millis(15),
    turn: Duration::from_micros(8_300),
    fixed: Duration::from_micros(500),
};
const SSD: Seek = Seek {
    way: Duration::ZERO,
    turn: Duration::from_micros(50),
    fixed: Duration::from_micros(80),
};

/// Makes a store full of objects on a disk with the seek times `seek`; memory keeps almost none of the
/// objects.
fn rig(seek: Seek, reads: ReadMode) -> Rig {
    let disk = MemDisk::new(64 * u64::from(SEGMENT + 4096) + (64 << 10), 512, 1);
    let options = StoreOptions { reads, ..options() };
    let mut rig = Rig::open(disk, 128 << 10, 1, options);
    for n in 0..OBJECTS {
        rig.put(&key(n), &vec![n as u8; 2_000]);
        if n % 16 == 15 {
            rig.settle();
        }
    }
    rig.settle();
    let _ = rig.disk.clone().with_clock(rig.clock.clone());
    rig.disk.set_seek(Some(seek));
    rig
}

fn key(n: u64) -> String {
    format!("{} key {n}", n % 7)
}

/// Disk reads of several threads, with one queue for each thread. The token of a read is its index in
/// `flights`, which contains the plan of the read and the number of its object.
struct Run<'a> {
    rig: &'a Rig,
    queues: Vec<Box<dyn Queue>>,
    rng: Rng,
    flights: Vec<Option<(ReadPlan, u64)>>,
    hits: u64,
    failed: u64,
}

impl<'a> Run<'a> {
    fn new(rig: &'a Rig, threads: usize) -> Self {
        let open = |_| rig.engine.reads().open_reads(StoreId(0), 32).unwrap();
        Self {
            rig,
            queues: (0..threads).map(open).collect(),
            rng: Rng::new(9),
            flights: Vec::new(),
            hits: 0,
            failed: 0,
        }
    }

    /// Carries out `reads` disk reads, with `depth` under way on each queue. Returns the time that they
    /// took.
    fn reads(&mut self, reads: u64, depth: usize) -> Duration {
        let start = self.rig.clock.mono();
        let before = self.hits + self.failed;
        while self.hits + self.failed - before < reads {
            for number in 0..self.queues.len() {
                while self.queues[number].in_flight() < depth {
                    self.submit(number);
                }
                self.queues[number].flush_submissions().unwrap();
            }
            self.rig.clock.advance(Duration::from_micros(50));
            self.reap();
        }
        let took = self.rig.clock.mono().since(start);
        while self.queues.iter().any(|queue| queue.in_flight() > 0) {
            self.rig.clock.advance(Duration::from_millis(1));
            self.reap();
        }
        took
    }

    fn submit(&mut self, number: usize) {
        loop {
            let n = self.rng.below(OBJECTS);
            let Some(plan) = self.rig.plan(&key(n)) else {
                continue;
            };
            let token = self.flights.len() as u64;
            self.flights.push(Some((plan, n)));
            let buf = AlignedBuf::new(plan.len as usize);
            self.queues[number].submit(Op::read(token, plan.at, plan.len as usize, buf));
            return;
        }
    }

    fn reap(&mut self) {
        for number in 0..self.queues.len() {
            let mut done: Vec<Completion> = Vec::new();
            let count = self.queues[number].reap(&mut done);
            assert_eq!(count, done.len());
            for completion in done {
                let (plan, n) = self.flights[completion.token as usize].take().unwrap();
                if completion.result.is_err() {
                    self.failed += 1;
                    continue;
                }
                let key = key(n);
                let buf = completion.buf.unwrap();
                let engine = &self.rig.engine;
                // If another read of the same key has ended first, this call returns the object of that read.
                let object = engine
                    .reads()
                    .finish_read(&plan, key.as_bytes(), buf)
                    .unwrap();
                assert_eq!(object.hash(), hash(&key));
                assert_eq!(object.body()[..], vec![n as u8; 2_000][..]);
                self.hits += 1;
            }
        }
    }
}

#[test]
fn a_rotating_disk_is_found_out_and_its_reads_are_sorted() {
    let rig = rig(DISK, ReadMode::Auto);
    let mut run = Run::new(&rig, 2);
    run.reads(300, 8);
    let stats = rig.engine.stats().stores[0].clone();
    assert_eq!((stats.device, stats.reads_sorted), (Device::Rotating, true));
    let sorted = run.reads(300, 8);
    let counts = rig.counts();
    assert!(counts.sorted_reads >= 300, "{counts:?}");
    assert!(counts.sorted_reads > counts.sorted_batches * 6);
    assert!(counts.joined_reads > 0);
    assert_eq!(run.failed, 0);
    let other = self::rig(DISK, ReadMode::Direct);
    let direct = Run::new(&other, 2).reads(300, 8);
    assert!(sorted < direct * 3 / 4, "{sorted:?}, else {direct:?}");
}

#[test]
fn an_ssd_is_read_as_asked() {
    let rig = rig(SSD, ReadMode::Auto);
    let mut run = Run::new(&rig, 2);
    run.reads(500, 4);
    let stats = rig.engine.stats().stores[0].clone();
    assert_eq!((stats.device, stats.reads_sorted), (Device::Fast, false));
    let device: u64 = run.queues.iter().map(|queue| queue.stats().reads).sum();
    assert_eq!(device, run.hits);
    assert_eq!(rig.counts().sorted_batches, 0);
}

#[test]
fn the_order_can_be_prescribed() {
    for (seek, mode) in [(DISK, ReadMode::Direct), (SSD, ReadMode::Sorted)] {
        let rig = rig(seek, mode);
        Run::new(&rig, 1).reads(200, 4);
        let sorted = rig.counts().sorted_reads > 0;
        assert_eq!(sorted, mode == ReadMode::Sorted);
        assert_eq!(rig.engine.stats().stores[0].reads_sorted, sorted);
    }
}

/// A single read is not delayed: no read waits while the disk is idle.
#[test]
fn a_read_alone_goes_at_once() {
    let rig = rig(SSD, ReadMode::Sorted);
    let mut run = Run::new(&rig, 1);
    run.submit(0);
    run.queues[0].flush_submissions().unwrap();
    assert_eq!(run.queues[0].stats().submit_calls, 1);
    assert_eq!(
        (run.queues[0].in_flight(), run.queues[0].stats().reads),
        (1, 1)
    );
}

/// Reads that are close together on the disk are joined to one read. If a sector is bad, only the requested
/// reads that need this sector fail.
#[test]
fn a_failed_joined_read_fails_only_those_it_must() {
    let rig = rig(DISK, ReadMode::Sorted);
    let mut run = Run::new(&rig, 2);
    let spot = rig.plan(&key(700)).map_or(1 << 20, |plan| plan.at);
    let bad = FaultRule::new(OpClass::Read, Fault::EIO).within(spot..spot + 512);
    rig.disk.set_faults(bad);
    run.reads(1_000, 16);
    assert!(rig.counts().joined_reads > 20, "{:?}", rig.counts());
    assert!(run.hits > 900, "{} hits, {} failed", run.hits, run.failed);
    assert!(run.failed > 0);
    assert!(run.failed < 20, "{} failed", run.failed);
}

/// A read that one thread carries out for another thread is delivered even when the first thread ends.
#[test]
fn a_thread_that_ends_leaves_nobody_without_an_answer() {
    let rig = rig(SSD, ReadMode::Sorted);
    let mut run = Run::new(&rig, 2);
    for number in [0, 0, 1, 1] {
        run.submit(number);
    }
    run.queues[0].flush_submissions().unwrap();
    run.queues[1].flush_submissions().unwrap();
    rig.disk.set_seek(None);
    rig.disk.unstick();
    drop(run.queues.remove(0));
    for _ in 0..100 {
        run.queues[0].flush_submissions().unwrap();
        rig.clock.advance(Duration::from_millis(1));
        run.reap();
    }
    assert_eq!((run.hits, run.queues[0].in_flight()), (2, 0));
}
