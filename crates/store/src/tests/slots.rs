//! The headers of slots (a slot contains the state and the summary of a segment): many reads at the same time
//! find the same headers as single reads.

use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
use foxy_format::Geometry;

use super::rig::Rig;
use crate::recovery::{Found, SPAN_BYTES, read_slot, read_slots, spans};
use crate::shared::StoreShared;

/// Makes a store of 300 segments, of which a hundred are used. Segments are sealed, have an open header, or
/// were never used.
fn written() -> Rig {
    let mut rig = Rig::new(300, 8 << 20, 3);
    for n in 0..1200 {
        rig.put(&format!("{n}"), &[7; 5000]);
        rig.settle();
    }
    rig
}

fn one_by_one(store: &StoreShared) -> Vec<Found> {
    (0..store.space.geometry().segments)
        .map(|index| read_slot(store, index))
        .collect()
}

fn store_of(rig: &Rig) -> std::sync::Arc<StoreShared> {
    rig.engine.fleet().stores().iter().next().unwrap().clone()
}

#[test]
fn many_at_once_find_what_one_by_one_finds_also_among_damage() {
    let rig = written();
    let store = store_of(&rig);
    let sound = read_slots(&store);
    assert_eq!(sound, one_by_one(&store));
    let slots = sound.iter().filter(|f| matches!(f, Found::Slot(_))).count();
    assert!((50..300).contains(&slots), "{slots} slots in use");
    for index in [0, 7, 8, 250, 299] {
        let at = store.space.geometry().slot_at(index);
        rig.disk.corrupt(at, 64, |bytes| bytes[20] ^= 1);
    }
    let found = read_slots(&store);
    assert_eq!(found, one_by_one(&store));
    let changed = found.iter().zip(&sound).filter(|(a, b)| a != b).count();
    assert_eq!(changed, 5, "each only where the damage is");
}

#[test]
fn a_block_that_cannot_be_read_costs_its_slot_and_no_other() {
    let rig = written();
    let store = store_of(&rig);
    let sound = read_slots(&store);
    for bad in [0u32, 33, 299] {
        let at = store.space.geometry().slot_at(bad);
        let rule = FaultRule::new(OpClass::Read, Fault::EIO).within(at..at + 64);
        rig.disk.set_faults(FaultPlan::none().and(rule));
        let found = read_slots(&store);
        for (index, (now, before)) in found.iter().zip(&sound).enumerate() {
            let wanted = if index == bad as usize {
                &Found::Damaged
            } else {
                before
            };
            assert_eq!(now, wanted, "slot {index} with {bad} unreadable");
        }
    }
}

#[test]
fn a_read_covers_only_slots_that_follow_each_other() {
    let small = Geometry::fit(64 << 20, 64 << 10, 16 << 10, 512).unwrap();
    let grown = small.grow(80 << 20, 9).unwrap();
    for geometry in [small, grown] {
        let slot = u64::from(geometry.slot_bytes);
        let spans = spans(&geometry);
        assert!(spans.iter().cloned().flatten().eq(0..geometry.segments));
        for span in &spans {
            let first = geometry.slot_at(span.start);
            assert!(
                span.clone()
                    .zip(0..)
                    .all(|(index, n)| geometry.slot_at(index) == first + n * slot)
            );
            assert!(span.len() as u64 * slot <= SPAN_BYTES);
        }
    }
    assert!(
        spans(&grown)
            .iter()
            .any(|span| span.start == small.segments)
    );
    let large = Geometry::fit(16 << 30, 32 << 20, 512 << 10, 2048).unwrap();
    assert!(spans(&large).iter().all(|span| span.len() == 1));
}

#[test]
fn a_start_asks_for_many_slots_at_once() {
    let rig = written();
    let store = store_of(&rig);
    let before = rig.disk.counts().reads;
    read_slots(&store);
    let reads = rig.disk.counts().reads - before;
    // Slots that look unused are read a second time, and some of the segments were never used.
    assert!(reads <= 4, "{reads} reads for 300 slots of 4 KiB");
}
