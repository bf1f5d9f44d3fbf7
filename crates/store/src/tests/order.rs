//! Tests that data is written in the order in which it must reach the disk, and tests of reads while data is
//! being written.

use foxy_disk::OpClass;

use super::rig::{Rig, SEGMENT, geometry, options};
use super::rules::{SMALL_MEMORY, forget_ram};
use crate::shared::Removal;
use crate::*;

#[test]
fn a_pending_object_is_read_from_memory_until_its_cluster_is_written() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 19);
    rig.settle();
    rig.put("k", b"body");
    let ticket = rig.engine.sync();
    rig.disk.set_step(true);
    let (mut writes, mut flushes) = (0, 0);
    for _ in 0..40 {
        forget_ram(&rig, "k");
        assert_eq!(rig.text("k").as_deref(), Some("body"));
        rig.writer.turn();
        if let Some(op) = rig.disk.held().first().cloned() {
            assert!(!ticket.is_done(), "done before {op:?}");
            writes += usize::from(op.class == OpClass::Write);
            flushes += usize::from(op.class == OpClass::Flush);
            rig.disk.release(op.id);
        }
    }
    assert!(ticket.is_done() && writes > 0 && flushes > 0);
}

/// Three clusters were written, but no flush has made them durable. The second cluster is torn. A power cut
/// can cause this.
#[test]
fn a_torn_cluster_does_not_hide_the_one_behind_it() {
    let options = StoreOptions {
        flush_age: std::time::Duration::from_millis(10),
        ..options()
    };
    let len = 16 * u64::from(SEGMENT + 4096) + (64 << 10);
    let disk = foxy_disk::MemDisk::new(len, 512, 20);
    let mut rig = Rig::open(disk, SMALL_MEMORY, 20, options);
    rig.settle();
    let flushes = rig.counts().flushes;
    for key in ["a", "b", "c"] {
        rig.put(key, b"body");
        for _ in 0..10 {
            rig.clock.advance(std::time::Duration::from_millis(10));
            rig.turns(2);
        }
    }
    assert_eq!(rig.counts().flushes, flushes);
    assert_eq!(rig.counts().clusters, 3);
    let at = rig.segments_at() + 4096;
    let torn = rig.disk.kill();
    torn.corrupt(at, 4096, |b| b[..40].fill(0xee));
    let there = |rig: &Rig| ["a", "b", "c"].map(|key| rig.text(key).is_some());
    let mut again = Rig::open(torn, SMALL_MEMORY, 21, rig.options.clone());
    again.settle();
    assert_eq!(there(&again), [true, false, true]);
    // The cluster stays torn: later durable clusters do not turn it into damage.
    again.put("d", b"body");
    again.settle();
    again.put("e", b"body");
    again.settle();
    let last = again.kill();
    assert_eq!(there(&last), [true, false, true]);
    assert_eq!(last.counts().damaged, 0);
}

#[test]
fn summaries_and_reuse_wait_for_their_flushes() {
    let mut rig = Rig::new(6, SMALL_MEMORY, 22);
    rig.put("k", b"old");
    rig.settle();
    forget_ram(&rig, "k");
    rig.disk.set_step(true);
    let geometry = geometry(&rig.engine);
    let slots = geometry.slot_at(0)..geometry.segment_at(0);
    let mut unflushed = std::collections::HashSet::new();
    let mut unflushed_header = false;
    let (mut seals, mut headers) = (0, 0);
    for n in 0..2000 {
        rig.put(&format!("x{n}"), &[1; 1500]);
        // The pauses are uneven, so that segments end at any time between two flushes.
        let pause = 200 + n * 7919 % 800;
        rig.clock.advance(std::time::Duration::from_millis(pause));
        let known = rig.plan("k").is_some();
        rig.turns(3);
        if unflushed_header {
            let still = rig.plan("k").is_some();
            assert_eq!(
                still, known,
                "entries were dropped before the open header was durable"
            );
        }
        // Operations complete one by one, and flushes complete last: a write that does not wait for its
        // flush overtakes it.
        let mut held = rig.disk.held();
        held.sort_by_key(|op| op.class == OpClass::Flush);
        let Some(op) = held.first() else { continue };
        rig.disk.release(op.id);
        match op.class {
            OpClass::Flush => {
                unflushed.clear();
                unflushed_header = false;
            }
            OpClass::Write if slots.contains(&op.at) => {
                let index = (op.at - slots.start) / u64::from(geometry.slot_bytes);
                let sealed = rig.disk.peek(op.at, 8)[6] == 2;
                assert!(
                    !sealed || !unflushed.contains(&index),
                    "sealed before its flush"
                );
                seals += usize::from(sealed);
                headers += usize::from(!sealed);
                unflushed_header |= !sealed;
            }
            OpClass::Write => {
                unflushed.insert((op.at - slots.end) / u64::from(geometry.segment_bytes));
            }
            _ => {}
        }
    }
    assert!(
        seals > 3 && headers > 3 && rig.counts().reused > 1,
        "{seals} {headers}"
    );
}

/// A write was acknowledged and lost, so the record of an earlier incarnation of the segment is still there.
/// This record is valid, has the right key and lies at the right position, but it is one round of reuse
/// out of date.
#[test]
fn a_record_of_an_earlier_incarnation_at_the_same_place_is_refused() {
    let options = StoreOptions {
        reinsert_percent: 0,
        ..options()
    };
    let disk = foxy_disk::MemDisk::new(6 * (64 + 4) * 1024 + (64 << 10), 512, 1);
    let mut rig = Rig::open(disk, SMALL_MEMORY, 52, options);
    assert_eq!(rig.engine.stats().stores[0].segments, 6);
    rig.settle();
    let mut first = None;
    for round in 0..2 {
        assert!(rig.plan("k").is_none(), "reuse has dropped it");
        // Each object gets its own cluster, so that records lie at the same positions in every round.
        for n in 0..6 * 16 {
            let key = match n {
                0 => "k".to_owned(),
                _ => format!("filler {round} {n}"),
            };
            rig.put(&key, format!("{round:>1500}").as_bytes());
            rig.settle();
            forget_ram(&rig, &key);
            if n == 0 {
                let plan = rig.plan("k").unwrap();
                let (at, record) = first.get_or_insert_with(|| {
                    let at = plan.at + u64::from(plan.skip);
                    (at, rig.disk.peek(at, 1700))
                });
                assert_eq!(*at, plan.at + u64::from(plan.skip), "the same place");
                if round == 1 {
                    assert_eq!(rig.text("k").unwrap().trim(), "1");
                    forget_ram(&rig, "k");
                    rig.disk
                        .corrupt(*at, 1700, |b| b.copy_from_slice(record.as_slice()));
                    assert_eq!(rig.text("k"), None);
                    return;
                }
            }
        }
    }
}

/// There are more removals than the writer keeps, and more than the removal log has room for.
#[test]
fn removals_that_were_given_up_make_everything_before_them_dead() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 53);
    rig.put("k", b"old");
    rig.settle();
    forget_ram(&rig, "k");
    rig.supersede("k");
    let nowhere = Removal::Key(super::rig::hash("nobody"));
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    store.remove_all(&vec![nowhere; (1 << 20) + 1]);
    for n in 0..3 {
        rig.put(&format!("later {n}"), b"body");
        rig.settle();
    }
    assert_eq!(rig.counts().tombstone_overflows, 1);
    let again = rig.kill();
    assert_eq!(again.text("k"), None);
    assert_eq!(again.text("later 2").as_deref(), Some("body"));
}
