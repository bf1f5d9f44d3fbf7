//! Tests of rules for the order of writes and for failing disks, one test for each rule.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::{Fault, FaultPlan, FaultRule, Keep, OpClass};
use foxy_format::{BLOCK, ClusterHeader, SegmentState, SlotHeader, encode_slot};

use super::purges::purge;
use super::quarantine::quarantined;
use super::rig::{Rig, geometry, options};
use super::several_rig::KEYS;
use crate::recovery::{Found, read_slots};
use crate::*;

const MEMORY: u64 = 1 << 20;

fn pass(rig: &mut Rig, millis: u64) {
    for _ in 0..millis / 10 {
        rig.clock.advance(Duration::from_millis(10));
        rig.turns(1);
    }
}

/// Makes a store with these keys, each in its own cluster.
fn with(keys: &[&str], seed: u64) -> Rig {
    let mut rig = Rig::new(16, MEMORY, seed);
    rig.settle();
    for key in keys {
        rig.put(key, b"old");
        rig.settle();
    }
    rig
}

/// Returns the place of the newest cluster of the first segment.
fn newest_cluster(rig: &Rig) -> u64 {
    let geometry = geometry(&rig.engine);
    let bytes = rig
        .disk
        .peek(geometry.segment_at(0), geometry.segment_bytes as usize);
    let places = (0..u64::from(geometry.segment_bytes)).step_by(BLOCK as usize);
    let newest = places.filter_map(|at| {
        let decoded = ClusterHeader::decode(&bytes[at as usize..], geometry.segment_bytes);
        Some((decoded.ok()?.0.link.number, at))
    });
    geometry.segment_at(0) + newest.max().unwrap().1
}

/// A removal is still in the inbox when the flush of an earlier removal is done.
#[test]
fn a_removal_in_the_inbox_is_active_while_an_earlier_one_settles() {
    for apart in 0..500 {
        let mut rig = with(&["a", "b"], 1);
        rig.supersede("a");
        pass(&mut rig, apart * 10);
        rig.supersede("b");
        rig.turns(1);
        let again = Rig::open(rig.disk.kill(), MEMORY, 2, options());
        assert_eq!(again.text("b"), None, "{apart}");
    }
}

/// A removal stays active in the removal log until it is confirmed itself, even if an earlier removal is
/// confirmed already. So one damaged cluster undoes neither of them.
#[test]
fn a_removal_that_is_not_confirmed_is_active_beside_one_that_is() {
    for apart in (0..5_000).step_by(400) {
        let mut rig = with(&["a", "b"], 1);
        rig.supersede("a");
        pass(&mut rig, apart);
        rig.supersede("b");
        for step in 0..55 {
            // A log at rest would write an additional cluster that confirms the removals. So that the log is
            // not at rest, each step stores an object.
            rig.put(&format!("busy {step}"), b"body");
            pass(&mut rig, 100);
            let disk = rig.disk.kill();
            disk.corrupt(newest_cluster(&rig) + 20, 1, |b| b[0] ^= 1);
            let again = Rig::open(disk, MEMORY, 2, options());
            assert_eq!(again.text("a"), None, "{apart}");
            assert_eq!(again.text("b"), None, "{apart}");
        }
    }
}

/// A store whose disk refuses most writes cannot record removals. It records in its superblocks that its
/// contents are dead, because the disk still accepts these writes.
#[test]
fn a_store_that_takes_no_writes_records_it_on_its_disk() {
    let mut rig = with(&["k"], 4);
    let broken = geometry(&rig.engine).journal_at()..u64::MAX;
    let refused = FaultRule::new(OpClass::Write, Fault::EIO).within(broken);
    rig.disk.set_faults(FaultPlan::from(refused));
    for n in 0..100 {
        rig.put(&format!("other {n}"), b"body");
        pass(&mut rig, 200);
        if rig.engine.stats().stores[0].health != Health::Good {
            break;
        }
    }
    assert_ne!(rig.engine.stats().stores[0].health, Health::Good);
    pass(&mut rig, 2000);
    rig.supersede("k");
    assert_eq!(rig.kill().text("k"), None);
}

/// The notes of purges that are made at the same time fill several blocks of the purge journal.
#[test]
fn purges_that_fill_several_blocks_are_all_there_after_a_power_cut() {
    let disk = foxy_disk::MemDisk::new(256 << 20, 512, 5);
    let mut rig = Rig::open(disk, MEMORY, 5, options());
    rig.settle();
    let begin = |rig: &Rig, n: u32| {
        let text = format!("{n} {}", "t".repeat(220));
        let begun = rig
            .engine
            .purges()
            .purge_many(&purge(PurgeKind::Tag, &text, false), Places::Reserved);
        begun.unwrap()
    };
    let mut all: Vec<_> = (0..24).map(|n| begin(&rig, n)).collect();
    rig.turns(20);
    for n in 24..27 {
        all.push(begin(&rig, n));
        rig.turns(20);
    }
    let again = rig.crash_unloaded(Keep::Nothing);
    for (number, ticket) in all {
        assert_eq!(ticket.outcome(), Some(Durable::Yes));
        assert!(
            again.engine.purges().purge_status(number).is_some(),
            "{number}"
        );
    }
    assert_eq!(again.counts().damaged, 0);
}

/// A store was missing while its objects were removed, and no membership was recorded; then the
/// store comes back.
#[test]
fn a_store_that_is_added_after_removals_begins_empty() {
    let own = StoreOptions {
        uuid: Some([9; 16]),
        ..options()
    };
    let disk = foxy_disk::MemDisk::new(2 << 20, 512, 6);
    let mut absent = Rig::open(disk, MEMORY, 6, own.clone());
    absent.settle();
    absent.put("k", b"old");
    absent.settle();
    let rig = with(&["other"], 7);
    rig.supersede("k");
    let disk = Arc::new(absent.disk.kill());
    let mut added = rig.engine.open_store(disk, own).unwrap();
    for _ in 0..20 {
        added.turn();
    }
    assert_eq!(rig.text("k"), None);
    assert_eq!(rig.text("other").as_deref(), Some("old"));
}

/// Segments are reused only when the contents of all of them are known.
#[test]
fn no_segment_is_reused_while_the_store_is_being_loaded() {
    let mut rig = Rig::new(8, MEMORY, 8);
    rig.fill("old", 200);
    let mut again = rig.crash_unloaded(Keep::All);
    let slots = geometry(&rig.engine).slot_at(0)..geometry(&rig.engine).segment_at(0);
    let stuck = FaultRule::new(OpClass::Read, Fault::Stuck).within(slots);
    again.disk.set_faults(FaultPlan::from(stuck.times(1)));
    for n in 0..60 {
        again.put(&format!("new {n}"), &[b'n'; 4000]);
        pass(&mut again, 100);
    }
    assert!(again.engine.stats().stores[0].loading);
    assert_eq!(again.counts().reused, 0);
    again.disk.unstick();
    again.settle();
    assert_eq!(again.counts().load_given_up, 0);
}

/// The segment in quarantine may be the open segment.
#[test]
fn an_open_segment_in_quarantine_gets_nothing_more() {
    let mut rig = with(&["k"], 9);
    let geometry = geometry(&rig.engine);
    rig.engine
        .fleet()
        .store(StoreId(0))
        .unwrap()
        .condition
        .restore_quarantine(&[0]);
    pass(&mut rig, 100);
    rig.disk.set_log(true);
    for n in 0..20 {
        rig.put(&format!("later {n}"), b"body");
        rig.settle();
    }
    let there = geometry.segment_at(0)..geometry.segment_at(1);
    let writes = rig.disk.log().into_iter();
    let mut writes = writes.filter(|op| op.class == OpClass::Write);
    assert!(!writes.any(|op| there.contains(&op.at)));
    assert_eq!(rig.text("later 19").as_deref(), Some("body"));
}

/// Reuse skips a segment in quarantine. The contents of that segment stay known until the open header of the
/// next segment is durable.
#[test]
fn what_is_removed_of_a_segment_that_is_passed_over_stays_removed() {
    for skip in 0..16 {
        let mut rng = Rng::new(10);
        let (mut several, _) = quarantined(&mut rng);
        let geometry = geometry(&several.engine);
        let slots = geometry.slot_at(0)..geometry.segment_at(0);
        let stuck = FaultRule::new(OpClass::Write, Fault::Stuck).within(slots);
        several.disks[0].set_faults(FaultPlan::from(stuck.after(skip)));
        // Objects are written as long as open headers for the next incarnations can be written.
        for key in (0..KEYS).cycle().take(6 * KEYS as usize) {
            if key % 3 == 0 {
                several.put(key);
            }
            several.run(1);
        }
        (0..KEYS).for_each(|key| several.supersede(key));
        several.run(120);
        let cut = several.disks[0].crash(Keep::Nothing);
        // All keys were superseded, so any key that is found would be outdated, which `hits` checks.
        assert_eq!(several.kill(vec![cut]).hits(), 0, "{skip}");
    }
}

/// Two segments have the open headers of their next incarnations, and are empty. Writing continues in the
/// first of these.
#[test]
fn of_two_segments_with_open_headers_both_are_used() {
    let mut tried = 0;
    for objects in 40..60 {
        let mut rig = Rig::new(16, MEMORY, 11);
        rig.fill("old", objects);
        let store = rig.engine.fleet().store(StoreId(0)).unwrap();
        let slots = read_slots(&store).into_iter();
        let newest = slots.filter_map(|slot| match slot {
            Found::Slot(header) => Some(header),
            _ => None,
        });
        let newest = newest.max_by_key(|header| header.sequence).unwrap();
        let next = SlotHeader {
            sequence: newest.sequence + 1,
            segment: store.space.geometry().segment_of(newest.sequence + 1),
            ..newest
        };
        let is_ready = newest.state == SegmentState::Open
            && store
                .space
                .position(store.space.spot(newest.segment, 0).unwrap())
                .is_some()
            && rig
                .disk
                .peek(store.space.geometry().segment_at(newest.segment), 4)
                == [0; 4];
        if !is_ready {
            continue;
        }
        tried += 1;
        let disk = rig.disk.kill();
        let header = encode_slot(&next, &[]);
        disk.corrupt(
            store.space.geometry().slot_at(next.segment),
            header.len(),
            |b| {
                b.copy_from_slice(&header);
            },
        );
        let mut again = Rig::open(disk, MEMORY, 12, options());
        again.settle();
        for n in 0..8 {
            again.fill(&format!("new {n}"), 16);
        }
        again.engine.context().memory.clear();
        for label in 0..8 {
            for n in 0..16 {
                let key = format!("filler new {label} {n}");
                assert!(again.text(&key).is_some(), "{objects}: {key}");
            }
        }
    }
    assert!(tried > 0);
}

/// A full file system does no damage. Writing continues when there is room again, and until then no ticket
/// reports that something is durable.
#[test]
fn a_store_without_room_goes_on_when_there_is_room_again() {
    let mut rig = with(&["k", "l"], 13);
    let refused = FaultRule::new(OpClass::Write, Fault::ENOSPC);
    let segments = geometry(&rig.engine).segment_at(0)..u64::MAX;
    rig.disk
        .set_faults(FaultPlan::from(refused.within(segments)));
    for n in 0..40 {
        rig.put(&format!("lost {n}"), b"body");
        rig.supersede("k");
        let ticket = rig.engine.sync();
        for _ in 0..200 {
            pass(&mut rig, 100);
            if ticket.is_done() {
                break;
            }
        }
        assert_eq!(ticket.outcome(), Some(Durable::Failed), "{n}");
    }
    assert_eq!(rig.engine.stats().stores[0].health, Health::Good);
    assert_eq!(rig.text("l").as_deref(), Some("old"));
    rig.disk.set_faults(FaultPlan::none());
    pass(&mut rig, 10_000);
    rig.put("new", b"body");
    let ticket = rig.engine.sync();
    pass(&mut rig, 1_000);
    assert_eq!(ticket.outcome(), Some(Durable::Yes));
    let again = rig.crash(Keep::Nothing);
    assert_eq!(again.text("new").as_deref(), Some("body"));
    assert_eq!(again.text("l").as_deref(), Some("old"));
    assert_eq!(again.text("k"), None);
}
