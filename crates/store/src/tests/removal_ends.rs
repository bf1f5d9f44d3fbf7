//! The end of entries in the removal log: removals whose tombstones are on the disk are not applied
//! again.

use foxy_disk::OpClass;
use foxy_format::Removed;

use super::removal_log::with_old;
use super::removal_ring::forge;
use super::rig::{Rig, geometry};
use crate::StoreId;
use crate::shared::Removal;

/// Returns the numbers of the operations that write clusters and that the disk holds back.
fn clusters_held(rig: &Rig) -> Vec<u64> {
    let held = rig.disk.held().into_iter();
    let writes = held.filter(|op| op.class == OpClass::Write && op.at >= rig.segments_at());
    writes.map(|op| op.id).collect()
}

#[test]
fn removals_count_until_their_own_cluster_is_complete() {
    let mut rig = with_old(18);
    rig.disk.set_step(true);
    rig.supersede("k");
    rig.turns(1);
    rig.clock.advance(std::time::Duration::from_millis(60));
    rig.turns(1);
    let first = clusters_held(&rig);
    rig.put("later", b"later");
    rig.turns(1);
    rig.clock.advance(std::time::Duration::from_secs(2));
    rig.turns(3);
    let second: Vec<_> = clusters_held(&rig)
        .into_iter()
        .filter(|id| !first.contains(id))
        .collect();
    assert_eq!((first.len(), second.len()), (1, 1));
    rig.disk.release(second[0]);
    rig.turns(2);
    // The new entry states which earlier entries are still active.
    rig.supersede("later");
    assert_eq!(rig.kill().text("k"), None);
}

#[test]
fn removals_that_are_gathered_count_while_other_clusters_complete() {
    let mut rig = with_old(19);
    rig.disk.set_step(true);
    rig.put("later", b"later");
    rig.turns(1);
    rig.clock.advance(std::time::Duration::from_secs(2));
    rig.turns(3);
    let cluster = clusters_held(&rig);
    assert_eq!(cluster.len(), 1);
    let before = rig.counts().tombstones;
    rig.supersede("k");
    rig.turns(1);
    rig.disk.release(cluster[0]);
    rig.turns(1);
    assert_eq!(rig.counts().tombstones, before);
    rig.supersede("later");
    assert_eq!(rig.kill().text("k"), None);
}

#[test]
fn a_log_without_anything_left_is_not_gone_through_again() {
    let mut rig = with_old(20);
    rig.supersede("k");
    assert_eq!(rig.kill().counts().removals_recalled, 1);
    rig.settle();
    assert_eq!(rig.kill().counts().removals_recalled, 0);
}

#[test]
fn removals_in_earlier_incarnations_are_not_handed_on() {
    let mut rig = with_old(21);
    rig.fill("round", 700);
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    let end = store.marks.log_end();
    let (now, segments) = (
        end.sequence() - 1,
        u64::from(geometry(&rig.engine).segments),
    );
    let replayed = |sequence| {
        let place = Removed::Place(foxy_format::LogPosition::new(sequence, 9));
        let newest = read_all(&rig).1;
        let again = forge(&rig, store.space.uuid(), &[(newest, 0, place)]);
        again.counts().removals_recalled
    };
    assert!(now > segments);
    assert_eq!((replayed(now), replayed(now - segments)), (1, 0));
}

fn read_all(rig: &Rig) -> (Vec<u64>, u64) {
    let (g, store) = (
        geometry(&rig.engine),
        rig.engine.fleet().store(StoreId(0)).unwrap(),
    );
    let log = rig.disk.peek(g.removals_at(), g.removals_bytes as usize);
    let (entries, next) = foxy_format::read_removals(&log, store.space.uuid());
    (entries.iter().map(|e| e.number).collect(), next)
}

#[test]
fn a_batch_goes_round_the_end_of_the_ring() {
    let mut rig = with_old(22);
    let batch: Vec<_> = (0..5)
        .map(|n| Removal::Place(foxy_format::LogPosition::new(1, n)))
        .collect();
    for _ in 0..200 {
        let before = read_all(&rig).1;
        rig.engine
            .fleet()
            .store(StoreId(0))
            .unwrap()
            .remove_all(&batch);
        let (entries, next) = read_all(&rig);
        assert_eq!(next, before + 5);
        assert!(
            (before..next).all(|n| entries.contains(&n)),
            "{before}: {entries:?}"
        );
        if next % 3 == 0 {
            rig.settle();
        }
    }
    assert_eq!(rig.counts().removal_log_full, 0);
}
