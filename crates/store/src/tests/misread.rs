//! One write of an open header is lost, or one read returns bytes from another place while a store is being
//! opened: neither undoes a removal.

use std::time::Duration;

use foxy_disk::{Fault, FaultPlan, FaultRule, Keep, OpClass};

use super::flips::Killed;
use super::rig::{Rig, geometry, hash, options};

const MEMORY: u64 = 1 << 20;

/// The write of the open header of a next incarnation is lost. Once the index entries of the old incarnation
/// are dropped, removals of its records are not logged. After such removals the process is killed.
#[test]
fn a_lost_open_header_does_not_bring_an_earlier_incarnation_back() {
    let (mut lost, mut gone) = (0, 0);
    for skip in 0..14 {
        let mut rig = Rig::new(6, MEMORY, 31);
        rig.fill("old", 16);
        let geometry = geometry(&rig.engine);
        let slots = geometry.slot_at(0)..geometry.segment_at(0);
        let rule = FaultRule::new(OpClass::Write, Fault::Lost).within(slots);
        rig.disk
            .set_faults(FaultPlan::from(rule.after(skip).times(1)));
        let old = (0..16).map(|n| format!("filler old {n}"));
        // The check is not a lookup: a lookup counts as a use, and reuse would then write the record again.
        let is_known = |rig: &Rig, key: &str| {
            let mut entries = rig
                .engine
                .core()
                .tables
                .index()
                .lookup(hash(key))
                .into_iter();
            entries.next().is_some()
        };
        for n in 0..100 {
            rig.put(&format!("later {n}"), &[7; 4_000]);
            rig.clock.advance(Duration::from_millis(50));
            rig.turns(2);
            let unknown: Vec<_> = old.clone().filter(|key| !is_known(&rig, key)).collect();
            if unknown.is_empty() {
                continue;
            }
            rig.engine.context().memory.clear();
            for key in &unknown {
                rig.supersede(key);
            }
            // The keys are checked while the store is being loaded, because reuse takes the segment
            // again after that.
            let mut again = rig.crash_unloaded(Keep::All);
            for _ in 0..20 {
                for key in &unknown {
                    assert_eq!(again.text(key), None, "{key}, write {skip} of the slots");
                }
                again.turns(1);
            }
            gone += unknown.len();
            break;
        }
        lost += rig.disk.counts().faults;
    }
    assert!(lost > 6 && gone > 60, "{lost} {gone}");
}

/// If a start continues to write in a sealed segment, the segment gets an open header again. Without that
/// header, the next start would read the segment's old summary, which lacks the removals made from then on.
#[test]
fn a_lost_open_header_of_a_segment_that_is_gone_on_with_undoes_nothing() {
    let mut rig = Rig::new(6, MEMORY, 32);
    rig.settle();
    rig.put("k", b"old");
    rig.settle();
    assert!(rig.writer.drain(Duration::from_secs(5)));
    let disk = rig.disk.kill();
    let geometry = geometry(&rig.engine);
    let slots = geometry.slot_at(0)..geometry.segment_at(0);
    let rule = FaultRule::new(OpClass::Write, Fault::Lost).within(slots);
    disk.set_faults(FaultPlan::from(rule.times(1)));
    let mut again = Rig::open(disk, MEMORY, 33, options());
    again.settle();
    assert_eq!(again.text("k").as_deref(), Some("old"));
    assert_eq!(again.disk.counts().faults, 1);
    again.supersede("k");
    for n in 0..4 {
        again.put(&format!("later {n}"), b"body");
        again.settle();
        again.clock.advance(Duration::from_secs(5));
        again.settle();
    }
    assert_eq!(again.kill().text("k"), None);
}

/// Tests every read of a start: the read returns bytes from another place, at several distances.
#[test]
fn a_read_from_another_place_while_opening_undoes_nothing() {
    let (mut starts, mut found) = (0, 0);
    for pause in [Duration::ZERO, Duration::from_secs(20)] {
        let killed = Killed::new(pause);
        let rig = Rig::open(killed.image.kill(), MEMORY, 1, options());
        let reads = rig.disk.counts().reads;
        let geometry = geometry(&rig.engine);
        let half = i64::from(geometry.journal_bytes / 2);
        let segment = i64::from(geometry.segment_bytes);
        for by in [4096, -4096, 24 << 10, half, segment, 3 * segment] {
            for at in 0..reads {
                let disk = killed.image.kill();
                let rule = FaultRule::new(OpClass::Read, Fault::Misdirected(by));
                disk.set_faults(FaultPlan::from(rule.after(at).times(1)));
                let when = format!("read {at} of the start from {by} bytes away");
                // After a start that fails, no request is served.
                let Ok(mut rig) = Rig::try_open(disk, MEMORY, 2, options()) else {
                    continue;
                };
                killed.check(&rig, &when);
                rig.settle();
                found += killed.check(&rig, &when);
                killed.check(&rig.kill(), &when);
                starts += 1;
            }
        }
    }
    println!("{starts} starts, {found} found");
    assert!(starts > 100 && found > starts * 10, "{starts} {found}");
}

/// Slots that are read from a place with zeros must not be taken for slots of segments that were never
/// used.
#[test]
fn slots_that_are_read_from_elsewhere_are_not_taken_for_empty() {
    let mut rig = Rig::new(10, MEMORY, 34);
    rig.settle();
    // The wrong place to which reads are directed has a block with contents, then zeros.
    rig.put("k", &[0; 20_000]);
    rig.settle();
    rig.fill("fill", 12);
    rig.supersede("k");
    for n in 0..4 {
        rig.put(&format!("later {n}"), b"body");
        rig.settle();
        rig.clock.advance(Duration::from_secs(5));
        rig.settle();
    }
    let geometry = geometry(&rig.engine);
    let slots = geometry.slot_at(0)..geometry.segment_at(0);
    let far = (slots.end - slots.start).cast_signed();
    let mut found = 0;
    for by in [far, far - 4096, -4096, 4096] {
        let disk = rig.disk.kill();
        let rule = FaultRule::new(OpClass::Read, Fault::Misdirected(by)).within(slots.clone());
        disk.set_faults(FaultPlan::from(rule.times(1)));
        let mut again = Rig::open(disk, MEMORY, 35, options());
        again.settle();
        assert_eq!(again.disk.counts().faults, 1);
        assert_eq!(again.text("k"), None, "from {by} bytes away");
        found += u64::from(again.text("later 3").is_some());
    }
    assert_eq!(found, 4);
}
