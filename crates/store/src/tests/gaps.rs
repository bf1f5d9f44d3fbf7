//! Tests of rules whose breach no other test detected. Each test fails if its rule is left out.

use std::time::Duration;

use foxy_disk::{Fault, FaultPlan, FaultRule, Keep, OpClass};

use super::live_rig::{Live, all};
use super::rig::{Rig, geometry, hash, options};
use super::rules::forget_ram;
use crate::*;

const MEMORY: u64 = 1 << 20;

/// Returns the numbers of the operations that the disk holds back until the test releases them. Only
/// operations of this class, at or after byte `from`, are returned.
pub(super) fn held(rig: &Rig, class: OpClass, from: u64) -> Vec<u64> {
    let held = rig.disk.held().into_iter();
    let right = held.filter(|op| op.class == class && op.at >= from);
    right.map(|op| op.id).collect()
}

/// Runs turns of the writer, 20 ms apart, until the disk holds back an operation of this class at or after
/// byte `from`. Returns the number of the operation.
pub(super) fn until_held(rig: &mut Rig, class: OpClass, from: u64) -> u64 {
    for _ in 0..50 {
        if let Some(id) = held(rig, class, from).first() {
            return *id;
        }
        rig.clock.advance(Duration::from_millis(20));
        rig.turns(1);
    }
    panic!("no {class:?} comes: {:?}", rig.disk.held());
}

/// A flush makes writes durable that were complete when it began. It does not make a write durable that
/// completed during the flush.
#[test]
fn a_ticket_does_not_end_with_a_flush_that_began_before_its_write_was_complete() {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.settle();
    rig.put("k", b"old");
    rig.settle();
    let segments = rig.segments_at();
    rig.disk.set_step(true);
    rig.put("beside", b"body");
    let sync = rig.engine.sync();
    let first = until_held(&mut rig, OpClass::Write, segments);
    rig.disk.release(first);
    let flush = until_held(&mut rig, OpClass::Flush, 0);
    // The flush is under way, and the tombstone is written only now.
    let purge = rig.engine.purge(hash("k"), b"k");
    let tombstone = until_held(&mut rig, OpClass::Write, segments);
    rig.disk.release(tombstone);
    rig.turns(2);
    rig.disk.release(flush);
    rig.turns(1);
    assert!(sync.is_done(), "its own flush");
    assert!(!purge.is_done(), "its write completed later");
    let second = until_held(&mut rig, OpClass::Flush, 0);
    assert!(!purge.is_done());
    rig.disk.release(second);
    rig.turns(2);
    assert_eq!(purge.outcome(), Some(Durable::Yes));
    assert_eq!(rig.crash(Keep::Nothing).text("k"), None);
}

/// More clusters wait to be written than may be under way at once.
#[test]
fn a_sync_waits_for_all_that_is_gathered() {
    let mut rig = Rig::new(40, 4 << 20, 2);
    rig.settle();
    rig.disk.set_step(true);
    for n in 0..100 {
        rig.put(&format!("k{n}"), &[b'x'; 2000]);
    }
    let sync = rig.engine.sync();
    let mut operations = 0;
    while !sync.is_done() {
        rig.turns(1);
        if let Some(op) = rig.disk.held().first() {
            rig.disk.release(op.id);
            operations += 1;
        }
        assert!(operations < 1000);
    }
    assert!(operations > 10, "{operations}");
    let cut = rig.crash(Keep::Nothing);
    let found = (0..100).filter(|n| cut.get(&format!("k{n}")).is_some());
    assert_eq!(found.count(), 100);
}

#[test]
fn a_purge_of_a_url_is_noted_for_a_detached_store() {
    let mut live = Live::new(&[16, 16], 3);
    (0..30).for_each(|key| live.put(key));
    live.settle();
    assert!(live.remove(1));
    let left = live.on_disk();
    let detached: Vec<_> = all().difference(&left).copied().take(3).collect();
    assert_eq!(detached.len(), 3);
    detached.iter().for_each(|key| live.purge_key(*key));
    live.settle();
    live.add(1);
    live.settle();
    assert!(detached.iter().all(|key| !live.on_disk().contains(key)));
    let mut again = live.crash(None);
    again.settle();
    assert!(detached.iter().all(|key| !again.on_disk().contains(key)));
}

/// The removals in the unreadable segment are not known, so all older records are dead. No record returns
/// when the segment becomes readable again.
#[test]
fn an_open_segment_that_cannot_be_read_undoes_no_purge() {
    let mut rig = Rig::new(40, MEMORY, 4);
    rig.settle();
    rig.put("k", b"old");
    rig.fill("between", 120);
    rig.disk.set_log(true);
    let purge = rig.engine.purge(hash("k"), b"k");
    rig.settle();
    assert_eq!(purge.outcome(), Some(Durable::Yes));
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    let end = store.marks.log_end();
    let geometry = *store.space.geometry();
    let open = geometry.segment_at(geometry.segment_of(end.sequence()));
    let disk = rig.disk.kill();
    let rule = FaultRule::new(OpClass::Read, Fault::EIO)
        .within(open..open + u64::from(geometry.segment_bytes));
    disk.set_faults(FaultPlan::none().and(rule));
    let mut again = Rig::open(disk.clone(), MEMORY, 5, options());
    again.settle();
    assert_eq!(again.text("k"), None);
    again.put("new", b"body");
    again.settle();
    disk.set_faults(FaultPlan::none());
    let last = again.kill();
    assert_eq!(last.text("k"), None, "readable again");
    assert_eq!(last.text("new").as_deref(), Some("body"));
}

/// Until the open header of the next incarnation is durable, a start would load the old incarnation. So the
/// index must keep the entries of the old incarnation until then.
#[test]
fn an_open_header_that_could_not_be_written_drops_nothing() {
    let mut rig = Rig::new(8, MEMORY, 6);
    rig.settle();
    rig.put("k", b"old");
    rig.settle();
    let geometry = geometry(&rig.engine);
    let slot = geometry.slot_at(0)..geometry.slot_at(1);
    let broken = FaultRule::new(OpClass::Write, Fault::EIO).within(slot);
    // The slot already got one open header. Its next write is the summary, and the write after that is the
    // open header of the next incarnation, which fails.
    rig.disk
        .set_faults(FaultPlan::none().and(broken.after(1).times(1)));
    let mut failed = false;
    for n in 0..400 {
        rig.put(&format!("filler {n}"), &[b'f'; 1500]);
        rig.clock.advance(Duration::from_millis(1100));
        rig.turns(1);
        let errors = rig.counts().write_errors;
        for _ in 0..8 {
            rig.turns(1);
            forget_ram(&rig, "k");
            if !failed && rig.counts().write_errors > errors {
                failed = true;
                // The write is tried again after a pause; no time passes here, so the pause does not
                // end.
                rig.turns(20);
                assert!(rig.plan("k").is_some(), "filler {n}");
                rig.supersede("k");
                assert_eq!(rig.kill().text("k"), None);
            }
        }
        if failed {
            rig.settle();
            assert!(rig.counts().reused > 0);
            return;
        }
    }
    panic!("the open header was never written");
}
