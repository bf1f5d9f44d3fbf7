//! Segments that could not be read are not used until they are tried again, not even after a restart.

use std::ops::Range;

use foxy_base::Rng;
use foxy_disk::{Fault, FaultPlan, FaultRule, MemDisk, OpClass};
use foxy_format::{SLOT_HEADER_BYTES, SlotHeader};

use super::rig::{SEGMENT, hash};
use super::several_rig::{KEYS, Several, disk};
use crate::interface::Spot;
use crate::*;

/// The segment that becomes unreadable.
const BAD: u32 = 2;

/// Returns the number of operations on a region of the first disk while every segment is reused at
/// least twice.
fn touched(several: &mut Several, region: &Range<u64>, rng: &mut Rng) -> usize {
    several.disks[0].set_log(true);
    let reused = several.store(0).counts.reused;
    while several.store(0).counts.reused < reused + 40 {
        several.work(rng, 50);
    }
    let log = several.disks[0].log();
    several.disks[0].set_log(false);
    assert!(log.len() > 40);
    log.iter().filter(|op| region.contains(&op.at)).count()
}

/// Makes a store with a segment in quarantine. Returns also the region of that segment. The device
/// works correctly again.
pub(super) fn quarantined(rng: &mut Rng) -> (Several, Range<u64>) {
    let mut several = Several::open(vec![disk(16, 3)]);
    several.work(rng, 300);
    several.run(40);
    let store = several.engine.fleet().store(StoreId(0)).unwrap();
    let at = store.space.geometry().segment_at(BAD);
    let region = at..at + u64::from(SEGMENT);
    breaks(&several.disks[0], OpClass::Read, Fault::EIO, &region);
    for _ in 0..40 {
        several.work(rng, 50);
        several.forget_memory();
        several.hits();
        if several.store(0).quarantined == 1 {
            break;
        }
    }
    assert_eq!(several.store(0).quarantined, 1);
    several.disks[0].set_faults(FaultPlan::none());
    (several, region)
}

fn breaks(disk: &MemDisk, class: OpClass, fault: Fault, region: &Range<u64>) {
    let rule = FaultRule::new(class, fault).within(region.clone());
    disk.set_faults(FaultPlan::none().and(rule));
}

/// Tries the segment again. Returns whether it is used again.
fn retried(several: &mut Several) -> bool {
    several.engine.fleet().retry_quarantine(StoreId(0)).unwrap();
    several.run(1);
    several.store(0).quarantined == 0
}

#[test]
fn a_segment_that_cannot_be_read_is_neither_read_nor_written_any_more() {
    let mut rng = Rng::new(7);
    let (mut several, region) = quarantined(&mut rng);
    breaks(&several.disks[0], OpClass::Read, Fault::EIO, &region);
    // The reads of the segment that were under way may end.
    several.run(20);
    let errors = several.store(0).counts.read_errors;
    assert_eq!(touched(&mut several, &region, &mut rng), 0);
    assert_eq!(several.store(0).counts.read_errors, errors);
    assert_eq!(several.store(0).health, Health::Good);
    assert!(several.hits() > 10);
    // The next start knows of the quarantine.
    let mut again = several.kill(several.killed_disks());
    assert_eq!(again.store(0).quarantined, 1);
    assert_eq!(touched(&mut again, &region, &mut rng), 0);
    // The segment is tried again twice: while the disk still fails there, and after it works again.
    breaks(&again.disks[0], OpClass::Read, Fault::EIO, &region);
    assert!(!retried(&mut again));
    again.disks[0].set_faults(FaultPlan::none());
    assert!(retried(&mut again));
    let mut good = again.kill(again.killed_disks());
    assert_eq!(good.store(0).quarantined, 0);
    assert!(touched(&mut good, &region, &mut rng) > 0);
    assert!(good.hits() > 10);
}

#[test]
fn a_segment_that_does_not_keep_what_is_written_stays_in_quarantine() {
    let mut rng = Rng::new(8);
    let (mut several, region) = quarantined(&mut rng);
    for lie in [Fault::Torn, Fault::Lost, Fault::BitRot(1), Fault::EIO] {
        breaks(&several.disks[0], OpClass::Write, lie, &region);
        assert!(!retried(&mut several), "{lie:?}");
    }
    several.disks[0].set_faults(FaultPlan::none());
    assert!(retried(&mut several));
}

#[test]
fn what_lay_in_a_segment_that_reuse_passes_over_is_forgotten_when_its_turn_is_over() {
    let mut rng = Rng::new(9);
    let (mut several, _) = quarantined(&mut rng);
    let store = several.engine.fleet().store(StoreId(0)).unwrap();
    let entries = |several: &Several| {
        let leads = |key: &u64| {
            let found = several
                .engine
                .core()
                .tables
                .index()
                .lookup(hash(&Several::name(*key)));
            let places = found
                .iter()
                .filter_map(|e| store.space.locate(Spot::of(&e)));
            places.filter(|(segment, _)| *segment == BAD).count() > 0
        };
        (0..KEYS).filter(leads).count()
    };
    let incarnation = store.space.incarnation(BAD);
    assert!(incarnation > 0 && entries(&several) > 0);
    // As long as the segment keeps its incarnation, a start would load its records, so removals must find
    // these records in the index.
    let reused = several.store(0).counts.reused;
    while several.store(0).counts.reused < reused + 20 {
        several.work(&mut rng, 20);
        let known = store.space.incarnation(BAD);
        assert!(known == incarnation || entries(&several) == 0);
    }
    assert_eq!(store.space.incarnation(BAD), 0);
    assert_eq!(entries(&several), 0);
}

/// Reuse skips a segment. Until the next segment has its open header, a start would still load the contents
/// of the skipped segment.
#[test]
fn a_segment_that_is_passed_over_is_known_until_the_next_open_header_is_written() {
    let mut rng = Rng::new(9);
    let (mut several, _) = quarantined(&mut rng);
    let store = several.engine.fleet().store(StoreId(0)).unwrap();
    let incarnation = store.space.incarnation(BAD);
    assert!(incarnation > 0);
    let disk = several.disks[0].clone();
    disk.set_step(true);
    for _ in 0..200_000 {
        several.work(&mut rng, 1);
        several.run(1);
        if store.space.incarnation(BAD) == 0 {
            let slot = disk.peek(store.space.geometry().slot_at(BAD + 1), SLOT_HEADER_BYTES);
            let next = SlotHeader::decode(&slot).unwrap();
            assert!(next.sequence > incarnation + 1, "no open header: {next:?}");
            return;
        }
        for op in disk.held() {
            disk.release(op.id);
        }
    }
    panic!("its turn does not come");
}
