//! Summaries that are longer than their slot, because records are far shorter than the slots were sized
//! for.

use foxy_base::Rng;
use foxy_disk::Keep;

use super::rig::{Rig, geometry};
use crate::*;

const MEMORY: u64 = 2 << 20;

/// Puts tiny objects with the numbers in `range`; the body contains the version. A segment has at least
/// 300 of them, and a slot has 168 entries.
fn put_tiny(rig: &mut Rig, range: std::ops::Range<u32>, version: u32) {
    for n in range {
        rig.put(&format!("{n}"), format!("{version}").as_bytes());
        if n % 64 == 63 {
            rig.settle();
        }
    }
    rig.settle();
}

fn words(rig: &Rig) -> Vec<SegmentWord> {
    let found = inspect(&rig.disk).unwrap();
    let states = found.segments.iter().filter_map(|s| s.state);
    states.collect()
}

#[test]
fn segments_of_short_records_come_back_by_their_summaries() {
    let mut rig = Rig::new(32, MEMORY, 1);
    put_tiny(&mut rig, 0..4000, 1);
    let sealed = rig.counts().sealed;
    assert!(sealed >= 6, "{sealed}");
    assert!(!words(&rig).contains(&SegmentWord::Overflow));
    let again = rig.kill();
    let counts = again.counts();
    // Only the open segment and the prepared segment are searched.
    assert!(
        counts.load_scans <= 2 && counts.load_slots == sealed,
        "{counts:?}"
    );
    assert!((0..4000).all(|n| again.text(&n.to_string()).as_deref() == Some("1")));
}

#[test]
fn reuse_reads_long_summaries() {
    let mut rig = Rig::new(8, MEMORY, 2);
    for version in 1..4 {
        put_tiny(&mut rig, 0..4000, version);
    }
    let counts = rig.counts();
    assert!(counts.reused > 10, "{counts:?}");
    assert_eq!(counts.load_scans, 0, "a victim was searched: {counts:?}");
    let again = rig.kill();
    assert!((3900..4000).all(|n| again.text(&n.to_string()).as_deref() == Some("3")));
    let old = |n: u32| again.text(&n.to_string()).is_some_and(|t| t != "3");
    assert!(!(0..4000).any(old));
}

#[test]
fn a_damaged_end_of_a_summary_is_replaced_by_the_clusters() {
    let mut rig = Rig::new(32, MEMORY, 3);
    put_tiny(&mut rig, 0..2000, 1);
    let geometry = geometry(&rig.engine);
    let end = geometry.segment_at(1) - 4096;
    foxy_disk::Disk::write_at(&rig.disk, end, &[0x5a; 512]).unwrap();
    let again = rig.kill();
    assert_eq!(again.counts().damaged, 1);
    assert!((0..2000).all(|n| again.text(&n.to_string()).as_deref() == Some("1")));
}

#[test]
fn power_cuts_around_long_summaries_bring_nothing_old_back() {
    for seed in 0..if super::is_long() { 2000 } else { 30 } {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(8, MEMORY, seed);
        put_tiny(&mut rig, 0..3000, 1);
        // The crash comes more than a sync interval after these puts, so the first versions must not
        // return.
        put_tiny(&mut rig, 0..1000, 2);
        rig.clock.advance(std::time::Duration::from_secs(5));
        rig.settle();
        let more = 1000 + rng.below(2000) as u32;
        for n in 1000..more {
            rig.put(&format!("{n}"), b"2");
            if rng.below(8) == 0 {
                rig.turns(1 + rng.below(3) as usize);
            }
        }
        let mut again = rig.crash(Keep::Random(seed));
        for round in 0..2 {
            for n in 0..1000 {
                let text = again.text(&n.to_string());
                assert!(
                    text.is_none_or(|t| t == "2"),
                    "seed {seed} round {round} {n}"
                );
            }
            put_tiny(&mut again, 3000..3400, 1);
            again = again.kill();
        }
    }
}
