//! Tests that all objects of a stream are stored if the disk is fast enough for the stream, even if the store
//! is small and its flushes are slow.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ManualClock, Rng, WallTime};
use foxy_disk::{Fault, FaultPlan, FaultRule, HeldOp, Keep, MemDisk, OpClass};

use super::rig::{Rig, object, options};
use crate::*;

/// The length of the store in bytes: 256 segments of 512 KiB. The engine has 64 MiB of memory, as on a
/// small proxy.
const BYTES: u64 = 128 << 20;
const MEMORY: u64 = 64 << 20;

struct Stream {
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    writer: Writer,
}

impl Stream {
    /// Makes a store on a disk whose flushes take `flush` and whose writes take a millisecond.
    fn new(flush: Duration) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let slow = |class, time| FaultRule::new(class, Fault::Delay(time));
        let disk = MemDisk::new(BYTES, 512, 1).with_clock(clock.clone());
        let engine = Engine::new(EngineConfig::new(MEMORY, 1), clock.clone());
        let opened = engine.open_store(Arc::new(disk.clone()), StoreOptions::default());
        disk.set_faults(
            FaultPlan::none()
                .and(slow(OpClass::Flush, flush))
                .and(slow(OpClass::Any, Duration::from_millis(1))),
        );
        Self {
            clock,
            engine,
            writer: opened.unwrap(),
        }
    }

    /// Puts objects of 7 KB on average at `rate` bytes per second, until `bytes` were put, and requests
    /// some objects that were stored a while ago. The writer takes a turn every `turn`.
    fn run(&mut self, rate: u64, bytes: u64, turn: Duration) {
        let mut rng = Rng::new(7);
        let stock = vec![b'x'; 16 << 10];
        let (mut put, mut number, mut time) = (0u64, 0u64, Duration::ZERO);
        while put < bytes {
            self.clock.advance(turn);
            time += turn;
            while put < (time.as_secs_f64() * rate as f64) as u64 {
                let len = 200 + rng.below(14_000);
                self.engine
                    .put(object(&format!("{number}"), &stock[..len as usize]));
                put += len;
                number += 1;
                let key = format!("{}", rng.below(number));
                let _ = self
                    .engine
                    .reads()
                    .lookup(super::rig::hash(&key), key.as_bytes());
            }
            self.writer.turn();
        }
    }

    fn counts(&self) -> (u64, StoreCounts) {
        let stats = self.engine.stats();
        (stats.counts.drop_pending, stats.stores[0].counts)
    }
}

#[test]
fn a_disk_with_slow_flushes_loses_nothing_of_a_stream_that_it_can_write() {
    let mut stream = Stream::new(Duration::from_millis(20));
    stream.run(60_000_000, 3 * BYTES, Duration::from_millis(1));
    let (dropped, counts) = stream.counts();
    println!("{dropped} dropped, {counts:?}");
    assert!(counts.reused > 256, "it went round: {counts:?}");
    assert_eq!(dropped, 0, "{counts:?}");
}

/// In this test, open headers of several segments are under way at once, so that some of them may be on the
/// disk after a crash.
#[test]
fn crashes_with_several_segments_ahead_bring_nothing_old_back() {
    let mut rig = Rig::new(512, 4 << 20, 1);
    let slow = |class, time| FaultRule::new(class, Fault::Delay(Duration::from_millis(time)));
    let disk = rig.disk.clone().with_clock(rig.clock.clone());
    disk.set_faults(
        FaultPlan::none()
            .and(slow(OpClass::Flush, 15))
            .and(slow(OpClass::Any, 1)),
    );
    let mut rng = Rng::new(11);
    let mut versions: Vec<Vec<u64>> = vec![Vec::new(); KEYS as usize];
    let (mut most_open, mut some) = (0, 0);
    for now in 0..5000 {
        rig.clock.advance(Duration::from_millis(1));
        for n in 0..8 {
            let key = rng.below(KEYS);
            if n == 0 {
                versions[key as usize].push(now);
                rig.put(&format!("k{key}"), format!("{now:>1500}").as_bytes());
            } else {
                rig.put(&format!("filler {now} {n}"), &[b'f'; 2000]);
            }
        }
        rig.turns(1);
        if now > 2000 && now % 187 == 0 {
            most_open = most_open.max(open_segments(&rig));
            some += check(&rig.kill(), &versions, now);
            // A power cut may bring back objects that were replaced in the last seconds.
            let cut = rig.crash(Keep::Random(now));
            check(&cut, &versions, now.saturating_sub(2500));
        }
    }
    assert!(most_open >= 5, "{most_open} segments were open at most");
    assert!(some > 100, "{some} found");
}

#[test]
fn what_is_read_of_a_replaced_version_stays_however_much_waits_to_be_written() {
    let mut rig = Rig::new(64, 4 << 20, 1);
    rig.put("large", &[b'l'; 300_000]);
    rig.settle();
    rig.engine.context().memory.clear();
    let head = rig.get("large").unwrap();
    assert!(head.fragment_count() > 2);
    rig.put("large", b"newer");
    let slow = FaultRule::new(OpClass::Flush, Fault::Delay(Duration::from_millis(20)));
    let disk = rig.disk.clone().with_clock(rig.clock.clone());
    disk.set_faults(FaultPlan::none().and(slow));
    for now in 0..2_000 {
        rig.clock.advance(Duration::from_millis(1));
        // More objects arrive than the store can write: some are dropped.
        for n in 0..100 {
            rig.put(&format!("filler {now} {n}"), &[b'f'; 2000]);
        }
        rig.turns(1);
        if now % 10 == 0 {
            rig.engine.context().memory.clear();
            for n in 0..head.fragment_count() {
                let found = rig.fragment(&head, n);
                assert!(found.is_some(), "fragment {n} is gone after {now} ms");
            }
            rig.engine.context().memory.clear();
        }
    }
    let (counts, dropped) = (rig.counts(), rig.engine.stats().counts.drop_pending);
    assert!(counts.reused > 20 && dropped > 0, "{dropped}, {counts:?}");
}

const KEYS: u64 = 300;

fn open_segments(rig: &Rig) -> usize {
    let found = inspect(&rig.disk).unwrap();
    let states = found.segments.iter().filter_map(|s| s.state);
    states.filter(|s| *s == SegmentWord::Open).count()
}

/// Checks every key that has an object: its version is the version that was the latest at time `since`, or a
/// newer version.
fn check(rig: &Rig, versions: &[Vec<u64>], since: u64) -> u64 {
    let mut some = 0;
    for (key, versions) in versions.iter().enumerate() {
        let Some(text) = rig.text(&format!("k{key}")) else {
            continue;
        };
        some += 1;
        let found: u64 = text.trim().parse().unwrap();
        let latest = versions.iter().rfind(|v| **v <= since).copied();
        assert!(Some(found) >= latest, "k{key}: {found}, {latest:?} before");
    }
    some
}

/// The number of clusters that the disk holds back. The disk also holds back open headers, which have at most
/// 4096 bytes and do not count.
fn under_way(rig: &Rig) -> usize {
    let held = rig.disk.held();
    let long = |op: &&HeldOp| op.class == OpClass::Write && op.len > 4096;
    held.iter().filter(long).count()
}

fn roomy() -> Rig {
    let options = StoreOptions {
        segment_bytes: Some(256 << 10),
        ..options()
    };
    let mut rig = Rig::open(MemDisk::new(8 << 20, 512, 1), 4 << 20, 1, options);
    rig.put("first", b"1");
    rig.settle();
    rig.disk.set_step(true);
    rig
}

#[test]
fn four_full_clusters_are_under_way_at_once_and_their_memory_is_given_back() {
    let mut rig = roomy();
    for n in 0..100 {
        rig.put(&format!("{n}"), &[1; 3000]);
    }
    rig.turns(5);
    assert_eq!(under_way(&rig), 4);
    let cluster = 2 << 20;
    assert!(rig.engine.stats().memory.writers >= 4 * cluster);
    rig.disk.set_step(false);
    rig.turns(20);
    assert_eq!(under_way(&rig), 0);
    let kept = rig.engine.stats().memory.writers;
    assert!(kept >= 4 * cluster, "a lull of a busy writer: {kept}");
    rig.settle();
    for n in 0..100 {
        assert!(rig.text(&format!("{n}")).is_some(), "{n}");
    }
    rig.clock.advance(Duration::from_secs(2));
    rig.turns(1);
    assert!(rig.engine.stats().memory.writers < 3 * cluster);
}

#[test]
fn of_clusters_that_are_not_full_two_are_under_way() {
    let mut rig = roomy();
    for n in 0..5 {
        rig.put(&format!("{n}"), &[1; 5000]);
        let _ticket = rig.engine.sync();
        rig.turns(2);
        assert_eq!(under_way(&rig), (n + 1).min(2));
    }
}
