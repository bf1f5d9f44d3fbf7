//! The scrub finds damaged records before a request does, and drops nothing else.

use foxy_base::Rng;
use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
use foxy_index::Entry;

use super::live_rig::{KEYS, Live};
use super::rig::{Rig, SEGMENT, hash};
use crate::interface::Spot;
use crate::*;

const MEMORY: u64 = 2 << 20;
const OBJECTS: usize = 400;

fn filled(seed: u64) -> Rig {
    let mut rig = Rig::new(32, MEMORY, seed);
    rig.fill("a", OBJECTS);
    rig.engine.context().memory.clear();
    rig
}

/// Makes a complete pass. Returns the bytes that it read.
fn pass(rig: &mut Rig) -> u64 {
    let mut scrub = rig.engine.scrub().unwrap();
    let mut read = 0;
    while let ScrubStep::Read { bytes, .. } = scrub.step() {
        read += bytes;
    }
    rig.settle();
    read
}

fn key(n: usize) -> String {
    format!("filler a {n}")
}

fn entry(rig: &Rig, n: usize) -> Option<Entry> {
    rig.engine
        .core()
        .tables
        .index()
        .lookup(hash(&key(n)))
        .first()
}

#[test]
fn bad_records_are_dropped_and_nothing_else() {
    for seed in 0..20 {
        let mut rig = filled(seed);
        let read = pass(&mut rig);
        assert!(read > OBJECTS as u64 * 2_000, "{read}");
        let counts = rig.counts();
        assert_eq!((counts.scrub_dropped, counts.scrub_passes), (0, 1));
        assert_eq!(counts.scrubbed_bytes, read);
        let mut rng = Rng::new(seed);
        let mut bad: Vec<_> = (0..20)
            .map(|_| rng.below(OBJECTS as u64) as usize)
            .collect();
        bad.sort_unstable();
        bad.dedup();
        for n in &bad {
            let spot = Spot::of(&entry(&rig, *n).unwrap());
            // The addresses of the engine's first store are the byte offsets on its disk.
            let at = spot.units() * foxy_format::UNIT + rng.below(2_000);
            rig.disk.corrupt(at, 1, |b| b[0] ^= 1 << rng.below(8));
        }
        pass(&mut rig);
        assert_eq!(rig.counts().scrub_dropped, bad.len() as u64, "seed {seed}");
        for n in 0..OBJECTS {
            assert_eq!(entry(&rig, n).is_none(), bad.contains(&n), "object {n}");
        }
        let again = rig.kill();
        for n in 0..OBJECTS {
            assert_eq!(again.get(&key(n)).is_none(), bad.contains(&n));
        }
    }
}

#[test]
fn a_pass_counts_once_for_each_of_several_stores() {
    let mut live = Live::new(&[16, 16], 3);
    // Each store needs several segments.
    for _ in 0..20 {
        (0..KEYS).for_each(|key| live.put(key));
        live.settle();
    }
    let mut scrub = live.engine.scrub().unwrap();
    while scrub.step() != ScrubStep::Done {}
    for store in live.engine.stats().stores {
        let counts = store.counts;
        assert!(
            counts.scrubbed_bytes > 0 && counts.scrub_passes == 1,
            "{counts:?}"
        );
    }
}

#[test]
fn a_record_gone_bad_here_and_there_among_whole_ones_does_not_end_a_store() {
    let mut rig = Rig::new(100, MEMORY, 5);
    rig.fill("a", 2200);
    rig.engine.context().memory.clear();
    for n in (0..2200).step_by(30) {
        let spot = Spot::of(&entry(&rig, n).unwrap());
        let at = spot.units() * foxy_format::UNIT + 1000;
        rig.disk.corrupt(at, 1, |b| b[0] ^= 1);
    }
    pass(&mut rig);
    let stats = rig.engine.stats();
    let store = &stats.stores[0];
    assert_eq!(store.health, Health::Good, "{stats:?}");
    assert!(store.counts.scrub_dropped > 64, "{stats:?}");
}

#[test]
fn a_region_that_cannot_be_read_ends_in_quarantine() {
    let mut rig = filled(1);
    let at = rig.segments_at() + 3 * u64::from(SEGMENT);
    let rule = FaultRule::new(OpClass::Read, Fault::EIO).within(at..at + 4096);
    rig.disk.set_faults(FaultPlan::none().and(rule));
    for n in 0..5 {
        assert_eq!(rig.engine.stats().stores[0].quarantined, u32::from(n >= 3));
        pass(&mut rig);
    }
    let stats = rig.engine.stats();
    assert_eq!(
        stats.stores[0].counts.scrub_errors, 3,
        "then it is left out"
    );
    assert_eq!(stats.stores[0].health, Health::Good);
    let hits = (0..OBJECTS).filter(|n| rig.get(&key(*n)).is_some()).count();
    assert!(hits > OBJECTS * 8 / 10 && hits < OBJECTS, "{hits}");
}

#[test]
fn requests_that_read_are_noticed_and_a_store_in_trouble_is_left_alone() {
    let rig = filled(2);
    let mut scrub = rig.engine.scrub().unwrap();
    let busy = |step: ScrubStep| matches!(step, ScrubStep::Read { busy: true, .. });
    assert!(!busy(scrub.step()));
    assert!(rig.get(&key(7)).is_some());
    assert!(busy(scrub.step()));
    assert!(!busy(scrub.step()));
    rig.engine.context().memory.clear();
    let plan = rig.plan(&key(7)).unwrap();
    rig.engine.reads().give_up_read(&plan);
    assert_eq!(scrub.step(), ScrubStep::Done);
}
