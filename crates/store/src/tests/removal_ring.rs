//! The ring of the removal log: torn and foreign entries, and a ring that is full.

use foxy_disk::Keep;
use foxy_format::{REMOVAL_BYTES, RemovalEntry, Removed, StoreUuid};

use super::removal_log::{MEMORY, with_old};
use super::rig::{Rig, geometry, hash, options};
use crate::interface::Spot;
use crate::*;

#[test]
fn torn_entries_remove_nothing_and_the_others_still_count() {
    let mut rig = Rig::new(16, MEMORY, 8);
    for n in 0..20 {
        rig.put(&format!("k{n}"), b"old");
    }
    rig.settle();
    let before = rig.counts().removals_logged;
    (0..20).for_each(|n| assert!(rig.supersede(&format!("k{n}"))));
    assert_eq!(rig.counts().removals_logged - before, 20);
    for torn in 0..REMOVAL_BYTES as u64 {
        let disk = rig.disk.kill();
        // One byte of the tenth entry from the end is changed.
        let number = rig.counts().removals_logged - 9;
        let at = geometry(&rig.engine).removals_at() + number * REMOVAL_BYTES as u64 + torn;
        disk.corrupt(at, 1, |b| b[0] ^= 0x40);
        let again = Rig::open(disk, MEMORY, 9, options());
        let back: Vec<_> = (0..20)
            .filter(|n| again.plan(&format!("k{n}")).is_some())
            .collect();
        assert_eq!(back, [10], "byte {torn}");
    }
}

#[test]
fn a_power_cut_that_tears_the_log_keeps_other_objects() {
    let mut rig = Rig::new(16, MEMORY, 10);
    for n in 0..40 {
        rig.put(&format!("k{n}"), b"old");
    }
    rig.settle();
    let ticket = rig.engine.sync();
    while !ticket.is_done() {
        rig.writer.turn();
    }
    (0..20).for_each(|n| assert!(rig.supersede(&format!("k{n}"))));
    let mut kept = std::collections::HashSet::new();
    for seed in 0..30 {
        let again = rig.crash(Keep::Random(seed));
        let there = |n: &i32| again.text(&format!("k{n}")).is_some();
        assert!((20..40).all(|n| there(&n)), "seed {seed}");
        kept.insert((0..20).filter(there).count());
    }
    assert!(kept.len() > 3, "{kept:?}");
}

#[test]
fn a_full_ring_counts_and_falls_back_to_tombstones() {
    let mut rig = Rig::new(16, 4 << 20, 11);
    rig.settle();
    let places = geometry(&rig.engine).removal_places();
    let keys = places as usize + 50;
    for n in 0..keys {
        rig.put(&format!("k{n}"), b"old");
    }
    rig.settle();
    (0..keys).for_each(|n| assert!(rig.supersede(&format!("k{n}"))));
    assert_eq!(rig.counts().removal_log_full, 50);
    let back = |rig: &Rig| {
        (0..keys)
            .filter(|n| rig.text(&format!("k{n}")).is_some())
            .count()
    };
    assert_eq!(back(&rig.kill()), 50, "those that found no room");
    rig.settle();
    assert_eq!(back(&rig.kill()), 0);
    // There is room again, for several rounds of the ring.
    for round in 0..4 {
        for n in 0..300 {
            rig.put(&format!("k{n}"), b"again");
        }
        rig.settle();
        (0..300).for_each(|n| assert!(rig.supersede(&format!("k{n}"))));
        assert_eq!(back(&rig.kill()), 0, "round {round}");
        rig.settle();
    }
    assert_eq!(rig.counts().removal_log_full, 50);
    assert!(rig.counts().removals_logged > 3 * places);
}

#[test]
fn half_a_ring_is_reason_enough_to_write_tombstones() {
    let mut rig = Rig::new(16, 4 << 20, 12);
    rig.settle();
    let half = geometry(&rig.engine).removal_places() / 2 + 1;
    for n in 0..half {
        rig.put(&format!("k{n}"), b"old");
    }
    rig.settle();
    let before = rig.counts().tombstones;
    (1..half).for_each(|n| assert!(rig.supersede(&format!("k{n}"))));
    rig.turns(3);
    assert_eq!(rig.counts().tombstones, before);
    rig.supersede("k0");
    rig.turns(3);
    assert_eq!(rig.counts().tombstones, before + half);
}

/// Writes entries into the removal log of a copy of the disk, and opens that disk.
pub(super) fn forge(rig: &Rig, uuid: StoreUuid, entries: &[(u64, u32, Removed)]) -> Rig {
    let (disk, g) = (rig.disk.kill(), geometry(&rig.engine));
    for (number, before, removed) in entries.iter().copied() {
        let entry = RemovalEntry {
            number,
            before,
            removed,
        };
        let at = g.removals_at() + number % g.removal_places() * REMOVAL_BYTES as u64;
        disk.corrupt(at, REMOVAL_BYTES, |b| {
            b.copy_from_slice(&entry.encode(uuid));
        });
    }
    Rig::open(disk, MEMORY, 13, options())
}

#[test]
fn former_rounds_other_stores_and_earlier_incarnations_do_nothing() {
    let rig = with_old(13);
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    let entry = rig
        .engine
        .core()
        .tables
        .index()
        .lookup(hash("k"))
        .first()
        .unwrap();
    let place = store.space.position(Spot::of(&entry)).unwrap();
    let places = geometry(&rig.engine).removal_places();
    let incarnation = |n| foxy_format::LogPosition::new(place.sequence() + n, place.offset_units());
    let here = Removed::Place(place);
    let shows = |rig: Rig| rig.plan("k").is_some();
    assert!(
        !shows(forge(&rig, store.space.uuid(), &[(700, 3, here)])),
        "it would count"
    );
    assert!(shows(forge(
        &rig,
        StoreUuid(*b"some other store"),
        &[(700, 3, here)]
    )));
    let newest = |n, before| (n, before, Removed::Nothing);
    let past = forge(
        &rig,
        store.space.uuid(),
        &[(700, 3, here), newest(701 + places, 1 << 20)],
    );
    assert!(shows(past), "a whole round ago");
    assert!(
        shows(forge(
            &rig,
            store.space.uuid(),
            &[(700, 3, here), newest(705, 4)]
        )),
        "done with"
    );
    assert!(!shows(forge(
        &rig,
        store.space.uuid(),
        &[(700, 3, here), newest(705, 5)]
    )));
    let segments = u64::from(geometry(&rig.engine).segments);
    assert!(shows(forge(
        &rig,
        store.space.uuid(),
        &[(700, 3, Removed::Place(incarnation(segments)))]
    )));
    let key = |place| Removed::Key(hash("k"), place);
    assert!(
        shows(forge(&rig, store.space.uuid(), &[(700, 3, key(place))])),
        "older than the record"
    );
    let behind = foxy_format::LogPosition(place.0 + 1);
    assert!(!shows(forge(
        &rig,
        store.space.uuid(),
        &[(700, 3, key(behind))]
    )));
}
