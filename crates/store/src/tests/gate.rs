//! Tests of the write budget. All objects are written while the budget lasts; then only objects that the rule
//! admits are written. The number of written bytes never exceeds the budget for the elapsed time plus the
//! burst (the largest part of the budget that can be saved up).

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, ManualClock, WallTime};
use foxy_disk::MemDisk;

use super::rig::{SEGMENT, hash, object, options};
use crate::*;

/// The write budget, in bytes per second.
const BUDGET: u64 = 4_000;
const SIZE: usize = 1_000;

fn open(when_spent: AdmissionRule, size_max: u64) -> (Arc<Engine>, Writer, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
    let config = EngineConfig {
        admission: AdmissionConfig {
            write_budget: BUDGET,
            when_spent,
            size_max,
        },
        ..EngineConfig::new(8 << 20, 1)
    };
    let engine = Engine::new(config, clock.clone());
    let disk = MemDisk::new(64 * u64::from(SEGMENT + 4096) + (64 << 10), 512, 1);
    let writer = engine.open_store(Arc::new(disk), options()).unwrap();
    (engine, writer, clock)
}

fn put(engine: &Arc<Engine>, key: &str) -> Admission {
    engine.put(object(key, &[7; SIZE])).admitted
}

/// Spends the budget on other objects of these sizes.
fn spend(engine: &Arc<Engine>, sizes: &[usize]) {
    for &size in sizes {
        let put = |n: u32| engine.put(object(&format!("spent {size} {n}"), &vec![7; size]));
        let taken = (0..1000).take_while(|n| put(*n).admitted == Admission::Disk);
        let taken = taken.count();
        assert!(size == 1 || taken > 10, "{taken}");
    }
}

const REFUSED: Admission = Admission::Memory(DropReason::NotAdmitted);

#[test]
fn second_uses_enter_at_the_end_of_the_budget_and_first_ones_stay_in_memory() {
    let (engine, _writer, clock) = open(AdmissionRule::SecondUse, u64::MAX);
    assert_eq!(put(&engine, "before"), Admission::Disk);
    spend(&engine, &[SIZE, 1]);
    assert_eq!(put(&engine, "once"), REFUSED);
    assert!(matches!(
        engine.reads().lookup(hash("once"), b"once"),
        Lookup::Memory(_)
    ));
    assert_eq!(put(&engine, "once"), Admission::Disk);
    // This object is admitted because it replaces a stored object, which counts as a second use of the key.
    assert_eq!(put(&engine, "before"), Admission::Disk);
    // With time, the budget grows again.
    clock.advance(Duration::from_secs(5));
    assert_eq!(put(&engine, "later"), Admission::Disk);
    assert!(engine.stats().counts.drop_budget >= 2);
}

#[test]
fn frequent_ones_enter_at_their_third_use() {
    let (engine, _writer, _clock) = open(AdmissionRule::Frequency, u64::MAX);
    spend(&engine, &[SIZE, 1]);
    engine.context().memory.clear();
    let uses: Vec<_> = (0..3)
        .map(|_| {
            let admitted = put(&engine, "often");
            engine.context().memory.clear();
            admitted
        })
        .collect();
    assert_eq!(uses, [REFUSED, REFUSED, Admission::Disk]);
}

#[test]
fn large_ones_stay_out_at_the_end_of_the_budget_and_whole_ones_are_asked_for_once() {
    let (engine, _writer, _clock) = open(AdmissionRule::Anything, 500);
    let fragment = engine.fragment_bytes() as usize;
    let large = |key: &str| engine.put(object(key, &vec![1; fragment * 2 + 1])).admitted;
    assert_eq!(large("large"), Admission::Disk);
    spend(&engine, &[SIZE]);
    let refused = Admission::Refused(DropReason::NotAdmitted);
    assert_eq!(large("large"), refused);
    assert!(matches!(
        engine.reads().lookup(hash("large"), b"large"),
        Lookup::Miss
    ));
    assert_eq!(put(&engine, "small"), REFUSED, "over the size");
    for n in 0..20 {
        let tiny = object(&format!("tiny {n}"), &[1; 50]);
        assert_eq!(engine.put(tiny).admitted, Admission::Disk);
    }
}

#[test]
fn never_more_is_written_than_the_budget_and_what_was_saved_up() {
    for when_spent in AdmissionRule::ALL {
        let (engine, mut writer, clock) = open(when_spent, u64::MAX);
        for n in 0..4_000u32 {
            put(&engine, &format!("key {}", n * 7919 % 700));
            clock.advance(Duration::from_millis(20));
            writer.turn();
        }
        let seconds = clock.mono().nanos() / 1_000_000_000;
        let payload = engine.stats().stores[0].counts.record_bytes;
        let most = BUDGET * (seconds + 10);
        assert!(payload <= most && payload > most / 3, "{payload} of {most}");
    }
}
