//! Tests of the rules that keep old versions from coming back, one test for each rule.

use foxy_disk::{Fault, FaultPlan, FaultRule, Keep, OpClass};

use super::rig::{Rig, geometry, hash, options};
use crate::*;

pub(super) const SMALL_MEMORY: u64 = 256 << 10;

/// Stores a version of `key` that no store admits, because too many bytes are waiting.
pub(super) fn put_dropped(rig: &Rig, key: &str) {
    for n in 0.. {
        if rig.put(&format!("pressure {key} {n}"), &[0; 200]).admitted != Admission::Disk {
            break;
        }
        assert!(n < 10_000);
    }
    assert_ne!(rig.put(key, &[b'n'; 600]).admitted, Admission::Disk);
}

pub(super) fn forget_ram(rig: &Rig, key: &str) {
    rig.engine
        .core()
        .tables
        .shard(hash(key))
        .write()
        .ram_remove_for_test(hash(key));
}

/// Makes everything durable that was requested so far.
pub(super) fn sync(rig: &mut Rig) {
    let ticket = rig.engine.sync();
    for _ in 0..200 {
        rig.writer.turn();
        if ticket.is_done() {
            assert_eq!(ticket.outcome(), Some(Durable::Yes));
            return;
        }
    }
    panic!("no end of the sync");
}

#[test]
fn a_dropped_admission_does_not_bring_the_old_version_back() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 1);
    rig.put("k", b"old");
    rig.settle();
    put_dropped(&rig, "k");
    forget_ram(&rig, "k");
    assert_eq!(rig.text("k"), None);
    sync(&mut rig);
    assert_eq!(rig.crash(Keep::Nothing).text("k"), None);
}

#[test]
fn a_version_superseded_while_being_written_does_not_come_back() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 2);
    rig.settle();
    rig.disk.set_step(true);
    rig.put("k", b"old");
    rig.clock.advance(std::time::Duration::from_secs(2));
    for _ in 0..20 {
        rig.writer.turn();
        let held = rig.disk.held();
        let cluster = held
            .iter()
            .any(|op| op.class == OpClass::Write && op.at >= rig.segments_at());
        if cluster {
            break;
        }
        rig.disk.release_all();
    }
    assert!(rig.supersede("k"), "it was pending");
    rig.disk.set_step(false);
    rig.settle();
    assert_eq!(rig.text("k"), None);
    assert_eq!(rig.kill().text("k"), None);
}

#[test]
fn the_newest_version_wins_while_loading_and_afterwards() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 3);
    for version in 0..4 {
        rig.put("k", format!("version {version}").as_bytes());
        rig.fill(&format!("a{version}"), 40);
    }
    let mut again = rig.crash_unloaded(Keep::Nothing);
    for _ in 0..60 {
        let found = again.text("k");
        assert!(
            found.is_none() || found.as_deref() == Some("version 3"),
            "{found:?}"
        );
        forget_ram(&again, "k");
        again.writer.turn();
    }
    assert_eq!(again.text("k").as_deref(), Some("version 3"));
}

#[test]
fn a_key_superseded_before_its_segment_is_loaded_stays_away() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 4);
    rig.put("k", b"old");
    rig.put("other", b"old");
    rig.fill("a", 100);
    let mut again = rig.crash_unloaded(Keep::Nothing);
    assert!(
        again.plan("k").is_none(),
        "loaded already: the test needs more segments"
    );
    again.supersede("k");
    again.settle();
    assert_eq!(again.text("k"), None);
    assert_eq!(again.text("other").as_deref(), Some("old"));
    // The key is not found after the next start either.
    assert_eq!(again.kill().text("k"), None);
}

#[test]
fn too_many_removals_while_loading_end_the_loading() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 5);
    rig.put("k", b"old");
    rig.fill("a", 100);
    rig.options.removed_keys_max = 10;
    let mut again = rig.crash_unloaded(Keep::Nothing);
    for n in 0..20 {
        again.supersede(&format!("unknown {n}"));
    }
    again.supersede("k");
    again.settle();
    assert_eq!(again.text("k"), None);
    assert!(again.counts().load_given_up > 0);
}

#[test]
fn superseding_at_any_point_of_reuse_is_final() {
    for turns in 0..40 {
        let mut rig = Rig::new(6, SMALL_MEMORY, 6);
        rig.put("k", b"old");
        rig.put("used", b"old");
        rig.settle();
        // Objects are stored until the first segment is about to be reused.
        for n in 0.. {
            if rig.counts().sealed >= 5 {
                break;
            }
            rig.put(&format!("x{n}"), &[1; 1500]);
            rig.clock.advance(std::time::Duration::from_millis(1500));
            rig.turns(2);
            assert!(n < 1000);
        }
        let _ = rig.text("used");
        forget_ram(&rig, "k");
        for n in 0..turns {
            rig.put(&format!("y{n}"), &[1; 1500]);
            rig.clock.advance(std::time::Duration::from_millis(1500));
            rig.turns(1);
        }
        rig.supersede("k");
        rig.supersede("used");
        sync(&mut rig);
        for keep in [Keep::Nothing, Keep::All, Keep::Random(turns as u64)] {
            let again = rig.crash(keep);
            assert_eq!(
                (again.text("k"), again.text("used")),
                (None, None),
                "after {turns} turns"
            );
        }
    }
}

#[test]
fn records_of_an_earlier_incarnation_stay_away() {
    let mut rig = Rig::new(6, SMALL_MEMORY, 7);
    rig.fill("a", 12);
    rig.put("k", b"old");
    rig.settle();
    forget_ram(&rig, "k");
    for n in 0.. {
        rig.fill(&format!("b{n}"), 1);
        if rig.plan("k").is_none() {
            break;
        }
        assert!(n < 1000);
    }
    // The segment of the key is being reused, its old cluster is still there, and no entry records that
    // the key was superseded. Only the incarnation of the segment shows that the old record is dead.
    put_dropped(&rig, "k");
    forget_ram(&rig, "k");
    for keep in [Keep::Nothing, Keep::All, Keep::Random(1)] {
        assert_eq!(rig.crash(keep).text("k"), None);
    }
}

#[test]
fn a_read_from_a_reused_segment_is_a_miss() {
    let mut rig = Rig::new(6, SMALL_MEMORY, 8);
    rig.put("k", b"old");
    rig.settle();
    forget_ram(&rig, "k");
    let plan = rig.plan("k").unwrap();
    let early = rig.read(&plan).unwrap();
    rig.fill("a", 250);
    assert!(rig.counts().reused > 3);
    let late = rig.read(&plan).unwrap();
    for buf in [early, late] {
        let miss = rig
            .engine
            .reads()
            .finish_read(&plan, b"k", buf)
            .unwrap_err();
        assert_eq!(miss, ReadMiss::Superseded);
    }
}

#[test]
fn a_read_that_was_overtaken_does_not_return_or_keep_the_old_version() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 9);
    rig.put("k", b"old");
    rig.settle();
    forget_ram(&rig, "k");
    let plan = rig.plan("k").unwrap();
    let [a, b] = [rig.read(&plan).unwrap(), rig.read(&plan).unwrap()];
    rig.supersede("k");
    assert_eq!(
        rig.engine.reads().finish_read(&plan, b"k", a).unwrap_err(),
        ReadMiss::Superseded
    );
    rig.put("k", b"new");
    let got = rig.engine.reads().finish_read(&plan, b"k", b).unwrap();
    assert_eq!(got.body(), &b"new"[..]);
    assert_eq!(rig.text("k").as_deref(), Some("new"));
}

#[test]
fn a_reinserted_record_that_was_superseded_does_not_come_back() {
    for turns in 0..24 {
        let mut rig = Rig::new(6, SMALL_MEMORY, 10);
        rig.put("hot", b"old");
        rig.settle();
        for n in 0.. {
            forget_ram(&rig, "hot");
            assert!(rig.text("hot").is_some());
            if rig.counts().reinserted > 0 {
                break;
            }
            rig.put(&format!("x{n}"), &[1; 1500]);
            rig.clock.advance(std::time::Duration::from_millis(1100));
            rig.turns(1);
            assert!(n < 1000);
        }
        rig.turns(turns);
        assert!(rig.supersede("hot"));
        sync(&mut rig);
        assert_eq!(rig.text("hot"), None);
        for keep in [Keep::Nothing, Keep::All, Keep::Random(turns as u64)] {
            assert_eq!(rig.crash(keep).text("hot"), None, "after {turns} turns");
        }
    }
}

#[test]
fn a_removal_whose_cluster_fails_is_written_again() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 11);
    rig.put("k", b"old");
    rig.settle();
    rig.supersede("k");
    let segments = rig.segments_at()..u64::MAX;
    rig.disk.set_faults(
        FaultPlan::none().and(
            FaultRule::new(OpClass::Write, Fault::EIO)
                .within(segments)
                .times(1),
        ),
    );
    rig.settle();
    assert_eq!(rig.counts().write_errors, 1);
    assert_eq!(rig.kill().text("k"), None);
    // The removal log releases the removal only when a cluster that contains it was written.
    rig.put("another", b"body");
    rig.settle();
    assert_eq!(rig.kill().text("k"), None);
}

#[test]
fn a_record_whose_cluster_failed_does_not_come_back_later() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 12);
    rig.settle();
    // The write fails, but its bytes may have reached the disk. So a tombstone for the record is written.
    rig.put("k", b"failed");
    let segments = rig.segments_at()..u64::MAX;
    rig.disk.set_faults(
        FaultPlan::none().and(
            FaultRule::new(OpClass::Write, Fault::EIO)
                .within(segments)
                .times(1),
        ),
    );
    rig.settle();
    assert_eq!(rig.counts().drop_write_error, 1);
    assert_eq!(rig.counts().tombstones, 1, "its removal");
}

#[test]
fn a_damaged_record_is_a_miss_now_and_after_a_restart() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 13);
    rig.put("k", b"body of k");
    rig.settle();
    forget_ram(&rig, "k");
    let plan = rig.plan("k").unwrap();
    let at = plan.at + u64::from(plan.skip) + 40;
    rig.disk.corrupt(at, 1, |b| b[0] ^= 4);
    assert_eq!(rig.text("k"), None);
    assert_eq!(rig.engine.stats().counts.miss_damaged, 1);
    assert!(rig.plan("k").is_none(), "the entry was dropped");
    // The record is readable again, but meanwhile a version that was not admitted replaced it.
    rig.disk.corrupt(at, 1, |b| b[0] ^= 4);
    put_dropped(&rig, "k");
    sync(&mut rig);
    assert_eq!(rig.crash(Keep::Nothing).text("k"), None);
}

#[test]
fn versions_are_not_given_twice_even_with_the_same_seed() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 14);
    let first = rig.put("a", b"1").object.meta().version;
    rig.settle();
    let mut again = Rig::open(rig.disk.kill(), SMALL_MEMORY, 14, options());
    again.settle();
    let second = again.put("a", b"2").object.meta().version;
    assert_ne!(first, second);
}

#[test]
fn what_the_floor_covers_is_dead() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 15);
    rig.put("before", b"1");
    rig.settle();
    rig.writer.raise_floor();
    rig.put("after", b"2");
    rig.settle();
    let again = rig.kill();
    assert_eq!(
        (again.text("before"), again.text("after").as_deref()),
        (None, Some("2"))
    );
}

#[test]
fn a_record_at_another_place_or_of_another_incarnation_is_refused() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 16);
    rig.put("k", b"old version");
    rig.settle();
    forget_ram(&rig, "k");
    let old = rig.plan("k").unwrap();
    let record = rig.disk.peek(old.at + u64::from(old.skip), 256);
    rig.put("k", b"new version");
    rig.settle();
    forget_ram(&rig, "k");
    let new = rig.plan("k").unwrap();
    assert_ne!(old.at, new.at);
    // A write went to the wrong place: its record is valid, has the right key, and is out of date.
    rig.disk.corrupt(new.at + u64::from(new.skip), 256, |b| {
        b.copy_from_slice(&record);
    });
    assert_eq!(rig.text("k"), None);
    assert_eq!(rig.engine.stats().counts.miss_damaged, 1);
}

#[test]
fn a_record_of_another_key_is_refused_and_left_to_its_owner() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 17);
    rig.put("k", b"body");
    rig.settle();
    forget_ram(&rig, "k");
    let plan = rig.plan("k").unwrap();
    let buf = rig.read(&plan).unwrap();
    assert_eq!(
        rig.engine
            .reads()
            .finish_read(&plan, b"another", buf)
            .unwrap_err(),
        ReadMiss::CollidingKey
    );
    assert_eq!(rig.text("k").as_deref(), Some("body"));
}

/// A device lost all writes to a segment for a whole round of reuse, including the open header. The contents
/// that the segment still has are out of date. Their removals were logged in other segments, which may have
/// been reused.
#[test]
fn a_segment_a_whole_round_behind_is_dead() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 35);
    rig.settle();
    rig.put("k", b"old");
    rig.fill("first", 30);
    let g = geometry(&rig.engine);
    let (slot, segment) = (g.slot_at(0), g.segment_at(0));
    let saved = (
        rig.disk.peek(slot, g.slot_bytes as usize),
        rig.disk.peek(segment, g.segment_bytes as usize),
    );
    rig.supersede("k");
    rig.fill("round", 1400);
    assert!(rig.counts().reused > u64::from(g.segments));
    for (at, bytes) in [(slot, &saved.0), (segment, &saved.1)] {
        rig.disk
            .corrupt(at, bytes.len(), |b| b.copy_from_slice(bytes));
    }
    assert_eq!(rig.kill().text("k"), None);
}

#[test]
fn a_version_whose_removal_was_lost_stays_dead_when_its_successor_is_removed() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 23);
    // The store is loaded first: while it is loading, every put leaves a tombstone.
    rig.settle();
    rig.put("k", b"one");
    rig.settle();
    rig.supersede("k");
    sync(&mut rig);
    let removal = rig.segments_at() + 4096;
    rig.put("k", b"two");
    sync(&mut rig);
    // A power cut keeps the cluster with `two`, but not the earlier cluster with the removal of `one`.
    let disk = rig.disk.kill();
    disk.corrupt(removal, 4096, |b| b.fill(0));
    let mut again = Rig::open(disk, SMALL_MEMORY, 24, options());
    again.settle();
    assert_eq!((again.counts().loaded, again.counts().load_skipped), (1, 1));
    assert_eq!(again.text("k").as_deref(), Some("two"));
    again.supersede("k");
    sync(&mut again);
    assert_eq!(again.crash(Keep::Nothing).text("k"), None);
}
