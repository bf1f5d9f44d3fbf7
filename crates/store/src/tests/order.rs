//! What has to be on the disk before something else may be, and what is read until then.

use foxy_disk::OpClass;

use super::rig::{Rig, options};
use super::rules::{SMALL_MEMORY, forget_ram, sync};
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

#[test]
fn a_torn_cluster_does_not_hide_the_one_behind_it() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 20);
    rig.settle();
    for key in ["a", "b", "c"] {
        rig.put(key, b"body");
        sync(&mut rig);
    }
    let at = rig.segments_at() + 4096;
    let again = rig.disk.kill();
    again.corrupt(at, 4096, |b| b[..40].fill(0xee));
    let mut again = Rig::open(again, SMALL_MEMORY, 21, options());
    again.settle();
    assert_eq!(
        (
            again.text("a").is_some(),
            again.text("b"),
            again.text("c").is_some()
        ),
        (true, None, true)
    );
}

#[test]
fn summaries_and_reuse_wait_for_their_flushes() {
    let mut rig = Rig::new(6, SMALL_MEMORY, 22);
    rig.put("k", b"old");
    rig.settle();
    forget_ram(&rig, "k");
    rig.disk.set_step(true);
    let geometry = rig.engine.store(StoreId(0)).unwrap().geometry;
    let slots = geometry.slot_at(0)..geometry.segment_at(0);
    let mut unflushed = std::collections::HashSet::new();
    let mut unflushed_mark = false;
    let (mut seals, mut marks) = (0, 0);
    for n in 0..2000 {
        rig.put(&format!("x{n}"), &[1; 1500]);
        rig.clock.advance(std::time::Duration::from_millis(600));
        let known = rig.plan("k").is_some();
        rig.turns(3);
        if unflushed_mark {
            let still = rig.plan("k").is_some();
            assert_eq!(
                still, known,
                "entries were dropped before the mark was durable"
            );
        }
        // One by one, flushes last: whoever does not wait for one gets ahead of it.
        let mut held = rig.disk.held();
        held.sort_by_key(|op| op.class == OpClass::Flush);
        let Some(op) = held.first() else { continue };
        rig.disk.release(op.id);
        match op.class {
            OpClass::Flush => {
                unflushed.clear();
                unflushed_mark = false;
            }
            OpClass::Write if slots.contains(&op.at) => {
                let index = (op.at - slots.start) / u64::from(geometry.slot_bytes);
                let sealed = rig.disk.peek(op.at, 8)[6] == 2;
                assert!(
                    !sealed || !unflushed.contains(&index),
                    "sealed before its flush"
                );
                seals += usize::from(sealed);
                marks += usize::from(!sealed);
                unflushed_mark |= !sealed;
            }
            OpClass::Write => {
                unflushed.insert((op.at - slots.end) / u64::from(geometry.segment_bytes));
            }
            _ => {}
        }
    }
    assert!(
        seals > 3 && marks > 3 && rig.counts().reused > 1,
        "{seals} {marks}"
    );
}
