//! Purged and dead objects, and the places where they could still be found: among the neighbours of an object
//! that is read, in `peek` (for reports to operators), by a late 304, and after the end of the purge.

use std::sync::Arc;

use foxy_base::FieldBlock;
use foxy_disk::{Fault, FaultPlan, FaultRule, Keep, OpClass};

use super::gaps::until_held;
use super::purges::{purge, tagged};
use super::rig::{Rig, hash};
use crate::memory::is_fragment_of;
use crate::*;

const MEMORY: u64 = 8 << 20;

fn publish(rig: &Rig, tag: &str) {
    let purge = purge(PurgeKind::Tag, tag, false);
    rig.engine
        .purges()
        .purge_many(&purge, Places::Reserved)
        .unwrap();
}

/// Makes a store with two objects side by side on its disk, and a read of the first object that includes the
/// second.
fn neighbours() -> (Rig, ReadPlan) {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.settle();
    for key in ["x first", "x second"] {
        let sequence = rig.engine.purges().purge_sequence();
        rig.engine.put(tagged(key, &[b'b'; 700], key, sequence));
    }
    rig.settle();
    rig.engine.context().memory.clear();
    let plan = rig.plan("x first").unwrap();
    let plan = rig.widen(&plan);
    (rig, plan)
}

/// Carries out the read, and calls `meanwhile` before the read is finished. Returns whether the second object
/// is in memory afterwards.
fn comes_along(rig: &Rig, plan: &ReadPlan, meanwhile: impl FnOnce(&Rig)) -> bool {
    let buf = rig.read(plan).unwrap();
    meanwhile(rig);
    let _ = rig.engine.reads().finish_read(plan, b"x first", buf);
    let shard = rig.engine.core().tables.shard(hash("x second")).read();
    shard.in_memory(hash("x second")).is_some()
}

#[test]
fn what_lies_around_a_read_comes_along_only_if_it_may_be_given() {
    let (rig, plan) = neighbours();
    assert!(comes_along(&rig, &plan, |_| {}), "as it should be");
    let (rig, plan) = neighbours();
    assert!(!comes_along(&rig, &plan, |rig| publish(rig, "x second")));
    let (rig, plan) = neighbours();
    assert!(!comes_along(&rig, &plan, |rig| {
        rig.supersede("x second");
    }));
    let (rig, plan) = neighbours();
    assert!(!comes_along(&rig, &plan, |rig| {
        let store = rig.engine.fleet().store(StoreId(0)).unwrap();
        store.marks.set_purge_floor(u64::MAX);
    }));
}

/// The purge floor of the store rises above the purge number of an object that the index contains,
/// so the object is dead.
#[test]
fn an_explanation_gives_nothing_that_is_dead() {
    let (rig, _) = neighbours();
    let key = "x second";
    assert!(rig.engine.reads().peek(hash(key), key.as_bytes()).is_some());
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    store.marks.set_purge_floor(u64::MAX);
    assert!(rig.engine.reads().peek(hash(key), key.as_bytes()).is_none());
}

#[test]
fn a_late_304_does_not_bring_back_what_is_purged() {
    let rig = Rig::new(16, MEMORY, 2);
    let old = rig.engine.put(tagged("x", b"old", "t", 0)).object;
    publish(&rig, "t");
    let meta = ObjectMeta {
        purge_sequence: rig.engine.purges().purge_sequence(),
        ..*old.meta()
    };
    let fields = FieldBlock::empty();
    let put = (rig.engine).refresh(&old, meta, old.vary().clone(), old.tags().clone(), fields);
    assert!(put.is_none());
    assert!(rig.get("x").is_none());
}

#[test]
fn what_took_the_place_of_a_purged_object_stays() {
    let rig = Rig::new(16, MEMORY, 3);
    let old = rig.engine.put(tagged("x", b"old", "t", 0)).object;
    publish(&rig, "t");
    let sequence = rig.engine.purges().purge_sequence();
    rig.engine.put(tagged("x", b"new", "t", sequence));
    // A sweep still holds the old object.
    assert!(
        rig.engine
            .purges()
            .unless_purged(Arc::clone(&old))
            .is_none()
    );
    assert_eq!(rig.text("x").as_deref(), Some("new"));
}

/// On disk, all objects from before the purge were overwritten. In memory, one such object remains.
#[test]
fn a_purge_that_no_sweep_went_through_does_not_retire() {
    let mut rig = Rig::new(8, MEMORY, 4);
    rig.settle();
    rig.engine.put(tagged("x", b"old", "t", 0));
    rig.settle();
    publish(&rig, "t");
    rig.fill("round", 600);
    assert!(rig.counts().reused > 10);
    drop(rig.engine.purges().sweep());
    assert_eq!(rig.engine.purges().active_purges(), 1);
    assert!(rig.get("x").is_none());
}

#[test]
fn a_purge_stays_if_its_sweep_could_not_read_everything() {
    let mut rig = Rig::new(16, MEMORY, 5);
    rig.settle();
    rig.engine.put(tagged("x", b"old", "t", 0));
    rig.settle();
    rig.engine.context().memory.clear();
    publish(&rig, "t");
    rig.settle();
    let unreadable = FaultRule::new(OpClass::Read, Fault::EIO).within(rig.segments_at()..u64::MAX);
    rig.disk.set_faults(FaultPlan::none().and(unreadable));
    assert!(rig.sweep());
    rig.disk.set_faults(FaultPlan::none());
    assert_eq!(rig.engine.purges().active_purges(), 1);
    assert!(rig.get("x").is_none());
}

#[test]
fn what_is_too_long_to_store_takes_the_old_version_away() {
    let rig = Rig::new(16, MEMORY, 6);
    rig.put("x", b"old");
    let mut new = super::rig::object("x", b"new");
    new.tags = vec![b't'; MAX_KEY_BYTES + 1].into();
    let admitted = rig.engine.put(new).admitted;
    assert_eq!(admitted, Admission::Refused(DropReason::TooLarge));
    assert!(rig.get("x").is_none());
}

#[test]
fn a_fragment_is_of_the_version_of_its_head() {
    let rig = Rig::new(16, MEMORY, 7);
    rig.put("x", &[b'x'; 40_000]);
    let head = rig.get("x").unwrap();
    let fragment = rig.fragment(&head, 0).unwrap();
    assert!(is_fragment_of(&fragment, &head, 0));
    let mut other = (*head).clone();
    other.meta.version ^= 1;
    assert!(!is_fragment_of(&fragment, &other, 0));
}

/// A power cut lost the record to which the removal belongs. Another record is then written at the position
/// of the lost record, and the removal must not apply to it.
#[test]
fn a_removal_behind_the_end_of_the_log_concerns_nobody() {
    let mut rig = Rig::new(16, 1 << 20, 8);
    rig.settle();
    let segments = rig.segments_at();
    rig.disk.set_step(true);
    rig.put("lost", b"12345678");
    let sync = rig.engine.sync();
    until_held(&mut rig, OpClass::Write, segments);
    rig.supersede("lost");
    assert!(!sync.is_done());
    let mut kept = |write: &foxy_disk::Unsynced| write.at < segments;
    let mut again = rig.crash(Keep::Writes(&mut kept));
    again.put("next", b"12345678");
    again.settle();
    assert_eq!(again.kill().text("next").as_deref(), Some("12345678"));
}

#[test]
fn a_purge_stays_while_what_it_removed_has_no_durable_tombstones() {
    let mut rig = Rig::new(16, MEMORY, 9);
    rig.settle();
    rig.engine.put(tagged("x", b"old", "t", 0));
    rig.settle();
    publish(&rig, "t");
    rig.settle();
    let broken = FaultRule::new(OpClass::Write, Fault::EIO).within(rig.segments_at()..u64::MAX);
    rig.disk.set_faults(FaultPlan::none().and(broken));
    let mut sweep = rig.engine.purges().sweep().unwrap();
    while sweep.step() != SweepStep::Done {
        rig.clock.advance(std::time::Duration::from_millis(50));
        rig.turns(1);
    }
    assert_eq!(rig.engine.purges().active_purges(), 1);
}

#[test]
fn no_sweep_begins_while_something_is_being_loaded() {
    let mut rig = Rig::new(16, MEMORY, 10);
    rig.settle();
    rig.engine.put(tagged("x", b"old", "t", 0));
    rig.fill("over several segments", 100);
    rig.purge(PurgeKind::Tag, "t", false);
    let again = rig.crash_unloaded(Keep::All);
    assert_eq!(again.engine.purges().active_purges(), 1);
    assert!(again.engine.purges().sweep().is_none());
}
